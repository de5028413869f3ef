package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/doctor"
)

// errUnfit says that doctor found something that must be mended.
var errUnfit = errors.New("something must be mended: see the lines with fail")

func (a *app) doctorCommand() *cobra.Command {
	var flags linkFlags
	var js, offline bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find problems that keep Tributary from working here, and how to fix them",
		Long: `Look at what Tributary needs: the kernel, permission to bind sockets to links, a route and DNS for each link, reverse
path filtering, free ports, proxy variables, limits. Each finding comes with the command or setting that mends it.
Nothing is changed. One DNS question for example.com is sent over each link, and one to its router where no other server
answers; a connection is made to each upstream proxy. With --offline, none.

Exit codes: 0 nothing must be mended (there may be warnings), 1 failure, 2 wrong usage, 10 something must be mended.`,
		Example: `  tributary doctor
  tributary doctor --offline --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := doctor.Options{Getenv: a.getenv, Online: !offline, Candidates: a.candidates}
			o.ConfigFile = config.Find(flags.file, a.getenv)
			if o.Config, o.ConfigErr = flags.config(cmd, a.getenv); o.ConfigErr != nil {
				o.Config = config.Default() // the rest can still be looked at
			}
			all := doctor.Judge(doctor.Collect(cmd.Context(), o))
			var err error
			if js {
				err = printJSON(a.stdout, all)
			} else {
				err = printChecks(a.stdout, all)
			}
			if doctor.Failed(all) {
				err = errors.Join(err, errUnfit)
			}
			return err
		},
	}
	flags.register(c)
	c.Flags().BoolVar(&js, "json", false, "print JSON")
	c.Flags().BoolVar(&offline, "offline", false, "send nothing")
	return c
}

func printChecks(w io.Writer, all []doctor.Check) error {
	width := 0
	for _, c := range all {
		width = max(width, len(c.Name))
	}
	for _, c := range all {
		indent := "\n" + strings.Repeat(" ", width+11)
		if _, err := fmt.Fprintf(w, "%-7s  %-*s  %s\n", c.Verdict, width, c.Name, strings.ReplaceAll(c.Found, "\n", indent)); err != nil {
			return err
		}
		if c.Fix != "" {
			fmt.Fprintf(w, "%*s -> %s\n", width+9, "", c.Fix)
		}
	}
	return nil
}
