package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
)

// complete registers completions for the values of flags, for every command.
func (a *app) complete(c *cobra.Command) {
	values := map[string]cobra.CompletionFunc{
		"link":      a.linkNames,
		"scheduler": cobra.FixedCompletions(config.Schedulers(), cobra.ShellCompDirectiveNoFileComp),
		"log-level": cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp),
		"config":    cobra.FixedCompletions([]string{"toml"}, cobra.ShellCompDirectiveFilterFileExt),
		"directory": cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs),
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

// linkNames lists the interfaces, and why Tributary uses each or not.
func (a *app) linkNames(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	all, _, err := a.candidates(config.Default())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	given, _ := cmd.Flags().GetStringSlice("link")
	var names []cobra.Completion
	for _, c := range all {
		if !slices.Contains(given, c.Link.Name) {
			names = append(names, cobra.CompletionWithDesc(c.Link.Name, c.Reason))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
