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
		Short: "Try Tributary on this machine in under a minute, without root or network",
		Long: `Start a web server and two emulated links on loopback. Download one file over each link alone, over both links through
the proxy, and over both links while one of them fails. Print the time that each download takes.`,
		Example: "  tributary demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stopping := func(os.Signal) { fmt.Fprintln(a.stderr, "tributary: stopping") }
			err := untilSignaled(cmd.Context(), 0, stopping, func(ctx context.Context) error {
				return demo.Run(ctx, a.stdout, a.proxy)
			})
			if errors.Is(err, context.Canceled) {
				return errors.New("the demo was interrupted")
			}
			return err
		},
	}
}
