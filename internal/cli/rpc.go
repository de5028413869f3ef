package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/daemon"
)

func (a *app) rpcCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rpc",
		Short: "Let browser extensions made for aria2 order downloads",
		Long: `With  rpc = "127.0.0.1:6800"  in its configuration, the running proxy answers aria2's JSON-RPC, so that browser
extensions and front ends made for aria2 order downloads, which then run over every link. docs/RPC.md says how to connect them.`,
		Example: "  tributary rpc token",
	}
	c.AddCommand(&cobra.Command{
		Use:   "token",
		Short: "Print the token that extensions need",
		Long: `Print the token, called secret by extensions and front ends, without which no call is answered. It is made at the first
time. Whoever has it orders downloads as you: give it to extensions that you trust only. To change it, remove the file
rpc-token in ~/.local/state/tributary and restart the proxy.`,
		Example: `  tributary rpc token
  sudo STATE_DIRECTORY=/var/lib/tributary tributary rpc token    # of the system's service`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, err := daemon.RPCToken(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.stdout, token)
			return err
		},
	})
	c.AddCommand(&cobra.Command{
		Use:     "paired",
		Short:   "List the extensions that are paired",
		Long:    "List the origins of the browser extensions that were paired by a code, and since when. docs/RPC.md says how that is done.",
		Example: "  tributary rpc paired",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all, err := daemon.Pairings().All()
			for _, p := range all {
				fmt.Fprintf(a.stdout, "%s  %s\n", p.Since.Local().Format(time.DateTime), p.Origin)
			}
			return err
		},
	}, &cobra.Command{
		Use:     "unpair ORIGIN",
		Short:   "Let an extension in no longer",
		Long:    "End the pairing of a browser extension: its token is not accepted any more, from its next call on.",
		Example: "  tributary rpc unpair chrome-extension://mpkodccbngfoacfalldjimigbofkhgjn",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return daemon.Pairings().Remove(cmd.Context(), args[0])
		},
	})
	return c
}
