package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/link"
)

// knownLinks fails if --link names an interface that does not exist. A command for one download does not wait until it does.
func (a *app) knownLinks(c *cobra.Command, cfg config.Config) error {
	if !c.Flags().Changed("link") || a.candidates == nil || cfg.AppSocket != "" {
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
	for _, name := range cfg.Links {
		if !slices.Contains(there, name) {
			return fmt.Errorf("--link %s: there is no interface with this name, but %s", name, strings.Join(there, ", "))
		}
	}
	return nil
}
