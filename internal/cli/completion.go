package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
)

// complete registers completions for the values of flags, for every command.
func (a *app) complete(c *cobra.Command) {
	values := map[string]cobra.CompletionFunc{
		"link":      a.linkNames,
		"config":    cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt),
		"directory": cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
	}
	for _, flag := range []string{"scheduler", "goal", "vpn", "spread", "log-level"} {
		values[flag] = cobra.FixedCompletions(config.Values(strings.ReplaceAll(flag, "-", "_")),
			cobra.ShellCompDirectiveNoFileComp)
	}
	for flag, f := range values {
		if c.Flags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, f) // fails only if the flag is unknown or already has a completion
		}
	}
	for _, sub := range c.Commands() {
		a.complete(sub)
	}
}

// commandNames completes the command of run: programs in $PATH, and then files.
func (a *app) commandNames(_ *cobra.Command, args []string,
	prefix string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 || strings.Contains(prefix, "/") {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var names []cobra.Completion
	for _, dir := range filepath.SplitList(a.getenv("PATH")) {
		entries, _ := os.ReadDir(dir) // a folder that is missing has no programs
		for _, e := range entries {
			if info, err := os.Stat(filepath.Join(dir, e.Name())); strings.HasPrefix(e.Name(), prefix) && err == nil &&
				info.Mode().IsRegular() && info.Mode()&0o111 != 0 && !slices.Contains(names, e.Name()) {
				names = append(names, e.Name())
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// linkNames lists the interfaces, and why Tributary uses each or not.
func (a *app) linkNames(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	all, _, err := a.candidates(config.Default())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	given, _ := cmd.Flags().GetStringSlice("link")
	except, _ := cmd.Flags().GetStringSlice("except")
	given = slices.Concat(given, except)
	var names []cobra.Completion
	for _, c := range all {
		if !slices.Contains(given, c.Link.Name) && c.Link.Kind != link.KindLoopback {
			names = append(names, cobra.CompletionWithDesc(c.Link.Name, c.Reason))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
