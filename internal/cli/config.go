package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Check the configuration file, or show the effective settings",
		Long: `The configuration is a TOML file, given by --config or found at $XDG_CONFIG_HOME/tributary/config.toml. Without a file,
the defaults apply. The packaged service reads /etc/tributary/config.toml: beside it, root's commands about the proxy
(config, links, doctor, status, redirect, use, rpc) read that file, too.`,
		Example: `  tributary config check
  tributary config show
  tributary config path`,
	}
	c.AddCommand(a.configCheck(), a.configShow(), a.configPath())
	return c
}

func (a *app) configCheck() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check the configuration file and report every error",
		Long: `Read the configuration file as serve does, and report every error with its line number. To make a running proxy reload
the file, run systemctl reload tributary or send it SIGHUP.`,
		Example: `  tributary config check
  tributary config check /etc/tributary/config.toml`,
		Args: takes(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				file = args[0]
			}
			f, err := config.Load(a.configFile(file), a.getenv)
			if err == nil {
				err = f.Check()
			}
			switch {
			case err != nil:
				return usageError{err}
			case f.Path == "":
				a.usedConfig("")
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
		Long: `Print the effective settings in the format of the configuration file, so that you can save and edit them. A comment
shows where each value comes from: "default", or a line of the file. Flags of serve override these settings.`,
		Example: `  tributary config show
  tributary config show > ~/.config/tributary/config.toml
  tributary config show --json | jq '.settings[] | select(.origin != "default")'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			f, err := config.Load(a.configFile(file), a.getenv)
			if err == nil {
				err = f.Check()
			}
			switch {
			case err != nil:
				return usageError{err}
			case js:
				return f.WriteJSON(a.stdout)
			}
			a.usedConfig(f.Path)
			return f.WriteTOML(a.stdout)
		},
	}
	c.Flags().StringVar(&file, "config", "", "show the settings of `FILE`")
	c.Flags().BoolVar(&js, "json", false, "print JSON")
	return c
}

func (a *app) configPath() *cobra.Command {
	return &cobra.Command{
		Use:   "path",
		Short: "Print the path of the configuration file",
		Long:  "Print the path of the configuration file that the commands about the proxy read, or would read if it existed.",
		Example: `  tributary config path
  "$EDITOR" "$(tributary config path)"`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path := cmp.Or(a.configFile(""), config.DefaultPath(a.getenv))
			if path == "" {
				return errors.New("neither XDG_CONFIG_HOME nor HOME is set: name a file with --config")
			}
			_, err := fmt.Fprintln(a.stdout, path)
			return err
		},
	}
}
