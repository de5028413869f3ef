package intercept

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// verify verifies the chain of a server with an authority's certificate for a host.
func verify(t *testing.T, a *Authority, host string) error {
	t.Helper()
	c, err := a.Leaf(host)
	if err != nil {
		return err
	}
	return verifyChain(a, c.Certificate, host)
}

func verifyChain(a *Authority, chain [][]byte, host string) error {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	roots.AppendCertsFromPEM(a.Certificate())
	leaf, err := x509.ParseCertificate(chain[0])
	for _, der := range chain[1:] {
		c, cerr := x509.ParseCertificate(der)
		err = errors.Join(err, cerr)
		between.AddCert(c)
	}
	if err != nil {
		return err
	}
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, Intermediates: between})
	return err
}

// forged returns the chain of an authority for a host that it does not cover, as a thief of its key could make it.
func forged(t *testing.T, a *Authority, host string) [][]byte {
	t.Helper()
	free := *a
	free.hosts = nil
	c, err := free.Leaf(host)
	if err != nil {
		t.Fatal(err)
	}
	a.leaves.Remove(host)
	return c.Certificate
}

func TestAuthority(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	stored := Stored{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem")}
	free, err := New("free", nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := New("own", []string{"Example.com", "192.0.2.7"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stored.Create("stored", []string{"example.com"}); err != nil {
		t.Fatal(err)
	}
	kept, err := stored.Load()
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := New("addresses", []string{"192.0.2.7", "2001:db8::7"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		a    *Authority
		good []string
		bad  []string // rejected even if its key is stolen
	}{
		{"free", free, []string{"example.com", "a.b.example.org", "192.0.2.7", "2001:db8::7", strings.Repeat("a.", 60) + "example.com"}, nil},
		{"own", own, []string{"example.com", "EXAMPLE.com", "a.example.com", "192.0.2.7"}, []string{"example.org", "notexample.com", "com", "192.0.2.8", "2001:db8::7"}},
		{"stored", kept, []string{"example.com", "a.example.com"}, []string{"example.org", "192.0.2.7", "2001:db8::7", "localhost"}},
		{"addresses", addresses, []string{"192.0.2.7", "2001:db8::7"}, []string{"192.0.2.8", "2001:db8::8", "example.com"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, host := range c.good {
				if err := verify(t, c.a, host); err != nil {
					t.Errorf("%s: %v", host, err)
				}
			}
			for _, host := range c.bad {
				if err := verify(t, c.a, host); !errors.Is(err, errNotCovered) {
					t.Errorf("%s is issued: %v", host, err)
				}
				if err := verifyChain(c.a, forged(t, c.a, host), host); err == nil {
					t.Errorf("%s: a forged certificate is accepted", host)
				}
			}
		})
	}
	t.Run("openssl", func(t *testing.T) { // another verifier, with its strict rules
		if _, err := exec.LookPath("openssl"); err != nil {
			t.Skip("openssl is not installed: apt-get install openssl")
		}
		dir := t.TempDir()
		check := func(a *Authority, chain [][]byte, host string) error {
			files := map[string][]byte{"root": a.Certificate(), "leaf": nil, "between": nil}
			for i, der := range chain {
				name := "between"
				if i == 0 {
					name = "leaf"
				}
				files[name] = append(files[name], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			args := []string{"verify", "-x509_strict", "-CAfile", "root", "-no-CApath", "-no-CAstore"}
			if net.ParseIP(host) != nil {
				args = append(args, "-verify_ip", host)
			} else {
				args = append(args, "-verify_hostname", host)
			}
			if files["between"] != nil {
				args = append(args, "-untrusted", "between")
			}
			cmd := exec.Command("openssl", append(args, "leaf")...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		}
		for _, a := range []*Authority{free, own, kept} {
			c, err := a.Leaf("a.example.com")
			if err != nil {
				t.Fatal(err)
			}
			if err := check(a, c.Certificate, "a.example.com"); err != nil {
				t.Error(err)
			}
		}
		for _, a := range []*Authority{own, kept} {
			for _, host := range []string{"example.org", "192.0.2.9"} {
				if err := check(a, forged(t, a, host), host); err == nil || !strings.Contains(err.Error(), "subtree") {
					t.Errorf("%s, forged: %v", host, err)
				}
			}
		}
	})
}

func TestHostNames(t *testing.T) {
	for _, bad := range []string{"", "com", "*.example.com", "https://example.com", "example.com:443", "exa mple.com", "a..b", ".example.com", "example.com/", "co.uk", "CO.UK", "\u00e4.example"} {
		if _, err := New("x", []string{bad}); err == nil {
			t.Errorf("%q is taken for a host", bad)
		}
	}
}

// TestR231ParseRoot: an authority that is less limited than those of this package is refused.
func TestR231ParseRoot(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	one := &net.IPNet{IP: net.IPv4(1, 2, 3, 4).To4(), Mask: net.CIDRMask(32, 32)}
	wide := &net.IPNet{IP: net.IPv4(8, 0, 0, 0).To4(), Mask: net.CIDRMask(8, 32)}
	for name, change := range map[string]func(*x509.Certificate){
		"":                     func(*x509.Certificate) {},
		"every name":           func(c *x509.Certificate) { c.PermittedDNSDomains = []string{""} },
		"every name besides":   func(c *x509.Certificate) { c.PermittedDNSDomains = []string{"example.com", ""} },
		"a top-level domain":   func(c *x509.Certificate) { c.PermittedDNSDomains = []string{"com"} },
		"a registry":           func(c *x509.Certificate) { c.PermittedDNSDomains = []string{"co.uk"} },
		"no name":              func(c *x509.Certificate) { c.PermittedDNSDomains = nil },
		"not critical":         func(c *x509.Certificate) { c.PermittedDNSDomainsCritical = false },
		"one address excluded": func(c *x509.Certificate) { c.ExcludedIPRanges = []*net.IPNet{one, one} },
		"only IPv4 excluded":   func(c *x509.Certificate) { c.ExcludedIPRanges = allAddresses()[:1] },
		"a network permitted":  func(c *x509.Certificate) { c.ExcludedIPRanges, c.PermittedIPRanges = nil, []*net.IPNet{wide} },
		"any use":              func(c *x509.Certificate) { c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageAny) },
		"no use given":         func(c *x509.Certificate) { c.ExtKeyUsage = nil },
		"code":                 func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} },
		"another key usage":    func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageDigitalSignature },
		"no path length":       func(c *x509.Certificate) { c.MaxPathLen = -1 },
		"a long path":          func(c *x509.Certificate) { c.MaxPathLen = 2 },
		"a long life":          func(c *x509.Certificate) { c.NotAfter = c.NotAfter.AddDate(10, 0, 0) },
		"not an authority":     func(c *x509.Certificate) { c.IsCA, c.MaxPathLen = false, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			c := authorityTemplate("x", storedLife)
			c.MaxPathLen = 1
			if err := constrain(c, []string{"example.com"}); err != nil {
				t.Fatal(err)
			}
			change(c)
			made, err := sign(c, c, &key.PublicKey, key)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := ParseRoot(encode(made)); (err == nil) != (name == "") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestStored: only its user can read the key; the key is never replaced and belongs to the certificate.
func TestStored(t *testing.T) {
	dir := t.TempDir()
	s := Stored{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem")}
	if _, err := s.Load(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without any: %v", err)
	}
	if _, err := s.Create("x", nil); err == nil {
		t.Error("an authority for all hosts")
	}
	made, err := s.Create("x", []string{"example.com"})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{s.Certificate, s.Key} {
		if is, err := os.Stat(path); err != nil || is.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, is, err)
		}
	}
	if _, err := s.Create("x", []string{"example.com"}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("made a second time: %v", err)
	}
	kept, err := s.Load()
	if err != nil || !bytes.Equal(kept.Certificate(), made.Certificate()) || !slices.Equal(kept.Hosts(), []string{"example.com"}) {
		t.Fatalf("%v, %v", kept.Hosts(), err)
	}
	if key := read(t, s.Key); bytes.Contains(read(t, s.Certificate), []byte("PRIVATE")) || !bytes.Contains(key, []byte("PRIVATE")) {
		t.Error("the key is in the wrong file")
	}
	other := Stored{filepath.Join(t.TempDir(), "ca.pem"), filepath.Join(t.TempDir(), "ca-key.pem")}
	if _, err := other.Create("x", []string{"example.com"}); err != nil {
		t.Fatal(err)
	}
	if _, err := (Stored{s.Certificate, other.Key}).Load(); err == nil {
		t.Error("another's key is taken")
	}
	free, err := New("x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Certificate, append(free.Certificate(), free.Certificate()...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(); !errors.Is(err, errUnconstrained) {
		t.Errorf("an authority for all hosts is loaded: %v", err)
	}
	if err := os.Chmod(s.Key, 0o622); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(); err == nil {
		t.Error("a file that others may write to is read")
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestLeaves: the number of cached leaves is limited, and none is about to expire.
func TestLeaves(t *testing.T) {
	a, err := New("x", nil)
	if err != nil {
		t.Fatal(err)
	}
	first, err := a.Leaf("example.com")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.Leaf("Example.COM"); err != nil || again != first {
		t.Errorf("another one is made: %v", err)
	}
	first.Leaf.NotAfter = time.Now().Add(leafRenewal - time.Minute)
	if again, err := a.Leaf("example.com"); err != nil || again == first {
		t.Errorf("an old one is used: %v", err)
	}
	for i := range 2 * maxLeaves / 16 {
		for j := range 16 {
			if i < maxLeaves/16+1 || j == 0 { // more leaves than the cache has room for
				if _, err := a.Leaf(fmt.Sprintf("h%d-%d.example.com", i, j)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if n := a.leaves.Len(); n != maxLeaves {
		t.Errorf("%d are kept, want %d", n, maxLeaves)
	}
}

func TestPins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "pins.json")
	now := time.Now()
	p := OpenPins(path, quiet())
	if p.knows("example.com") {
		t.Error("something is known at the beginning")
	}
	p.learn("/bin/a", "Example.com.")
	if !p.knows("example.com") || p.pinned("/bin/a", "example.com") != Pinned || p.pinned("/bin/b", "example.com") != "" {
		t.Error("not what was learned")
	}
	other := OpenPins(path, quiet())
	if other.pinned("/bin/a", "example.com") != Pinned {
		t.Error("the next process does not know it")
	}
	other.learn("/bin/b", "example.com")
	p.learn("/bin/c", "example.com")
	if all := OpenPins(path, quiet()); all.pinned("/bin/a", "example.com") != Pinned || all.pinned("/bin/b", "example.com") != Pinned || all.pinned("/bin/c", "example.com") != Pinned {
		t.Error("two processes overwrite each other")
	}
	if text := string(read(t, path)); strings.Contains(text, "example") || strings.Contains(text, "/bin") {
		t.Errorf("the file tells names: %s", text)
	}
	if is, err := os.Stat(path); err != nil || is.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", is, err)
	}
	later := OpenPins("", quiet())
	later.take(p.read(), now.Add(pinLife+time.Minute))
	if later.knows("example.com") {
		t.Error("it is known after a day")
	}
	later.take(p.read(), now.Add(-48*time.Hour))
	if later.knows("example.com") {
		t.Error("a clock that was wrong makes it known for long")
	}
}

// TestR215OtherHosts: a program that rejected the certificate of one host is not tried with another for an hour, unless it has accepted one.
func TestR215OtherHosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := OpenPins("", quiet())
		p.learn("/bin/a", "example.com")
		p.accept("/bin/b")
		p.learn("/bin/b", "example.com")
		want := func(program, host string, reason Reason) {
			t.Helper()
			if got := p.pinned(program, host); got != reason {
				t.Errorf("%s at %s: %q, want %q", program, host, got, reason)
			}
		}
		want("/bin/a", "other.example", Rejected)
		want("/bin/b", "other.example", "")
		want("/bin/c", "other.example", "")
		time.Sleep(pinsAll + time.Second)
		want("/bin/a", "other.example", "")
		want("/bin/a", "example.com", Pinned)
		time.Sleep(pinLife)
		want("/bin/a", "example.com", "")
	})
}

// TestR215Closed: two connections without a request count, for ten minutes, unless the program has sent one elsewhere.
func TestR215Closed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "pins.json")
		i, err := NewInterceptor(Config{Authority: &Authority{}, Pins: OpenPins(path, quiet())})
		if err != nil {
			t.Fatal(err)
		}
		end := func(program string, asked bool, after time.Duration) {
			v := &Visit{of: i, program: program, host: "example.com", began: time.Now()}
			time.Sleep(after)
			if asked {
				v.Asked()
			}
			v.Ended()
		}
		want := func(program string, reason Reason) {
			t.Helper()
			if got := OpenPins(path, quiet()).pinned(program, "example.com"); got != reason { // the next process
				t.Errorf("%s: %q, want %q", program, got, reason)
			}
		}
		end("/bin/lftp", false, 0)
		want("/bin/lftp", "")
		end("/bin/lftp", false, 0)
		want("/bin/lftp", Closed)
		end("/bin/waits", false, waitTime)
		want("/bin/waits", Closed)
		end("/bin/browser", true, 0)
		for range 3 {
			end("/bin/browser", false, 0)
		}
		want("/bin/browser", "")
		if got := i.Unopened(); len(got) != 2 || got[0] != (Unopened{"example.com", Closed, "/bin/lftp"}) {
			t.Errorf("%v", got)
		}
		time.Sleep(closedLife + time.Second)
		want("/bin/lftp", "")
	})
}

// TestPinsBroken: a file that is damaged, or belongs to another user, has no effect.
func TestPinsBroken(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "no JSON": "{", "no salt": `{"pins":{"a":{"b":99999999999}}}`, "another type": `[1]`} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pins.json")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			p := OpenPins(path, quiet())
			p.learn("a", "example.com")
			if OpenPins(path, quiet()).pinned("a", "example.com") != Pinned {
				t.Error("the file is not mended")
			}
		})
	}
	many := OpenPins("", quiet())
	for i := range maxPins + 10 {
		many.learn("a", fmt.Sprint(i, ".example.com"))
	}
	if n := len(many.Pins); n != maxPins {
		t.Errorf("%d are kept, want %d", n, maxPins)
	}
}

