package netlab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certificate holds the paths of PEM files: the certificate of an https origin of the lab and the one that its clients
// trust.
type Certificate struct {
	CA    string // certificate of the run's own authority: for --cacert or SSL_CERT_FILE
	Chain string // the origin's certificate, valid for its names, those below OriginName and its private addresses
	Key   string // the origin's private key (ECDSA P-256, PKCS #8)
}

// DockerName is the host of Docker's own registry, the only one for which all versions of Docker use mirrors. The
// origin's certificate is valid for it; the DNS server does not know it.
const DockerName = "registry-1.docker.io"

// Certificate returns the origin's certificate, which the first call creates. It is valid for a day.
func (l *Lab) Certificate() (Certificate, error) {
	l.certOnce.Do(func() {
		l.cert = Certificate{
			CA:    filepath.Join(l.Dir, "ca.pem"),
			Chain: filepath.Join(l.Dir, "origin.pem"),
			Key:   filepath.Join(l.Dir, "origin-key.pem"),
		}
		l.certErr = l.cert.make()
	})
	return l.cert, l.certErr
}

func (c Certificate) make() error {
	now := time.Now()
	template := func(serial int64, name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber:          big.NewInt(serial),
			Subject:               pkix.Name{CommonName: name},
			NotBefore:             now.Add(-time.Hour),
			NotAfter:              now.Add(24 * time.Hour),
			BasicConstraintsValid: true,
		}
	}
	authority, origin := template(1, "Tributary lab"), template(2, OriginName)
	authority.IsCA = true
	authority.KeyUsage = x509.KeyUsageCertSign
	origin.KeyUsage = x509.KeyUsageDigitalSignature
	origin.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	origin.DNSNames = append([]string{OriginName, "*." + OriginName, DockerName}, PublicNames...)
	origin.IPAddresses = []net.IP{OriginAddr.AsSlice(), OriginAddr6.AsSlice()}

	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	originKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(originKey)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	for _, f := range []struct {
		path    string
		subject *x509.Certificate
		key     *ecdsa.PrivateKey
	}{{c.CA, authority, authorityKey}, {c.Chain, origin, originKey}} {
		der, err := x509.CreateCertificate(rand.Reader, f.subject, authority, &f.key.PublicKey, authorityKey)
		if err != nil {
			return fmt.Errorf("certificate of %s: %w", f.subject.Subject.CommonName, err)
		}
		if err := writePEM(f.path, "CERTIFICATE", der, 0o644); err != nil {
			return err
		}
	}
	return writePEM(c.Key, "PRIVATE KEY", keyDER, 0o600)
}

// trusted returns the certificates that a client of the lab's origins trusts.
func (l *Lab) trusted() (*x509.CertPool, error) {
	c, err := l.Certificate()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("certificate: %s holds none", c.CA)
	}
	return pool, nil
}

func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode); err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	return nil
}
