package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tributary-http/tributary/docs"
)

func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages to a folder",
		Long: `Write a manual page for each command to the folder man1 in DIR, and one for the configuration file to man5. Folders are
created if they do not exist.`,
		Example: `  tributary man ~/.local/share/man && man tributary-get && man tributary.toml`,
		Args:    takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			write := func(name, section, manual, text string) error {
				dir := filepath.Join(args[0], "man"+section)
				page := fmt.Sprintf("%% %q %q \"\" %q %q\n%s", strings.ToUpper(name), section, "Tributary "+a.version,
					manual, text)
				return errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name+"."+section),
					md2man.Render([]byte(page)), 0o644))
			}
			var each func(*cobra.Command) error
			each = func(c *cobra.Command) error {
				err := write(pageName(c), "1", "User Commands", manPage(c))
				for _, sub := range c.Commands() {
					if sub.IsAvailableCommand() {
						err = errors.Join(err, each(sub))
					}
				}
				return err
			}
			return errors.Join(each(cmd.Root()), write("tributary.toml", "5", "File Formats", configPage()))
		},
	}
}

// pageName returns the name of a command's page.
func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage returns the page of a command, in Markdown.
func manPage(c *cobra.Command) string {
	var page, options, status strings.Builder
	c.InitDefaultHelpFlag()
	c.Flags().VisitAll(func(f *pflag.Flag) {
		one := pflag.NewFlagSet("", pflag.ContinueOnError)
		one.AddFlag(f)
		if names, usage, ok := strings.Cut(strings.TrimSpace(one.FlagUsages()), "   "); ok {
			fmt.Fprintf(&options, "**%s**\n: %s\n\n", names, strings.TrimSpace(usage))
		}
	})
	for _, e := range exitsOf(c) {
		fmt.Fprintf(&status, "**%d**\n: %s\n\n", e.code, e.meaning)
	}
	also := []string{"**tributary.toml(5)**"}
	if c.HasParent() {
		also[0] = "**" + pageName(c.Parent()) + "(1)**"
	}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			also = append(also, "**"+pageName(sub)+"(1)**")
		}
	}
	for _, s := range []struct{ title, text string }{
		{"NAME", pageName(c) + ` \- ` + c.Short},
		{"SYNOPSIS", "**" + c.UseLine() + "**"},
		{"DESCRIPTION", cmp.Or(c.Long, c.Short)},
		{"OPTIONS", options.String()},
		{"EXIT STATUS", status.String()},
		{"EXAMPLES", "```\n" + c.Example + "\n```"},
	} {
		if s.title != "EXAMPLES" || c.Example != "" {
			fmt.Fprintf(&page, "# %s\n%s\n\n", s.title, s.text)
		}
	}
	if !c.HasParent() {
		page.WriteString(manSections)
	}
	return page.String() + "# SEE ALSO\n" + strings.Join(also, ", ") + "\n"
}

var relativeLink = regexp.MustCompile(`\[([^\]]+)\]\(([^)]+)\)`)

// configPage returns the page of the configuration file, in Markdown.
func configPage() string {
	_, text, _ := strings.Cut(docs.Configuration, "\n")
	text = strings.ReplaceAll(text, "\n## ", "\n### ")
	text = strings.ReplaceAll(relativeLink.ReplaceAllString(text, "$1 (docs/$2)"), "(docs/../", "(")
	return `# NAME
tributary.toml \- the configuration of Tributary

# DESCRIPTION
` + text + `
# FILES
**/usr/share/doc/tributary**: where packages install the documents that this page names.

# SEE ALSO
**tributary(1)**, **tributary-config(1)**, **tributary-serve(1)**
`
}

// manSections are the parts of tributary(1) that --help leaves to the documents.
const manSections = `# FILES

**$XDG_CONFIG_HOME/tributary/config.toml** or **~/.config/tributary/config.toml**: the configuration, described in
**tributary.toml(5)**.

**/etc/tributary/config.toml**: the configuration of the packaged service.

**$XDG_STATE_HOME/tributary** or **~/.local/state/tributary**: what Tributary learned about networks, incomplete downloads, keys and
tokens. The packaged service keeps them in **/var/lib/tributary**.

**/usr/share/doc/tributary**: where packages install the documents that the pages name.

# ENVIRONMENT

**XDG_CONFIG_HOME**, **XDG_STATE_HOME**, **XDG_RUNTIME_DIR**: where the files above and the control socket are.

**STATE_DIRECTORY**, **RUNTIME_DIRECTORY**: set by systemd for the service; they replace the XDG folders.

**SSL_CERT_FILE**, **SSL_CERT_DIR**: the certificates that get, run and serve trust, in place of the system's.

**http_proxy**, **https_proxy**, **all_proxy**: proxies that Tributary does not use; it warns about them.

`
