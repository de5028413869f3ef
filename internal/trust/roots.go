package trust

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
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

// Roots are authorities that servers are verified with: those of one file, so that they can be compared with those of other files.
type Roots struct {
	Path string
	text []byte
	all  certificates
}

// SystemRoots returns the authorities that this system trusts.
func SystemRoots() (Roots, error) { return rootsOf(rootFiles) }

// CommandRoots returns the authorities that the proxy of a command verifies servers with: those that SSL_CERT_FILE names, otherwise
// the system's.
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

// within reports whether all authorities are among others. Whoever trusts the others then trusts no further server if it relies on
// these.
func (r Roots) within(others certificates) bool {
	for c := range r.all {
		if _, ok := others[c]; !ok {
			return false
		}
	}
	return true
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
