package origin_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/direct"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
)

// greeted are the two clients of an origin, with one memory, and the links that they dialed.
type greeted struct {
	*testing.T
	pool        *pool
	passThrough *direct.PassThrough

	mu     sync.Mutex
	dialed []string
}

const secureURL, secureAddr = "https://example.com/", "example.com:443"

// greet returns clients over links that lead to the given servers, in this order. They trust what httptest's certificates sign.
func greet(t *testing.T, names []string, to map[string]net.Addr) *greeted {
	t.Helper()
	h := httptest.NewTLSServer(nil) // for its certificate
	h.Close()
	roots := x509.NewCertPool()
	roots.AddCert(h.Certificate())
	g := &greeted{T: t}
	dial := link.DialFunc(func(ctx context.Context, l link.Link, network, _ string) (net.Conn, error) {
		g.mu.Lock()
		g.dialed = append(g.dialed, l.Name)
		g.mu.Unlock()
		return (&net.Dialer{}).DialContext(ctx, network, to[l.Name].String())
	})
	var all []link.Link
	for _, name := range names {
		all = append(all, link.Link{Name: name})
	}
	all = dial.Over(all...)
	g.pool = newPool(dial, roots)
	g.passThrough = direct.NewPassThrough(func() []link.Link { return all }, roots, time.Minute)
	g.pool.Greetings = new(origin.Greetings)
	g.passThrough.Greetings = g.pool.Greetings
	t.Cleanup(func() { g.pool.Close(); g.passThrough.Close() })
	return g
}

// dials returns the links that were dialed since the last call.
func (g *greeted) dials() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := strings.Join(g.dialed, " ")
	g.dialed = nil
	return all
}

// post sends content, which the server returns, and returns the link that carried it.
func (g *greeted) post(url string) (string, error) {
	g.Helper()
	r, err := http.NewRequestWithContext(g.Context(), http.MethodPost, url, io.NopCloser(strings.NewReader("content")))
	if err != nil {
		g.Fatal(err)
	}
	resp, l, err := g.passThrough.Do(r)
	if err != nil {
		return l.Name, err
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); string(b) != "content" || err != nil {
		g.Errorf("%q, %v", b, err)
	}
	return l.Name, nil
}

