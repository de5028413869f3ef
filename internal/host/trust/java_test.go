package trust

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"
)

// realAuthority returns a certificate that can be parsed.
func realAuthority(t *testing.T) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func pemOf(c *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

// older returns a store in Java's older format.
func older(t *testing.T, all ...*x509.Certificate) []byte {
	t.Helper()
	store := keystore.New()
	for i, c := range all {
		if err := store.SetTrustedCertificateEntry(string(rune('a'+i)), entryOf(c.Raw)); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := store.Store(&out, []byte(usualPassword)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// newer returns a store in Java's newer format.
func newer(t *testing.T, e *pkcs12.Encoder, password string, all ...*x509.Certificate) []byte {
	t.Helper()
	text, err := e.EncodeTrustStore(all, password)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestJava: Java programs get the proxy and a copy of their store with the certificate, or neither.
func TestJava(t *testing.T) {
	one, two, private := realAuthority(t), realAuthority(t), realAuthority(t)
	systemTrusts(t, pemOf(one)+pemOf(two))
	for _, c := range []struct {
		name  string
		store []byte
		env   []string
		gets  []*x509.Certificate // nil = nothing is set
		has   string              // part of the options
	}{
		{name: "without Java"},
		{name: "the system's authorities", store: older(t, one, two), gets: []*x509.Certificate{one, two}, has: "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1 "},
		{name: "one more", store: older(t, one, two, private), gets: []*x509.Certificate{one, two, private}},
		{name: "without a password", store: newer(t, pkcs12.Passwordless, "", one, two), gets: []*x509.Certificate{one, two}},
		{name: "with the usual password", store: newer(t, pkcs12.Modern, usualPassword, one, two), gets: []*x509.Certificate{one, two}},
		{name: "with another password", store: newer(t, pkcs12.Modern, "secret", one, two)},
		{name: "a list of its own", store: older(t, two), gets: []*x509.Certificate{two}},
		{name: "only a company's authority", store: older(t, private)},
		{name: "nonsense", store: []byte("nonsense")},
		{
			name: "options of the user", store: older(t, one, two), env: []string{"JAVA_TOOL_OPTIONS=-Dx=y"}, gets: []*x509.Certificate{one, two},
			has: "[::1] -Dx=y",
		},
		{
			name: "exceptions", store: older(t, one, two), env: []string{"no_proxy=.a.test,10.0.0.0/8,b.test"}, gets: []*x509.Certificate{one, two},
			has: "-Dhttp.nonProxyHosts=localhost|127.*|[::1]|a.test|*.a.test|b.test|*.b.test",
		},
		{
			name: "a store of the user", store: older(t, one, two), env: []string{"MAVEN_OPTS=-Djavax.net.ssl.trustStore=/x"},
		},
		{name: "a proxy of the user", store: older(t, one, two), env: []string{"_JAVA_OPTIONS=-Dhttps.proxyHost=proxy.test"}},
	} {
		t.Run("R227 "+c.name, func(t *testing.T) {
			home := t.TempDir()
			if c.store != nil {
				folder := filepath.Join(home, "jre/lib/security")
				if err := os.MkdirAll(folder, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(folder, "cacerts"), c.store, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			env, kept := environ(t, folder(t, t.TempDir()), append(c.env, "JAVA_HOME="+home)...)
			options := value(t, env, javaOptions)
			if len(kept) > 0 {
				t.Errorf("kept %v", kept)
			}
			_, rest, set := strings.Cut(options, "-Djavax.net.ssl.trustStore=")
			if set != (c.gets != nil) || set != strings.Contains(options, "proxyHost") {
				t.Fatalf("JAVA_TOOL_OPTIONS=%s", options)
			}
			if !strings.Contains(options+" ", c.has) {
				t.Errorf("%s, want %s", options, c.has)
			}
			if !set {
				return
			}
			path, _, _ := strings.Cut(rest, " ")
			_, all, err := readStore([]byte(content(t, path)))
			if err != nil {
				t.Fatal(err)
			}
			want := certificatesOf([]byte(certificate))
			for _, x := range c.gets {
				want[sha256.Sum256(x.Raw)] = struct{}{}
			}
			if len(all) != len(want) || !(Roots{all: want}).within(all) {
				t.Errorf("%d certificates, want %d", len(all), len(want))
			}
		})
	}
}
