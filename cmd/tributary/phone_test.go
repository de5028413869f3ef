//go:build android || phone

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An https server is trusted if Android's authorities vouch for it; updatable ones take precedence over those of the system.
func TestTrust(t *testing.T) {
	root := t.TempDir()
	system := authority(t, filepath.Join(root, "system/etc/security/cacerts/1.0"))
	if err := os.MkdirAll(filepath.Join(root, "apex/com.android.conscrypt/cacerts"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_DIR", "")
	t.Setenv("SSL_CERT_FILE", filepath.Join(root, "none")) // ignore this machine's authorities
	trust(root)
	pool, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := system.Verify(x509.VerifyOptions{Roots: pool}); err != nil {
		t.Errorf("SSL_CERT_DIR = %q: %v", os.Getenv("SSL_CERT_DIR"), err)
	}

	updated := filepath.Join(root, "apex/com.android.conscrypt/cacerts")
	authority(t, filepath.Join(updated, "1.0"))
	t.Setenv("SSL_CERT_DIR", "")
	if trust(root); os.Getenv("SSL_CERT_DIR") != updated {
		t.Errorf("SSL_CERT_DIR = %q, want %q", os.Getenv("SSL_CERT_DIR"), updated)
	}
	t.Setenv("SSL_CERT_DIR", "/mine")
	if trust(root); os.Getenv("SSL_CERT_DIR") != "/mine" {
		t.Errorf("SSL_CERT_DIR of the environment became %q", os.Getenv("SSL_CERT_DIR"))
	}
}

// authority writes a self-signed certificate.
func authority(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: path}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
