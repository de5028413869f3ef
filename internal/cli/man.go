package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages to a folder",
		Long: `Write a manual page (section 1) for each command to the folder DIR, which is created if it does not exist.

` + exitCodes,
		Example: `  tributary man ~/.local/share/man/man1 && man tributary-get`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true // no current date in the text
			root.Long += manSections
			header := &doc.GenManHeader{Section: "1", Source: "Tributary " + a.version, Manual: "User Commands"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			return nil
		},
	}
}

// manSections are the parts of tributary(1) that --help leaves to the documents.
const manSections = `

# FILES

**$XDG_CONFIG_HOME/tributary/config.toml** or **~/.config/tributary/config.toml**: the configuration, described in CONFIGURATION.md.

**/etc/tributary/config.toml**: the configuration of the packaged service.

**$XDG_STATE_HOME/tributary** or **~/.local/state/tributary**: what Tributary learned about networks, incomplete downloads, keys and
tokens. The packaged service keeps them in **/var/lib/tributary**.

# ENVIRONMENT

**XDG_CONFIG_HOME**, **XDG_STATE_HOME**, **XDG_RUNTIME_DIR**: where the files above and the control socket are.

**STATE_DIRECTORY**, **RUNTIME_DIRECTORY**: set by systemd for the service; they replace the XDG folders.

**SSL_CERT_FILE**, **SSL_CERT_DIR**: the certificates that get, run and serve trust, in place of the system's.

**http_proxy**, **https_proxy**, **all_proxy**: proxies that Tributary does not use; it warns about them.`