// echo serves https with the content of each request. wrap, if not nil, sees each connection first.
func echo(t *testing.T, certificate *tls.Certificate, wrap func(net.Conn) net.Conn) net.Addr {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	if certificate != nil {
		s.TLS = &tls.Config{Certificates: []tls.Certificate{*certificate}}
	}
	if wrap != nil {
		s.Listener = &wrapping{s.Listener, wrap}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr()
}

// wrapping is a listener that gives each connection to a function.
type wrapping struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

func (w *wrapping) Accept() (net.Conn, error) {
	nc, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return w.wrap(nc), nil
}

// portal serves with a certificate for example.com that nobody trusts.
func portal(t *testing.T) net.Addr {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return echo(t, &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil)
}

// TestFalseCertificate: a link that shows a false certificate for a host does not fail requests that another link can carry.
func TestFalseCertificate(t *testing.T) {
	t.Run("R229 another link carries the request", func(t *testing.T) {
		g := greet(t, []string{"wifi", "lte"}, map[string]net.Addr{"wifi": portal(t), "lte": echo(t, nil, nil)})
		if l, err := g.post(secureURL); l != "lte" || err != nil {
			t.Errorf("over %s: %v", l, err)
		}
		if got := g.dials(); got != "wifi lte" {
			t.Errorf("dialed %s", got)
		}
		g.passThrough.Close()
		if l, err := g.post(secureURL); l != "lte" || err != nil || g.dials() != "lte" {
			t.Errorf("the next one, over %s: %v", l, err)
		}
	})
	t.Run("R229 a tunnel takes that link, too", func(t *testing.T) {
		g := greet(t, []string{"wifi", "lte"}, map[string]net.Addr{"wifi": portal(t), "lte": echo(t, nil, nil)})
		if _, err := g.pool.Open(t.Context(), link.Link{Name: "wifi"}, engine.Target{Scheme: "https", Host: "example.com", Addr: secureAddr}); !origin.Misled(err) {
			t.Fatalf("the portal: %v", err)
		}
		for addr, want := range map[string]string{secureAddr: "lte", "other.example.com:443": "wifi"} { // other hosts are not affected
			d, err := g.passThrough.DialTunnel(t.Context(), addr)
			if err != nil {
				t.Fatal(err)
			}
			d.Conn.Close()
			if d.Link.Name != want {
				t.Errorf("a tunnel to %s over %s", addr, d.Link.Name)
			}
		}
	})
	t.Run("R229 if all links agree, the first one counts", func(t *testing.T) {
		at := portal(t)
		g := greet(t, []string{"wifi", "lte"}, map[string]net.Addr{"wifi": at, "lte": at})
		if _, err := g.post(secureURL); !origin.Misled(err) {
			t.Errorf("error %v", err)
		}
		d, err := g.passThrough.DialTunnel(t.Context(), secureAddr)
		if err != nil {
			t.Fatal(err)
		}
		d.Conn.Close()
		if got := g.dials(); got != "wifi lte wifi" {
			t.Errorf("dialed %s", got)
		}
	})
	t.Run("R229 if no other link connects, the error is that of the certificate", func(t *testing.T) {
		gone, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		gone.Close()
		g := greet(t, []string{"wifi", "lte"}, map[string]net.Addr{"wifi": portal(t), "lte": gone.Addr()})
		if _, err := g.post(secureURL); !origin.Misled(err) {
			t.Errorf("error %v", err)
		}
	})
}

// picky is a connection that is reset, or falls silent, when the first record is larger than a packet.
type picky struct {
	net.Conn
	silent bool
	once   sync.Once
	first  []byte
}

func (p *picky) Read(b []byte) (int, error) {
	p.once.Do(func() {
		header := make([]byte, 5)
		if _, err := io.ReadFull(p.Conn, header); err != nil {
			return
		}
		p.first = header
		if n := binary.BigEndian.Uint16(header[3:]); n > 1400 {
			if p.silent {
				_, _ = io.Copy(io.Discard, p.Conn)
			}
			_ = p.Conn.(*net.TCPConn).SetLinger(0)
			_ = p.Close()
		}
	})
	if len(p.first) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// TestLargeHello: a server behind something that cannot bear a large ClientHello gets a small one at the second try.
func TestLargeHello(t *testing.T) {
	for _, silent := range []bool{false, true} {
		name := map[bool]string{false: "R230 reset", true: "R230 dropped"}[silent]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := echo(t, nil, func(nc net.Conn) net.Conn { return &picky{Conn: nc, silent: silent} })
			g := greet(t, []string{"wifi"}, map[string]net.Addr{"wifi": at})
			if _, err := g.post(secureURL); err != nil {
				t.Error(err)
			}
			if got := g.dials(); got != "wifi wifi" {
				t.Errorf("dialed %s", got)
			}
			target := engine.Target{Scheme: "https", Host: "example.com", Addr: secureAddr}
			c, err := g.pool.Open(t.Context(), link.Link{Name: "wifi"}, target) // it is remembered
			if err != nil || g.dials() != "wifi" {
				t.Fatal(err)
			}
			c.Close()
			other := target
			other.Addr = "example.com:8443"
			if c, err = g.pool.Open(t.Context(), link.Link{Name: "wifi"}, other); err != nil || g.dials() != "wifi wifi" {
				t.Fatal(err)
			}
			c.Close()
		})
	}
	t.Run("R230 others keep the large one", func(t *testing.T) {
		curves := make(chan []tls.CurveID, 1)
		h := httptest.NewUnstartedServer(nil)
		h.TLS = &tls.Config{GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
			curves <- i.SupportedCurves
			return nil, nil
		}}
		h.StartTLS()
		defer h.Close()
		g := greet(t, []string{"wifi"}, map[string]net.Addr{"wifi": h.Listener.Addr()})
		c, err := g.pool.Open(t.Context(), link.Link{Name: "wifi"}, engine.Target{Scheme: "https", Host: "example.com", Addr: secureAddr})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if got := <-curves; !slices.Contains(got, tls.X25519MLKEM768) {
			t.Errorf("offers %v", got)
		}
	})
}
