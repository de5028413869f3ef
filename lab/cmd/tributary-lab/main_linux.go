// Command tributary-lab runs programs in the lab of package netlab, and measures downloaders there side by side. It is
// a tool for developers: it needs root and Linux, and is not part of any package.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/lab/netlab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, "tributary-lab:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "tributary-lab",
		Short:         "Two network namespaces joined by emulated links (root)",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(runCommand(), benchCommand(), playCommand(), ttfbCommand(), clientsCommand(), relayCommand(),
		queueCommand(), putCommand(), echoCommand(), stripeCommand(), voipCommand(), traceCommand(), powerCommand(),
		schedulerCommand(),
		replayCommand(), plotCommand(), cleanCommand())
	return cmd
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// load reads a scenario, given the path of its file or the name of one that the project ships.
func load(name string) (netlab.Scenario, error) {
	if filepath.Ext(name) == "" {
		name = filepath.Join("testdata", "scenarios", name+".toml")
	}
	return netlab.Load(name)
}

func cleanCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "clean",
		Short: "Remove the leftovers of labs of dead processes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			swept, err := netlab.Sweep()
			for _, name := range swept {
				fmt.Fprintln(cmd.OutOrStdout(), "removed", name)
			}
			return err
		},
	}
}

func traceCommand() *cobra.Command {
	lte := netlab.DefaultLTE(1)
	mean := lte.Mean.String()
	cmd := &cobra.Command{
		Use:   "trace",
		Short: "Write a generated LTE-like trace (mahimahi format) to standard output",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := lte.Mean.UnmarshalText([]byte(mean)); err != nil {
				return err
			}
			trace, err := lte.Generate()
			if err != nil {
				return err
			}
			_, err = trace.WriteTo(cmd.OutOrStdout())
			return err
		},
	}
	f := cmd.Flags()
	f.Uint64Var(&lte.Seed, "seed", lte.Seed, "the same seed gives the same trace")
	f.DurationVar(&lte.Length, "length", lte.Length, "after it the trace repeats")
	f.StringVar(&mean, "mean", mean, "rate aimed at between outages")
	f.Float64Var(&lte.Spread, "spread", lte.Spread, "of the rate's levels around the mean, 0 to 1")
	f.Float64Var(&lte.Fade, "fade", lte.Fade, "depth of the fades, 0 to 1")
	f.DurationVar(&lte.Outages, "outages", lte.Outages, "mean time between outages, 0 = none")
	f.DurationVar(&lte.Outage, "outage", lte.Outage, "mean length of an outage")
	f.DurationVar(&lte.RampTime, "ramp", lte.RampTime, "time from a third of the rate to all of it")
	return cmd
}
