package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Check the configuration file, or show the settings in force",
		Long: `The configuration is a TOML file: the one that --config names, or $XDG_CONFIG_HOME/tributary/config.toml. Without one
the defaults apply.`,
		Example: `  tributary config check
  tributary config show`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { // without it an unknown word would print the help and exit with 0
			return usageError{errors.New("name a subcommand: check or show")}
		},
	}
	c.AddCommand(a.configCheck(), a.configShow())
	return c
}

func (a *app) configCheck() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Name everything that is wrong with the configuration file",
		Long: `Read the configuration file as serve does and name everything that is wrong with it, with its line. A running proxy
takes on the file with: systemctl reload, or kill -HUP.

Exit codes: 0 nothing is wrong, 2 something is.`,
		Example: `  tributary config check
  tributary config check /etc/tributary/config.toml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				file = args[0]
			}
			f, err := config.Load(file, a.getenv)
			if err == nil {
				err = f.Check()
			}
			switch {
			case err != nil:
				return usageError{err}
			case f.Path == "":
				fmt.Fprintln(a.stdout, "there is no configuration file: the defaults apply")
			default:
				fmt.Fprintf(a.stdout, "%s: ok\n", f.Path)
			}
			return nil
		},
	}
	c.Flags().StringVar(&file, "config", "", "check `FILE`")
	return c
}

func (a *app) configShow() *cobra.Command {
	var file string
	var js bool
	c := &cobra.Command{
		Use:   "show",
		Short: "Show every setting, and where it comes from",
		Long: `Print the settings in force as a configuration file: it can be saved and edited. A comment says where each value comes
from: "default", or a line of the file. Flags of serve lie over them.

` + exitCodes,
		Example: `  tributary config show
  tributary config show > ~/.config/tributary/config.toml
  tributary config show --json | jq '.settings[] | select(.origin != "default")'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			f, err := config.Load(file, a.getenv)
			if err == nil {
				err = f.Check()
			}
			switch {
			case err != nil:
				return usageError{err}
			case js:
				return f.WriteJSON(a.stdout)
			}
			return f.WriteTOML(a.stdout)
		},
	}
	c.Flags().StringVar(&file, "config", "", "show the settings of `FILE`")
	c.Flags().BoolVar(&js, "json", false, "print JSON")
	return c
}
