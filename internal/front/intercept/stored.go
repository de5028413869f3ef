package intercept

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/host/statefile"
)

// maxStored bounds the files of an authority.
const maxStored = 64 << 10

// Stored is the location of a permanent authority: its certificate, and its key, which only its user can read. The root
// certificate that programs trust signed one intermediate certificate, and its key was discarded. So the name
// constraints of the intermediate certificate apply even in programs that ignore those of a root.
type Stored struct {
	Certificate string // path: the root that programs have to trust, then the certificate that signs leaves
	Key         string // path
}

// Create creates an authority for at least one host, and stores it. It fails with fs.ErrExist if there is one.
func (s Stored) Create(name string, hosts []string) (*Authority, error) {
	if len(hosts) == 0 {
		return nil, errors.New("no host given")
	}
	if err := os.MkdirAll(filepath.Dir(s.Key), 0o700); err != nil {
		return nil, err
	}
	if err := statefile.Own(s.Key); err != nil {
		return nil, err
	}
	for _, path := range []string{s.Key, s.Certificate} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist})
		}
	}
	a, err := constrained(name, hosts)
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	if err := statefile.Replace(s.Key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})); err != nil {
		return nil, err
	}
	if err := statefile.Replace(s.Certificate, append(encode(a.root), encode(a.issuer)...)); err != nil {
		return nil, errors.Join(err, os.Remove(s.Key))
	}
	return a, nil
}

// constrained creates an authority whose root signs one issuer; the root's key is discarded.
func constrained(name string, hosts []string) (*Authority, error) {
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	rootTemplate, template := authorityTemplate(name, storedLife), authorityTemplate(name+", issuer", storedLife)
	rootTemplate.MaxPathLen, template.MaxPathLenZero = 1, true
	if err := errors.Join(constrain(rootTemplate, hosts), constrain(template, hosts)); err != nil {
		return nil, err
	}
	root, err := sign(rootTemplate, rootTemplate, &rootKey.PublicKey, rootKey)
	if err != nil {
		return nil, err
	}
	issuer, err := sign(template, root, &key.PublicKey, rootKey)
	if err != nil {
		return nil, err
	}
	return newAuthority(root, issuer, key)
}

// Load returns the stored authority. It fails with fs.ErrNotExist if there is none.
func (s Stored) Load() (*Authority, error) {
	text, err := statefile.Read(s.Certificate, maxStored)
	if err != nil {
		return nil, err
	}
	root, rest, err := ParseRoot(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Certificate, err)
	}
	block, _ := pem.Decode(rest)
	if block == nil {
		return nil, fmt.Errorf("%s: the intermediate certificate is missing", s.Certificate)
	}
	issuer, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Certificate, err)
	}
	if text, err = statefile.Read(s.Key, maxStored); err != nil {
		return nil, err
	}
	if block, _ = pem.Decode(text); block == nil {
		return nil, fmt.Errorf("%s: not a PEM key", s.Key)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := parsed.(*ecdsa.PrivateKey)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", s.Key, err)
	case !ok || !key.PublicKey.Equal(issuer.PublicKey):
		return nil, fmt.Errorf("%s: the key belongs to another certificate", s.Key)
	case checkConstrained(issuer) != nil || issuer.CheckSignatureFrom(root) != nil:
		return nil, fmt.Errorf("%s: the intermediate certificate is not limited to some hosts, or not signed by the root",
			s.Certificate)
	case time.Now().After(issuer.NotAfter):
		return nil, fmt.Errorf("%s: expired on %s", s.Certificate, issuer.NotAfter.Format(time.DateOnly))
	}
	return newAuthority(root, issuer, key)
}

// ParseRoot returns the first certificate of a PEM file and the rest of the file. It fails unless the certificate is an
// authority that is restricted to some hosts.
func ParseRoot(text []byte) (root *x509.Certificate, rest []byte, err error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, nil, errors.New("not a PEM certificate")
	}
	if root, err = x509.ParseCertificate(block.Bytes); err != nil {
		return nil, nil, err
	}
	return root, rest, checkConstrained(root)
}

var errUnconstrained = errors.New("not the certificate of an authority that is limited to some hosts, as tributary ca init makes them")

// checkConstrained fails unless a certificate is limited as constrain and constrained limit ours: to servers at hosts
// that could have been named to us, for a limited time, with one more authority below it at most.
func checkConstrained(c *x509.Certificate) error {
	servers := slices.Equal(c.ExtKeyUsage, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}) &&
		len(c.UnknownExtKeyUsage) == 0
	depth := c.MaxPathLen == 1 || c.MaxPathLen == 0 && c.MaxPathLenZero
	names := c.PermittedDNSDomainsCritical && len(c.PermittedDNSDomains) > 0
	for _, name := range c.PermittedDNSDomains {
		names = names && hostName(name)
	}
	addresses := len(c.PermittedIPRanges) > 0
	for _, n := range c.PermittedIPRanges {
		ones, bits := n.Mask.Size()
		addresses = addresses && bits > 0 && ones == bits
	}
	if len(c.PermittedIPRanges) == 0 {
		addresses = slices.EqualFunc(c.ExcludedIPRanges, allAddresses(),
			func(a, b *net.IPNet) bool { return a.String() == b.String() })
	}
	switch {
	case !c.IsCA, !c.BasicConstraintsValid, c.KeyUsage != x509.KeyUsageCertSign, !servers, !depth, !names, !addresses,
		len(c.UnhandledCriticalExtensions) > 0, c.NotAfter.Sub(c.NotBefore) > storedLife+clockSkew:
		return errUnconstrained
	}
	return nil
}

// Hosts returns the hosts for which the certificates of an authority are valid.
func Hosts(c *x509.Certificate) (hosts []string) {
	for _, name := range c.PermittedDNSDomains {
		if name != noName {
			hosts = append(hosts, name)
		}
	}
	for _, n := range c.PermittedIPRanges {
		hosts = append(hosts, n.IP.String())
	}
	return hosts
}

// Fingerprint returns the SHA-256 of a certificate in hexadecimal.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}
