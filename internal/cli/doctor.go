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

// errUnfit reports that doctor found a problem that must be fixed.
var errUnfit = errors.New("problems found: see the lines that begin with fail")

func (a *app) doctorCommand() *cobra.Command {
	var flags linkFlags
	var js, offline bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find problems that keep Tributary from working here, and how to fix them",
		Long: `Check everything that Tributary needs: the kernel, the permission to bind sockets to links, a route and DNS for each link,
reverse path filtering, free ports, proxy variables and resource limits. Each problem comes with the command or setting
that fixes it. Nothing is changed.

Over each link, doctor sends one DNS query for example.com, and another one to the link's router if no other server
answers. It also connects to each upstream proxy. With --offline it sends nothing.`,
		Example: `  tributary doctor
  tributary doctor --offline --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := doctor.Options{Getenv: a.getenv, Online: !offline, Candidates: a.candidates}
			o.ConfigFile = a.configFile(flags.file)
			if o.Config, o.ConfigErr = flags.config(cmd, a); o.ConfigErr != nil {
				o.Config = config.Default() // the rest can still be checked
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
	c.Flags().BoolVar(&offline, "offline", false, "do not send anything over the network")
	return c
}

func printChecks(w io.Writer, all []doctor.Check) error {
	width := 0
	for _, c := range all {
		width = max(width, len(c.Name))
	}
	for _, c := range all {
		indent := "\n" + strings.Repeat(" ", width+11)
		if _, err := fmt.Fprintf(w, "%-7s  %-*s  %s\n", c.Verdict, width, c.Name,
			strings.ReplaceAll(c.Found, "\n", indent)); err != nil {
			return err
		}
		if c.Fix != "" {
			fmt.Fprintf(w, "%*s -> %s\n", width+9, "", c.Fix)
		}
	}
	return nil
}
