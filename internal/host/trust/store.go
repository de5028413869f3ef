package trust

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Store is the system's store of certificates: a folder of certificates, and a program that converts them to the form
// that programs read. Debian and its derivatives have one (update-ca-certificates(8)).
type Store struct {
	Folder string
	Links  string // folder in which the program creates links to the certificates, and links named by their hashes
	Update string // name of the program
}

// SystemStore is the store of this system.
var SystemStore = Store{"/usr/local/share/ca-certificates", "/etc/ssl/certs", "update-ca-certificates"}

// path returns the file of the certificate with a fingerprint in hexadecimal.
func (s Store) path(fingerprint string) string {
	return filepath.Join(s.Folder, "tributary-"+fingerprint[:16]+".crt")
}

// Has reports whether a certificate is in the store.
func (s Store) Has(fingerprint string) bool {
	_, err := os.Lstat(s.path(fingerprint))
	return err == nil
}

// Add adds a certificate in PEM form to the store. If it fails, it undoes the change. It requires root.
func (s Store) Add(ctx context.Context, certificate []byte, fingerprint string) error {
	path := s.path(fingerprint)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("this system has no %s: add the certificate with the tools of this system: %w", s.Folder, err)
	case err != nil:
		return err
	}
	_, err = f.Write(certificate)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = s.update(ctx)
	}
	if err != nil {
		if undo := s.Remove(context.WithoutCancel(ctx), fingerprint); undo != nil {
			err = fmt.Errorf("%w; and the change could not be undone: %w", err, undo)
		}
	}
	return err
}

// Remove removes a certificate from the store. It requires root. The program leaves dangling links, so Remove deletes
// them; the program's --fresh would also delete links that an administrator created.
func (s Store) Remove(ctx context.Context, fingerprint string) error {
	path := s.path(fingerprint)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(s.Links)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	own := strings.TrimSuffix(filepath.Base(path), ".crt") + ".pem"
	for _, e := range entries {
		link := filepath.Join(s.Links, e.Name())
		if to, err := os.Readlink(link); err == nil && (to == path || to == own) {
			if err := os.Remove(link); err != nil {
				return err
			}
		}
	}
	return s.update(ctx)
}

func (s Store) update(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, s.Update).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", s.Update, err, out)
	}
	return nil
}
