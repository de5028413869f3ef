package cli

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/front/intercept"
	"github.com/tributary-http/tributary/internal/host/privilege"
)

func (a *app) caCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "ca",
		Short: "Manage an authority that lets serve divide https downloads from hosts you name",
		Long: `Create a certificate authority (CA) that is valid only for the hosts that you name, and make this system's programs
trust it. With intercept = true in the configuration, the proxy then decrypts connections to these hosts and divides
their downloads. "tributary run" does not need this. docs/RUN.md explains the risks of trusting an authority.

  1. tributary ca init --hosts HOST,...     create the authority; nothing trusts it yet
  2. sudo tributary ca install FILE         add its certificate to the system's trust store
  3. set intercept = true in the configuration, then run tributary serve`,
		Example: `  tributary ca init --hosts files.pythonhosted.org,registry.npmjs.org
  sudo tributary ca install ~/.local/state/tributary/ca.pem
  sudo tributary ca remove ~/.local/state/tributary/ca.pem && tributary ca remove`,
	}
	c.AddCommand(a.caInit(), a.caInstall(), a.caRemove(), a.caStatus())
	return c
}

func (a *app) caInit() *cobra.Command {
	var hosts []string
	c := &cobra.Command{
		Use:   "init --hosts HOST,...",
		Short: "Create an authority for some hosts",
		Long: `Create an authority for the given hosts and their subdomains. Its key is stored in your state folder and only you can
read it. Critical name constraints limit the authority to these hosts. The root's key signs one intermediate certificate
with the same constraints and is then discarded. No program trusts the authority until you run "ca install".`,
		Example: `  tributary ca init --hosts files.pythonhosted.org,registry.npmjs.org`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if len(hosts) == 0 {
				return usageError{errors.New("--hosts is missing: name the hosts that the authority is for")}
			}
			stored := daemon.StoredAuthority()
			host, _ := os.Hostname() // only for the authority's name
			authority, err := stored.Create(fmt.Sprintf("Tributary on %s, %s", host, time.Now().Format(time.DateOnly)),
				hosts)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%w; to replace it, run tributary ca remove first", err)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "created an authority for %s\ncertificate: %s\nprivate key: %s\n"+
				"nothing trusts it yet; to install it: %s\n",
				strings.Join(authority.Hosts(), ", "), stored.Certificate, stored.Key,
				privilege.Sudo("ca install "+stored.Certificate))
			return nil
		},
	}
	c.Flags().StringSliceVar(&hosts, "hosts", nil,
		"divide https downloads from this `HOST` and its subdomains; repeatable")
	return c
}

func (a *app) caInstall() *cobra.Command {
	return &cobra.Command{
		Use:   "install [FILE]",
		Short: "Add the authority to the system's trust store (root)",
		Long: `Add the authority's certificate to the system's trust store with update-ca-certificates. FILE is the certificate that
"ca init" printed; the default is your own authority. An authority that is not limited to some hosts is refused.
Programs that have their own trust store, such as browsers, are not affected.`,
		Example: `  sudo tributary ca install ~/.local/state/tributary/ca.pem`,
		Args:    takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, file, err := a.rootCertificate(args)
			if err != nil {
				return err
			}
			if err := needRoot("changing the system's trust store", "ca install "+file); err != nil {
				return err
			}
			text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw})
			if err := a.store.Add(cmd.Context(), text, intercept.Fingerprint(root)); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "this system now trusts the authority for %s until %s\n",
				strings.Join(intercept.Hosts(root), ", "), root.NotAfter.Format(time.DateOnly))
			return nil
		},
	}
}

func (a *app) caRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove [FILE]",
		Short: "Remove the authority from the trust store (root), and delete it",
		Long: `Remove the authority's certificate from the system's trust store. This needs root and restores the store to its earlier
state. Afterwards, "ca remove" without FILE deletes the authority and its key.`,
		Example: `  sudo tributary ca remove ~/.local/state/tributary/ca.pem && tributary ca remove`,
		Args:    takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, file, err := a.rootCertificate(args)
			if err != nil {
				return err
			}
			if print := intercept.Fingerprint(root); a.store.Has(print) {
				if err := needRoot("changing the system's trust store", "ca remove "+file); err != nil {
					return err
				}
				if err := a.store.Remove(cmd.Context(), print); err != nil {
					return err
				}
				fmt.Fprintln(a.stdout, "this system no longer trusts the authority")
			}
			if len(args) > 0 {
				return nil
			}
			stored := daemon.StoredAuthority()
			if err := errors.Join(os.Remove(stored.Key), os.Remove(stored.Certificate)); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, "deleted the authority")
			return nil
		},
	}
}

func (a *app) caStatus() *cobra.Command {
	return &cobra.Command{
		Use:     "status [FILE]",
		Short:   "Show the authority, and whether this system trusts it",
		Long:    "Show the authority's hosts, its certificate and whether this system trusts it.",
		Example: `  tributary ca status`,
		Args:    takes(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			root, file, err := a.rootCertificate(args)
			if err != nil {
				return err
			}
			print := intercept.Fingerprint(root)
			trusted := "no"
			if a.store.Has(print) {
				trusted = "yes"
			}
			fmt.Fprintf(a.stdout,
				"certificate  %s\nhosts        %s\nuntil        %s\nsha256       %s\ntrusted      %s\n",
				file, strings.Join(intercept.Hosts(root), ", "), root.NotAfter.Format(time.DateOnly), print, trusted)
			return nil
		},
	}
}

// maxCertificate is the maximum number of bytes read from a certificate file.
const maxCertificate = 64 << 10

// rootCertificate returns the certificate of the authority in the file that args name, or of this user's authority, and
// the path of the file.
func (a *app) rootCertificate(args []string) (root *x509.Certificate, file string, err error) {
	if len(args) > 0 {
		file = args[0]
	} else {
		file = daemon.StoredAuthority().Certificate
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) && len(args) == 0 {
		return nil, "", fmt.Errorf("there is no authority; create one with tributary ca init --hosts HOST,...: %w", err)
	}
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCertificate))
	if err != nil {
		return nil, "", err
	}
	if root, _, err = intercept.ParseRoot(text); err != nil {
		return nil, "", fmt.Errorf("%s: %w", file, err)
	}
	return root, file, nil
}
