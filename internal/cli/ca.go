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
	"github.com/tributary-http/tributary/internal/intercept"
)

func (a *app) caCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "ca",
		Short: "Open https connections to some hosts for good, for all programs",
		Long: `Make an authority whose certificates hold for the hosts that you name and no others, and have this system's programs trust
it. With intercept = true in the configuration, the proxy then opens their connections to these hosts and divides the
downloads in them. "tributary run" needs none of this. docs/RUN.md says what it means to trust an authority.

  1. tributary ca init --hosts HOST,...     makes it, for you alone; nothing trusts it yet
  2. sudo tributary ca install FILE         puts its certificate into the system's store
  3. intercept = true in the configuration, and tributary serve

` + exitCodes,
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
		Short: "Make an authority for some hosts",
		Long: `Make an authority for the hosts and all below them. Its key is in your folder of state, and only you can read it. The
certificates of an authority hold for its hosts only (critical name constraints), and the key of the certificate that is
trusted is thrown away once it has signed a second one with the same constraints. Nothing trusts it before "ca install".

` + exitCodes,
		Example: `  tributary ca init --hosts files.pythonhosted.org,registry.npmjs.org`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if len(hosts) == 0 {
				return usageError{errors.New("--hosts is missing: the authority is for the hosts that you name")}
			}
			stored := daemon.StoredAuthority()
			host, _ := os.Hostname() // only for its name
			authority, err := stored.Create(fmt.Sprintf("Tributary on %s, %s", host, time.Now().Format(time.DateOnly)), hosts)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%w; tributary ca remove removes the authority that there is", err)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "an authority for %s\nits certificate: %s\nits key, for you alone: %s\n"+
				"nothing trusts it yet: sudo tributary ca install %s\n",
				strings.Join(authority.Hosts(), ", "), stored.Certificate, stored.Key, stored.Certificate)
			return nil
		},
	}
	c.Flags().StringSliceVar(&hosts, "hosts", nil, "a `HOST` to open connections to, with those below it; repeatable")
	return c
}

func (a *app) caInstall() *cobra.Command {
	return &cobra.Command{
		Use:   "install [FILE]",
		Short: "Put the authority's certificate into the system's store (root)",
		Long: `Put the authority's certificate into the system's store, by update-ca-certificates. FILE is what "ca init" named; without it,
that of the user who runs this. The certificate of an authority for all hosts is refused. Programs with a store of their
own, as browsers have, do not trust it by that.

` + exitCodes,
		Example: `  sudo tributary ca install ~/.local/state/tributary/ca.pem`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, file, err := a.rootCertificate(args)
			if err != nil {
				return err
			}
			if err := needRoot("changing the system's store of certificates", "ca install "+file); err != nil {
				return err
			}
			text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw})
			if err := a.store.Add(cmd.Context(), text, intercept.Fingerprint(root)); err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "this system trusts the authority for %s until %s\n",
				strings.Join(intercept.Hosts(root), ", "), root.NotAfter.Format(time.DateOnly))
			return nil
		},
	}
}

func (a *app) caRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove [FILE]",
		Short: "Undo ca install (root), then ca init",
		Long: `Take the authority's certificate out of the system's store, which takes root; after that the store is as it was. Once it is
out, "ca remove" without FILE deletes the authority with its key.

` + exitCodes,
		Example: `  sudo tributary ca remove ~/.local/state/tributary/ca.pem && tributary ca remove`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, file, err := a.rootCertificate(args)
			if err != nil {
				return err
			}
			if print := intercept.Fingerprint(root); a.store.Has(print) {
				if err := needRoot("changing the system's store of certificates", "ca remove "+file); err != nil {
					return err
				}
				if err := a.store.Remove(cmd.Context(), print); err != nil {
					return err
				}
				fmt.Fprintln(a.stdout, "this system does not trust the authority any more")
			}
			if len(args) > 0 {
				return nil
			}
			stored := daemon.StoredAuthority()
			if err := errors.Join(os.Remove(stored.Key), os.Remove(stored.Certificate)); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, "the authority is deleted")
			return nil
		},
	}
}

func (a *app) caStatus() *cobra.Command {
	return &cobra.Command{
		Use:     "status [FILE]",
		Short:   "Show the authority, and whether this system trusts it",
		Long:    "Show the authority's hosts, its certificate and whether this system trusts it.\n\n" + exitCodes,
		Example: `  tributary ca status`,
		Args:    cobra.MaximumNArgs(1),
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
			fmt.Fprintf(a.stdout, "certificate  %s\nhosts        %s\nuntil        %s\nsha256       %s\ntrusted      %s\n",
				file, strings.Join(intercept.Hosts(root), ", "), root.NotAfter.Format(time.DateOnly), print, trusted)
			return nil
		},
	}
}

// maxCertificate bounds the file of a certificate.
const maxCertificate = 64 << 10

// rootCertificate returns the certificate of the authority in the file that was named, or of this user's, and the file.
func (a *app) rootCertificate(args []string) (root *x509.Certificate, file string, err error) {
	if len(args) > 0 {
		file = args[0]
	} else {
		file = daemon.StoredAuthority().Certificate
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) && len(args) == 0 {
		return nil, "", fmt.Errorf("there is no authority: make one with tributary ca init --hosts HOST,...: %w", err)
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
