package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/lab/netlab"
)

func runCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "run SCENARIO [-- CMD...]",
		Short: "Set a lab up, play its events and run a command in the client namespace",
		Long: `Sets up the scenario's links, with nginx and a name server in the server namespace, and runs CMD in the client namespace. The
times of events count from the start of CMD. Exits with the exit code of CMD. Without CMD, it waits for Ctrl-C.`,
		Example: `  tributary-lab run equal-blackhole -- bin/tributary serve --link wifi --link lte
  tributary-lab run hs -- curl --interface lte -o /dev/null -w '%{speed_download}\n' http://origin.test/50MB`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sc, err := load(args[0])
			if err != nil {
				return err
			}
			return run(cmd.Context(), sc, args[1:], cmd.ErrOrStderr())
		},
	}
}

func run(ctx context.Context, sc netlab.Scenario, argv []string, say io.Writer) (err error) {
	l, err := netlab.New(ctx, sc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	n, err := l.StartNginx(ctx, netlab.NginxOptions{})
	if err != nil {
		return err
	}
	if _, err := l.StartDNS(); err != nil {
		return err
	}
	for _, size := range sc.Objects {
		o, err := n.Object(size)
		if err != nil {
			return err
		}
		fmt.Fprintf(say, "%s  %s\n", o.SHA256, n.NamedURL(o))
	}

	playing, stop := context.WithCancel(ctx)
	events := make(chan error, 1)
	var cmd *exec.Cmd
	if len(argv) > 0 {
		cmd = l.Client(ctx, argv[0], argv[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr.Setpgid = false // Ctrl-C at the terminal reaches the command, too
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		if err := cmd.Start(); err != nil {
			stop()
			return err
		}
	}
	go func() { events <- l.PlayEvents(playing) }()
	if cmd != nil {
		err = cmd.Wait()
	} else {
		fmt.Fprintf(say, "links %v; namespaces: ip netns exec %s|%s CMD; Ctrl-C ends the lab\n",
			l.LinkNames(), l.ClientName(), l.ServerName())
		<-ctx.Done()
	}
	stop()
	if played := <-events; !errors.Is(played, context.Canceled) {
		err = errors.Join(err, played)
	}
	return err
}
