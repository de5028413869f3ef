package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/cli"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/lab/literature"
	"github.com/tributary-http/tributary/lab/netlab"
)

// schedulerCommand runs the product with a scheduler that it does not have.
func schedulerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "with-scheduler NAME serve [FLAGS]",
		Short: "Run tributary serve with any scheduler of docs/SCHEDULERS.md",
		Long: `Run tributary serve, built into this program, with any scheduler of docs/SCHEDULERS.md. Everything after the name is passed
on: see tributary serve --help. The names:

  ` + strings.Join(literature.Names(), ", "),
		Example:            `  tributary-lab with-scheduler dems serve --link wlan0 --link wwan0`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || strings.HasPrefix(args[0], "-") {
				return cmd.Help()
			}
			scheduler, err := literature.Maker(args[0])
			if err == nil {
				os.Exit(cli.MainWith(args[1:], "", scheduler))
			}
			return err
		},
	}
}

// withScheduler sets the scheduler of a tributary serve, "" for its default one. This program itself serves with one
// that the product does not have.
func withScheduler(o *netlab.TributaryOptions, name string) error {
	if name == "" || slices.Contains(schedule.Names(), name) {
		o.Scheduler = name
		return nil
	}
	if _, err := literature.Maker(name); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	o.Binary, o.Before = self, []string{"with-scheduler", name}
	return nil
}