func TestExcluded(t *testing.T) {
	all := excluded()
	if len(all) < 40 || len(all) > 100 {
		t.Errorf("%d hosts", len(all))
	}
	for _, h := range all {
		if !hostName(h) || h != strings.ToLower(h) {
			t.Errorf("%q is not a host name", h)
		}
	}
	for host, want := range map[string]bool{
		"paypal.com": true, "www.PayPal.com.": true, "notpaypal.com": false, "com": false, "pypi.org": false, "registry.npmjs.org": false, "github.com": false,
		"storage.googleapis.com": false, "dl.google.com": false,
	} {
		if within(host, all) != want {
			t.Errorf("%s: %v", host, !want)
		}
	}
}

// TestR215OwnStore: a program that is known to distrust the authority never sees a certificate of it.
func TestR215OwnStore(t *testing.T) {
	a, err := New("test", nil)
	if err != nil {
		t.Fatal(err)
	}
	i, err := NewInterceptor(Config{Authority: a, Pins: OpenPins("", quiet()), Distrusts: func(program string, limitsRecords bool) Reason {
		if program == "/bin/lftp" && !limitsRecords { // crypto/tls does not
			return OwnStore
		}
		return ""
	}})
	if err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]Reason{"/bin/lftp": OwnStore, "/bin/curl": NoHandshake, "": NoHandshake} {
		near, far := net.Pipe()
		go func() {
			_ = tls.Client(near, &tls.Config{ServerName: "example.com", NextProtos: []string{"http/1.1"}}).Handshake()
		}()
		got, err := i.Open(t.Context(), Client{Conn: far, Program: func() string { return program }}, "example.com", "example.com:443",
			func(context.Context) (string, bool, error) { return "", false, errors.New("no server") })
		if err != nil || got.Conn != nil || len(got.Early) == 0 || got.Spent == (want == OwnStore) {
			t.Errorf("%q: %+v, %v", program, got, err)
		}
		if !slices.ContainsFunc(i.Unopened(), func(u Unopened) bool { return u.Reason == want && (u.Program == program || u.Program == "") }) {
			t.Errorf("%q: %v", program, i.Unopened())
		}
		near.Close()
		far.Close()
	}
}
