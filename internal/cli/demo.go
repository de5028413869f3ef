package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/demo"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Show it on this machine: no root, no network, under a minute",
		Long: `Start an origin and two emulated links on loopback, download one object over each link alone, over both through the
proxy, and once more with a link that dies on the way; print the times.`,
		Example: "  tributary demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stopping := func(os.Signal) { fmt.Fprintln(a.stderr, "tributary: stopping") }
			err := untilSignaled(cmd.Context(), 0, stopping, func(ctx context.Context) error {
				return demo.Run(ctx, a.stdout, a.proxy)
			})
			if errors.Is(err, context.Canceled) {
				return errors.New("demo stopped before its end")
			}
			return err
		},
	}
}
