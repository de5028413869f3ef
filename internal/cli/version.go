package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  tributary version",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.stdout, a.versionLine())
			return err
		},
	}
}

func (a *app) versionLine() string {
	return fmt.Sprintf("tributary %s (%s %s/%s)", a.version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
