package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
)

// knownLinks fails if a flag names an interface that does not exist. A command for one download does not wait until it
// does.
func (a *app) knownLinks(c *cobra.Command, flag string, cfg config.Config) error {
	names, _ := c.Flags().GetStringSlice(flag)
	if len(names) == 0 || a.candidates == nil || cfg.AppSocket != "" {
		return nil
	}
	all, _, err := a.candidates(cfg)
	if err != nil {
		return nil // the command says so
	}
	var there []string
	for _, i := range all {
		if (i.State != "" || i.Link.Via != "") && i.Link.Kind != link.KindLoopback {
			there = append(there, i.Link.Name)
		}
	}
	for _, name := range names {
		if !slices.Contains(there, name) {
			return fmt.Errorf("--%s %s: there is no interface with this name, but %s", flag, name,
				strings.Join(there, ", "))
		}
	}
	return nil
}
