package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/relay"
	"github.com/tributary-http/tributary/internal/relay/setup"
	"github.com/tributary-http/tributary/internal/transport"
)

// relayServer are the flags that setup and undo have in common.
type relayServer struct {
	file    string
	options []string
}

func (s *relayServer) flags(c *cobra.Command) {
	c.Flags().StringVar(&s.file, "config", "", "change the configuration in `FILE`")
	c.Flags().StringArrayVar(&s.options, "ssh-option", nil, "pass `KEY=VALUE` to ssh as its option -o; repeatable")
}

func (a *app) relaySetup() *cobra.Command {
	var at relayServer
	var port uint16
	var address, binary string
	var unmeasured bool
	c := &cobra.Command{
		Use:   "setup root@HOST",
		Short: "Install a relay on a server by ssh, and use it",
		Long: `Copy this program to a server by ssh, install it there as a relay, pair with it, add it to the configuration, and measure what
each link adds. HOST is a destination of ssh, of which ~/.ssh/config may say more. The relay is a service of systemd where that runs,
else a process in the background, which does not survive a reboot. Once more, it brings the server up to date. "relay undo" removes all.

` + exitCodes,
		Example: `  tributary relay setup root@relay.example.com
  tributary relay setup root@relay.example.com --port 8443 --ssh-option IdentityFile=~/.ssh/relay`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if binary == "" {
				var err error
				if binary, err = os.Executable(); err != nil {
					return err
				}
			}
			s, err := setup.Open(args[0], at.options)
			if err != nil {
				return usageError{err}
			}
			defer s.Close()
			if address == "" {
				host, err := s.HostName(ctx)
				if err != nil {
					return err
				}
				address = net.JoinHostPort(host, strconv.Itoa(int(port)))
			}
			cfg, err := a.loadForRelay(at.file, address)
			if err != nil {
				return usageError{err}
			}
			fmt.Fprintf(a.stderr, "installing the relay on %s ...\n", args[0])
			said, err := s.Install(ctx, binary, port)
			if err != nil {
				return err
			}
			fmt.Fprint(a.stdout, said)
			if err := pairInstalled(ctx, s, args[0], address); err != nil {
				return err
			}
			path, err := config.Edit(at.file, a.getenv, func(text string) (string, error) { return config.AddRelay(text, address) })
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "paired with %s, and added it to %s; to use it, start tributary serve again\n", address, path)
			if unmeasured {
				return nil
			}
			fmt.Fprintln(a.stderr, "measuring what each link adds ...")
			return a.measureRelay(ctx, cfg, address)
		},
	}
	at.flags(c)
	c.Flags().Uint16Var(&port, "port", setup.DefaultPort, "`PORT` at which the relay listens")
	c.Flags().StringVar(&address, "address", "", "`HOST:PORT` by which this machine reaches the relay, if it is not the host of ssh with --port")
	c.Flags().StringVar(&binary, "binary", "", "copy `FILE`, this program built for the server, if its architecture is another one")
	c.Flags().BoolVar(&unmeasured, "no-measure", false, "do not download anything to measure the links")
	return c
}

// loadForRelay returns the settings, and an error if a relay could not be added to them: before anything happens on the server.
func (a *app) loadForRelay(file, address string) (config.Config, error) {
	f, err := config.Load(file, a.getenv)
	if err != nil {
		return config.Config{}, err
	}
	cfg := f.Config
	cfg.Relay = config.Relay{Address: address, Mode: config.RelayTunnels}
	if err := cfg.Validate(); err != nil {
		return cfg, err
	}
	if f.Path == "" {
		return cfg, nil
	}
	text, err := os.ReadFile(f.Path)
	if err == nil {
		_, err = config.AddRelay(string(text), address)
	}
	return cfg, err
}

// pairInstalled pairs with a relay that was just installed.
func pairInstalled(ctx context.Context, s *setup.Server, destination, address string) error {
	before, err := relay.OwnKey(daemon.RelayFile(), address)
	if err != nil {
		return err
	}
	link, err := s.Invite(ctx, address, string(before))
	if err != nil {
		return err
	}
	i, err := relay.ParseInvitation(link)
	if err != nil {
		return err
	}
	if err := relay.Enrol(ctx, daemon.RelayFile(), i); err != nil {
		return fmt.Errorf("%w; it runs on the server: does a firewall there or between keep %s from you?", err, address)
	}
	return relay.SetInstalled(daemon.RelayFile(), address, destination)
}

// measureRelay prints what each link adds.
func (a *app) measureRelay(ctx context.Context, cfg config.Config, address string) error {
	log := slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	gains, all, err := transport.MeasureRelay(ctx, cfg, daemon.RelayFile(), address, log)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LINK\tROUND TRIP\tALONE\tADDS")
	for _, g := range gains {
		if g.Failure != nil {
			fmt.Fprintf(w, "%s\t-\t-\t%v\n", g.Link, g.Failure)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", g.Link, roundTrip(g.RTT.Seconds()), bitRate(g.Alone), bitRate(g.Adds))
	}
	fmt.Fprintf(w, "together\t\t%s\t\n", bitRate(all))
	if err := w.Flush(); err != nil {
		return err
	}
	if all == 0 {
		return errors.New("no link reaches the relay: is it down, or behind a firewall?")
	}
	return nil
}

func (a *app) relayUndo() *cobra.Command {
	var at relayServer
	var address string
	var here bool
	c := &cobra.Command{
		Use:   "undo root@HOST",
		Short: "Remove what \"relay setup\" has installed, here and on the server",
		Long: `Remove the relay that "relay setup" has installed on a server, with its keys, so that no other client can use it either; then
its keys here, and the relay from the configuration. With --here nothing happens on the server, which may be gone.

` + exitCodes,
		Example: `  tributary relay undo root@relay.example.com
  tributary relay undo --here root@relay.example.com`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			addresses := []string{address}
			if address == "" {
				var err error
				if addresses, err = relay.Installed(daemon.RelayFile(), args[0]); err != nil {
					return err
				}
			}
			if !here {
				s, err := setup.Open(args[0], at.options)
				if err != nil {
					return usageError{err}
				}
				defer s.Close()
				if err := s.Remove(cmd.Context()); err != nil {
					return fmt.Errorf("%w; if the server is gone: tributary relay undo --here %s", err, args[0])
				}
				fmt.Fprintf(a.stdout, "removed the relay from %s\n", args[0])
			}
			if len(addresses) == 0 {
				fmt.Fprintln(a.stderr, "tributary: this user has set up no relay there; if one was joined by hand, name it: --address HOST:PORT")
			}
			for _, one := range addresses {
				path, err := config.Edit(at.file, a.getenv, func(text string) (string, error) { return config.RemoveRelay(text, one) })
				if err != nil {
					return err
				}
				fmt.Fprintf(a.stdout, "removed %s from %s\n", one, path)
			}
			return relay.Forget(daemon.RelayFile(), addresses...)
		},
	}
	at.flags(c)
	c.Flags().StringVar(&address, "address", "", "`HOST:PORT` of the relay, if this user has not set it up")
	c.Flags().BoolVar(&here, "here", false, "remove it here only")
	return c
}
