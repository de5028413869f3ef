package cli

import (
	"fmt"

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
	return c
}
