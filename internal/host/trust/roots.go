package trust

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// rootFiles are the files in which systems keep the certificates that they trust, in the same order as in crypto/x509.
var rootFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Alpine, Arch
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // CentOS
	"/etc/ssl/cert.pem",                                 // others
}

// Roots are authorities that servers are verified with: those of one file, so that they can be compared with those of
// other files.
type Roots struct {
	Path string
	text []byte
	all  certificates
}

// SystemRoots returns the authorities that this system trusts.
func SystemRoots() (Roots, error) { return rootsOf(rootFiles) }

// anchors are the folders for authorities that are not part of a system, such as a company's.
var anchors = []string{
	"usr/local/share/ca-certificates",          // Debian, Alpine
	"etc/pki/ca-trust/source/anchors",          // Fedora
	"etc/pki/trust/anchors",                    // openSUSE
	"etc/ca-certificates/trust-source/anchors", // Arch
}

// public returns the system's authorities without those that were installed on this machine: programs with a built-in
// list trust at most these. If an installed file cannot be read, there are none. root is the prefix of the system's
// paths.
func (r Roots) public(root string) certificates {
	all := maps.Clone(r.all)
	for _, folder := range anchors {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, is fs.DirEntry, err error) error {
			if err != nil || is.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			own := certificatesOf(text)
			if err == nil && len(own) == 0 {
				if _, err = x509.ParseCertificate(text); err == nil { // Fedora's folder may have DER
					own[sha256.Sum256(text)] = struct{}{}
				}
			}
			maps.DeleteFunc(all, func(c [sha256.Size]byte, _ struct{}) bool { _, ok := own[c]; return ok })
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return certificates{}
		}
	}
	return all
}

// CommandRoots returns the authorities that the proxy of a command verifies servers with: those that SSL_CERT_FILE
// names, otherwise the system's.
func CommandRoots(getenv func(string) string) (Roots, error) {
	if own := getenv("SSL_CERT_FILE"); own != "" {
		return rootsOf([]string{own})
	}
	return SystemRoots()
}

func rootsOf(files []string) (Roots, error) {
	for _, path := range files {
		if is, err := os.Stat(path); err != nil || !is.Mode().IsRegular() {
			continue
		}
		if text, err := os.ReadFile(path); err == nil {
			return Roots{path, text, certificatesOf(text)}, nil
		}
	}
	return Roots{}, fmt.Errorf("cannot find the certificates that this system trusts: looked for %s; "+
		"install ca-certificates, or name a file with SSL_CERT_FILE", strings.Join(files, ", "))
}

// Pool returns the authorities for a TLS configuration.
func (r Roots) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(r.text)
	return p
}

// within reports whether all authorities are among others. Whoever trusts the others then trusts no further server if
// it relies on these.
func (r Roots) within(others certificates) bool {
	for c := range r.all {
		if _, ok := others[c]; !ok {
			return false
		}
	}
	return true
}

// withinList is within for a list of authorities that a program brings, together with those that such lists have at
// most. A list without most of them is a limit that somebody has set.
func (r Roots) withinList(list, most certificates) bool {
	both := 0
	for c := range most {
		if _, ok := list[c]; ok {
			both++
		}
	}
	if 2*both < len(most) {
		most = nil
	}
	all := maps.Clone(list)
	all.add(most)
	return r.within(all)
}

// withinFile is within for the certificates in a file or in the files of a folder.
func (r Roots) withinFile(path string) bool { return r.within(certificatesIn(path)) }

// certificates is a set of certificates, by their SHA-256.
type certificates map[[sha256.Size]byte]struct{}

// certificatesOf returns the certificates in a PEM file.
func certificatesOf(text []byte) certificates {
	all := certificates{}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return all
		}
		if block.Type == "CERTIFICATE" {
			all[sha256.Sum256(block.Bytes)] = struct{}{}
		}
	}
}

// certificatesIn returns the certificates in a file, or in the files of a folder; none if it cannot be read.
func certificatesIn(path string) certificates {
	all := certificates{}
	files := []string{path}
	if is, err := os.Stat(path); err == nil && is.IsDir() {
		files, _ = filepath.Glob(filepath.Join(path, "*")) // fails only for a bad pattern
	}
	for _, file := range files {
		is, err := os.Stat(file)
		if err != nil || !is.Mode().IsRegular() {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		all.add(certificatesOf(text))
	}
	return all
}

func (c certificates) add(others certificates) {
	for k := range others {
		c[k] = struct{}{}
	}
}
