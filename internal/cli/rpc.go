package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/front/control"
)

func (a *app) rpcCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rpc",
		Short: "Manage access for browser extensions that speak aria2's JSON-RPC",
		Long: `With rpc = "127.0.0.1:6800" in the configuration, the proxy serves aria2's JSON-RPC interface. Browser extensions and
front ends made for aria2 can then start downloads, which use all links. docs/RPC.md explains how to connect them.`,
		Example: "  tributary rpc token",
	}
	c.AddCommand(&cobra.Command{
		Use:   "token",
		Short: "Print the RPC token (aria2 calls it the secret)",
		Long: `Print the token that every RPC call must carry. Extensions and front ends call it the secret. It is created on first use.
Anyone who has the token can start downloads as you, so give it only to extensions that you trust. To change it, delete
~/.local/state/tributary/rpc-token and restart the proxy.`,
		Example: `  tributary rpc token
  sudo tributary rpc token    # beside the packaged service: the token of the service`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, err := a.rpcToken(cmd.Context())
			if err != nil {
				return err
			}
			if f, err := config.Load(a.configFile(""), a.getenv); err == nil && f.RPC == "" {
				fmt.Fprintf(a.stderr, "warning: RPC is off: set rpc = \"127.0.0.1:6800\" in %s and restart the proxy\n",
					cmp.Or(f.Path, config.DefaultPath(a.getenv)))
			}
			_, err = fmt.Fprintln(a.stdout, token)
			return err
		},
	})
	c.AddCommand(a.pairCommand(), a.pageCommand(), &cobra.Command{
		Use:     "paired",
		Short:   "List the paired browser extensions",
		Long:    "List the origin of each paired browser extension and the time of its pairing. docs/RPC.md explains how to pair one.",
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
		Short:   "Revoke the pairing of a browser extension",
		Long:    "Revoke the pairing of a browser extension. Its next call is refused.",
		Example: "  tributary rpc unpair chrome-extension://mpkodccbngfoacfalldjimigbofkhgjn",
		Args:    takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return daemon.Pairings().Remove(cmd.Context(), args[0])
		},
	})
	return c
}

// rpcToken returns the token of the service for root, otherwise that of the user.
func (a *app) rpcToken(ctx context.Context) (string, error) {
	path, ok := a.serviceState("rpc-token")
	if !ok {
		return daemon.RPCToken(ctx)
	}
	token, err := daemon.ServiceRPCToken(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the service has no token yet: set rpc = \"127.0.0.1:6800\" in %s, and run: systemctl restart tributary", a.service.config)
	}
	return token, err
}

func (a *app) pairCommand() *cobra.Command {
	return a.codeCommand(cobra.Command{
		Use:   "pair",
		Short: "Print a code with which a browser extension can be paired",
		Long: `Print a code for the options of the browser extension. The running proxy gives the extension that shows it a token of its
own. A code is valid once, for five minutes. Anyone who has it can start downloads as you: enter it nowhere else.`,
		Example: "  tributary rpc pair",
	}, func(ctx context.Context, client *control.Client) (string, error) {
		code, err := client.Pair(ctx)
		for i := len(code) - 5; i > 0; i -= 5 {
			code = code[:i] + "-" + code[i:]
		}
		return code, err
	})
}

func (a *app) pageCommand() *cobra.Command {
	return a.codeCommand(cobra.Command{
		Use:   "page",
		Short: "Print the address at which the live page can change downloads",
		Long: `Print the address of the live page at which you can add, pause, order and remove downloads. It contains a code, which is valid
once, for five minutes: open it in a browser of your own. The page keeps control until the proxy ends, or until you open another
one. The address is a new one after each start of the proxy.`,
		Example: "  tributary rpc page",
	}, func(ctx context.Context, client *control.Client) (string, error) { return client.Page(ctx) })
}

// codeCommand returns a command that asks the running proxy for a text with a code, and prints it.
func (a *app) codeCommand(c cobra.Command, ask func(context.Context, *control.Client) (string, error)) *cobra.Command {
	var file, socket string
	c.Args = cobra.NoArgs
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		client, _, err := a.reach(cmd.Context(), file, socket)
		if err != nil {
			return err
		}
		defer client.Close()
		text, err := ask(cmd.Context(), client)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.stdout, text)
		return err
	}
	c.Flags().StringVar(&file, "config", "", "read settings from `FILE`, as serve does")
	c.Flags().StringVar(&socket, "control", "", "ask the proxy over the socket at `PATH`")
	return &c
}
