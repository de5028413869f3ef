package cli

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/demo"
	"github.com/tributary-http/tributary/internal/front/get"
	"github.com/tributary-http/tributary/internal/host/trust"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// app is one run of the command line.
type app struct {
	version string
	// rawStdout and rawStderr are for output other than text: the bytes of a file, and the escape sequences that draw
	// bars and pages.
	rawStdout, rawStderr io.Writer
	// stdout and stderr are for all text, which they forward to the raw ones. run sets them.
	stdout, stderr *printable
	stdin          io.Reader
	getenv         func(string) string

	// serve runs the proxy until ctx is canceled, then drains. It applies new settings when reloads requests it. If it
	// cannot listen, the error is or wraps a *net.OpError.
	serve func(ctx context.Context, cfg config.Config, log *slog.Logger, reloads daemon.Reloads) error
	// fetch runs do with a Transport that uses all links.
	fetch func(
		ctx context.Context, cfg config.Config, roots *x509.CertPool, log *slog.Logger,
		do func(context.Context, http.RoundTripper) error,
	) error
	// candidates lists the interfaces and whether serve would use each.
	candidates func(config.Config) ([]discover.Candidate, *link.Resolver, error)
	// terminal reports whether stderr is a terminal, so that bars can be drawn.
	terminal bool
	// outTerminal reports whether stdout is a terminal.
	outTerminal bool
	// uid is the user.
	uid int
	// service is the packaged service of this machine.
	service service
	// args are the arguments of this run.
	args []string
	// proxy starts the proxy of the demo.
	proxy demo.Proxy
	// store is the system's store of trusted certificates.
	store trust.Store
}

// run parses args, runs the command, prints its error and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	a.stdout, a.stderr = &printable{to: a.rawStdout}, &printable{to: a.rawStderr}
	started := false
	root := a.root(&started)
	root.SetArgs(args)
	a.args = args
	command, err := root.ExecuteContextC(ctx)
	if err != nil && !started { // cobra's own error about flags, arguments, or an unknown command
		if command == root && strings.HasPrefix(err.Error(), "unknown command") {
			if similar := root.SuggestionsFor(args[0]); len(similar) > 0 {
				err = fmt.Errorf("%w: did you mean %s?", err, strings.Join(similar, " or "))
			}
		}
		err = usageError{err}
	}
	if err != nil && !errors.As(err, new(endedError)) {
		fmt.Fprintln(a.stderr, complaint("", err))
		var usage usageError
		if errors.As(err, &usage) && !errors.As(err, new(config.Problem)) {
			fmt.Fprintf(a.stderr, "tributary: for usage, run %s --help\n", command.CommandPath())
		}
	}
	return exitCode(err)
}

// complaint formats an error for the user. Each line is marked as coming from this program. The error of a download is
// kept on one line, since it may quote a server.
func complaint(about string, err error) string {
	text := about + err.Error()
	if errors.As(err, new(*get.Error)) {
		text = strings.ReplaceAll(text, "\n", `\n`)
	}
	return "tributary: " + strings.ReplaceAll(text, "\n", "\ntributary: ")
}

// root returns the root command. started is set when a command starts, after all arguments were parsed.
func (a *app) root(started *bool) *cobra.Command {
	root := &cobra.Command{
		Use:   "tributary",
		Short: "A local HTTP proxy that spreads each download over all network links",
		Long: `Tributary is a local HTTP proxy. It spreads a large download over all network links of this machine (Wi-Fi, LTE,
Ethernet, ...) and continues if one of them fails.`,
		Example: `  tributary serve
  http_proxy=http://127.0.0.1:8080 curl -O http://deb.debian.org/debian/ls-lR.gz
  tributary get https://example.com/big.iso
  tributary links
  tributary demo`,
		SilenceUsage:               true,
		DisableSuggestions:         true, // they would have four lines: see run
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		PersistentPreRun:           func(*cobra.Command, []string) { *started = true },
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetGlobalNormalizationFunc(normalize)
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		help(c, args)
		fmt.Fprintln(a.stdout, "\nExit codes:")
		for _, e := range exitsOf(c) {
			fmt.Fprintf(a.stdout, "  %-3d  %s\n", e.code, e.meaning)
		}
	})
	root.AddCommand(a.serveCommand(), a.getCommand(), a.runCommand(), a.linksCommand(), a.doctorCommand(),
		a.statusCommand(), a.configCommand(),
		a.redirectCommand(), a.relayCommand(), a.useCommand(), a.rpcCommand(), a.superviseCommand(), a.caCommand(),
		a.demoCommand(), a.manCommand(), a.versionCommand())
	root.InitDefaultCompletionCmd()
	arrange(root)
	for _, c := range root.Commands() {
		expectSubcommand(c)
	}
	root.Version = a.versionLine()
	root.SetVersionTemplate("{{.Version}}\n")
	root.Flags().BoolP("version", "V", false, "print the version")
	a.complete(root)
	return root
}

// groups are the commands by purpose, for the help. The others follow as additional ones.
var groups = []struct {
	title    string
	commands []string
}{
	{"Download:", []string{"get", "run"}},
	{"The proxy:", []string{"serve", "status", "use", "redirect", "rpc", "ca"}},
	{"Links and settings:", []string{"links", "doctor", "config", "relay"}},
}

// arrange puts the commands into groups.
func arrange(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, name := range g.commands {
			for _, c := range root.Commands() {
				if c.Name() == name {
					c.GroupID = g.title
				}
			}
		}
	}
}

// expectSubcommand lets a command that only has subcommands fail without a known one, where cobra would print the help
// and succeed.
func expectSubcommand(c *cobra.Command) {
	if !c.HasSubCommands() || c.Runnable() && c.Name() != "completion" {
		return
	}
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return fmt.Errorf("%s has no subcommand %q: use one of %s", c.CommandPath(), args[0],
				strings.Join(names, ", "))
		}
		return fmt.Errorf("missing subcommand: one of %s", strings.Join(names, ", "))
	}
	c.Run = func(*cobra.Command, []string) {}
}

// takes returns the check of a command with at least least and at most most arguments.
func takes(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fmt.Errorf("an argument is missing: %s", c.UseLine())
		case len(args) > most:
			return fmt.Errorf("%q is one argument too many: %s", args[most], c.UseLine())
		}
		return nil
	}
}

// normalize allows every flag to be written like its key in the configuration file.
func normalize(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "links" {
		name = "link"
	}
	return pflag.NormalizedName(strings.ReplaceAll(name, "_", "-"))
}
