package systemtest

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/front/intercept"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// TestPrivate: an https download of a command uses both links, with one connection each. The connection on which the origin was
// verified carries the first request. Other users get 403.
func TestPrivate(t *testing.T) {
	const size = 900_000 // too small for two connections per link
	s := origintest.New(t, origintest.Object{Size: size}, origintest.RateLimit(paced))
	secure := s.Secure()
	paths := map[string]*path{}
	for node, name := range []string{"wifi", "lte"} {
		paths[name] = &path{name: name, addr: s.Addr(node), secure: secure.Addr(node), conns: map[*gated]bool{}}
	}
	authority, err := intercept.New("test", nil)
	if err != nil {
		t.Fatal(err)
	}
	opener, err := intercept.NewInterceptor(intercept.Config{Authority: authority, Pins: intercept.OpenPins("", slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	carried := map[string]int64{}
	private := func(user uint32) (proxy *url.URL) {
		t.Helper()
		dial := func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
			return paths[l.Name].dial(ctx, network, addr)
		}
		p, err := daemon.NewPrivateWith(settings(), slog.New(slog.DiscardHandler), daemon.PrivateOptions{
			Users: []uint32{user}, Intercept: opener,
			Carried: func(link string, n int64) {
				mu.Lock()
				defer mu.Unlock()
				carried[link] += n
			},
		}, transport.Config{Source: discover.WithPaths(discover.NewStatic(named("wifi", "lte")...), link.DialFunc(dial).Path), Roots: secure.Roots})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { within(t, "stop", p.Stop) })
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if proxy, err = url.Parse(p.URL); err != nil {
			t.Fatal(err)
		}
		return proxy
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Certificate())
	get := func(proxy *url.URL) (*http.Response, error) {
		tr := &http.Transport{Proxy: http.ProxyURL(proxy), TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true, DisableCompression: true}
		t.Cleanup(tr.CloseIdleConnections)
		return (&http.Client{Transport: tr}).Get("https://a.secure.test/")
	}
	proxy := private(uint32(os.Getuid()))
	resp, err := get(proxy)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.ProtoMajor != 2 {
		t.Errorf("%v, %s", err, resp.Proto)
	}
	if w := wrong(origintest.Object{Size: size}.Defaults(), body, 0); w != "" || len(body) != size {
		t.Errorf("%d bytes: %s", len(body), w)
	}
	until(t, "both links have carried something", limit, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return carried["wifi"] > 0 && carried["lte"] > 0 && carried["wifi"]+carried["lte"] >= size
	})
	if n := paths["wifi"].dialed(); n != 1 {
		t.Errorf("%d connections over the first link", n)
	}
	over, err := tls.Dial("tcp", proxy.Host, &tls.Config{RootCAs: roots}) // as wget2 uses a proxy for https
	if err != nil {
		t.Fatal(err)
	}
	defer over.Close()
	if _, err := io.WriteString(over, "GET https://a.secure.test/2 HTTP/1.1\r\nHost: a.secure.test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err = http.ReadResponse(bufio.NewReader(over), nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err = io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || len(body) != size {
		t.Errorf("over TLS: %d bytes, %s, %v", len(body), resp.Status, err)
	}
	toTLS := *proxy
	toTLS.Scheme = "https"
	if resp, err = get(&toTLS); err != nil { // CONNECT over TLS
		t.Fatal(err)
	}
	if body, err = io.ReadAll(resp.Body); err != nil || len(body) != size {
		t.Errorf("a tunnel over TLS: %d bytes, %v", len(body), err)
	}
	resp.Body.Close()
	before := paths["lte"].dialed()
	nc, err := net.Dial("tcp", proxy.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := io.WriteString(nc, "CONNECT b.secure.test:443 HTTP/1.1\r\nHost: b.secure.test:443\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	until(t, "the other link connects before there is a request", limit, func() bool { return paths["lte"].dialed() > before })
	if _, err := get(private(uint32(os.Getuid()) + 1)); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("another user: %v", err)
	}
}
