package intercept

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/net/publicsuffix"
)

const (
	// lifetime of an authority in memory; it ends with its process, which may be a shell
	ownLife     = 90 * 24 * time.Hour
	storedLife  = 825 * 24 * time.Hour // lifetime of an authority in files
	leafLife    = 24 * time.Hour
	leafRenewal = leafLife / 2
	clockSkew   = time.Hour // allowed difference between this machine's clock and those of programs
	maxLeaves   = 1024
)

// Authority issues certificates for hosts.
type Authority struct {
	root   *x509.Certificate // certificate that programs trust
	issuer *x509.Certificate // certificate that signs leaves; it may be the root
	key    *ecdsa.PrivateKey // key of the issuer
	leaf   *ecdsa.PrivateKey // key of all leaves
	hosts  []string          // covered hosts; nil = all
	leaves *lru.Cache[string, *tls.Certificate]
}

// New returns an authority with the given name whose key exists only in memory. Its certificates are valid for hosts,
// which are names with their subdomains, or addresses; none means every host.
func New(name string, hosts []string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := authorityTemplate(name, ownLife)
	if err := constrain(template, hosts); err != nil {
		return nil, err
	}
	template.MaxPathLenZero = true
	root, err := sign(template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return newAuthority(root, root, key)
}

func newAuthority(root, issuer *x509.Certificate, key *ecdsa.PrivateKey) (*Authority, error) {
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaves, err := lru.New[string, *tls.Certificate](maxLeaves)
	if err != nil {
		return nil, err
	}
	return &Authority{
		root:   root,
		issuer: issuer,
		key:    key,
		leaf:   leaf,
		leaves: leaves,
		hosts:  Hosts(issuer),
	}, nil
}

// authorityTemplate returns the template of an authority for servers.
func authorityTemplate(name string, life time.Duration) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: name, Organization: []string{"Tributary"}},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(life),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

// constrain restricts a certificate to hosts (RFC 5280 section 4.2.1.10). A kind of name without a constraint is
// unrestricted, so addresses are excluded if only names are permitted, and vice versa.
func constrain(template *x509.Certificate, hosts []string) error {
	if len(hosts) == 0 {
		return nil
	}
	for _, h := range hosts {
		if ip, err := netip.ParseAddr(h); err == nil {
			b := ip.Unmap().AsSlice()
			template.PermittedIPRanges = append(template.PermittedIPRanges, &net.IPNet{
				IP: b, Mask: net.CIDRMask(8*len(b), 8*len(b)),
			})
			continue
		}
		if !hostName(h) {
			return fmt.Errorf("%q is not a host name: want one like example.com, without a scheme, port or *, and not a whole registry like co.uk", h)
		}
		template.PermittedDNSDomains = append(template.PermittedDNSDomains, strings.ToLower(h))
	}
	template.PermittedDNSDomainsCritical = true
	if template.PermittedDNSDomains == nil {
		template.PermittedDNSDomains = []string{noName}
	}
	if template.PermittedIPRanges == nil {
		template.ExcludedIPRanges = allAddresses()
	}
	return nil
}

func allAddresses() []*net.IPNet {
	return []*net.IPNet{
		{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)},
		{IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)},
	}
}

// noName is in a domain that does not exist (RFC 6761 section 6.4).
const noName = "none.invalid"

// hostName reports whether s can be the name of a host: it has a dot and is not a suffix under which everybody can
// register names. Suffixes that companies own, like s3.amazonaws.com, are hosts, too.
func hostName(s string) bool {
	labels := strings.Split(s, ".")
	suffix, registry := publicsuffix.PublicSuffix(strings.ToLower(s))
	return len(s) <= 253 && len(labels) > 1 && !(registry && len(suffix) == len(s)) &&
		!slices.ContainsFunc(labels, func(l string) bool {
			return l == "" || len(l) > 63 || strings.ContainsFunc(l, func(c rune) bool {
				return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
			})
		})
}

func serial() *big.Int {
	b := make([]byte, 16)
	rand.Read(b) // never fails
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b)
}

// sign creates the certificate described by template.
func sign(template, parent *x509.Certificate, of *ecdsa.PublicKey, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, of, by)
	if err != nil {
		return nil, fmt.Errorf("create a certificate: %w", err)
	}
	return x509.ParseCertificate(der)
}

// Certificate returns the certificate that programs have to trust, in PEM form.
func (a *Authority) Certificate() []byte { return encode(a.root) }

func encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// Hosts returns the hosts for which certificates are valid, nil for all.
func (a *Authority) Hosts() []string { return slices.Clone(a.hosts) }

// Covers reports whether a certificate for host is valid.
func (a *Authority) Covers(host string) bool { return a.hosts == nil || within(host, a.hosts) }

// within reports whether host is one of names or a subdomain of one.
func within(host string, names []string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	_, err := netip.ParseAddr(host)
	return slices.ContainsFunc(names, func(n string) bool {
		n = strings.ToLower(n)
		return host == n || err != nil && strings.HasSuffix(host, "."+n)
	})
}

// errNotCovered means that an authority does not issue certificates for a host.
var errNotCovered = errors.New("the authority does not cover this host")

// Leaf returns a certificate for host, a name or an address.
func (a *Authority) Leaf(host string) (*tls.Certificate, error) {
	host = strings.ToLower(host)
	if c, ok := a.leaves.Get(host); ok && time.Until(c.Leaf.NotAfter) > leafRenewal {
		return c, nil
	}
	if !a.Covers(host) {
		return nil, errNotCovered
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial(),
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(leafLife),
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if len(host) <= 64 { // ub-common-name
		template.Subject.CommonName = host
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	leaf, err := sign(template, a.issuer, &a.leaf.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: a.leaf, Leaf: leaf}
	if a.issuer != a.root {
		c.Certificate = append(c.Certificate, a.issuer.Raw)
	}
	a.leaves.Add(host, c)
	return c, nil
}
