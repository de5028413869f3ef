package transport

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/link/sockstest"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// unbound does not bind sockets.
type unbound struct{}

func (unbound) Control(link.Link) func(network, address string, c syscall.RawConn) error {
	return func(string, string, syscall.RawConn) error { return nil }
}

// toNode returns a dial function that connects to a node of s, whatever the address.
func toNode(s *origintest.Server, n int) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.Addr(n))
	}
}

// withUpstream returns a Transport over "wifi", which leads to node 0, and "office", which leads through the proxy.
func withUpstream(t *testing.T, s *origintest.Server, proxy *sockstest.Server, change func(*config.Config)) *Transport {
	t.Helper()
	cfg := config.Default()
	cfg.Threshold = 64 << 10
	cfg.Link = map[string]config.Link{"office": {Via: "socks5://me:secret@" + proxy.Addr()}}
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	node := toNode(s, 0)
	links := link.DialFunc(func(ctx context.Context, _ link.Link, network, addr string) (net.Conn, error) {
		return node(ctx, network, addr)
	}).Over(named("wifi")...)
	tr, err := New(Config{Settings: cfg, Log: slog.New(slog.DiscardHandler), Source: discover.NewStatic(links...), Binder: unbound{}})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := tr.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); tr.Close() })
	return tr
}

// byName returns the URL of the object under a name that only the proxy resolves.
func byName(s *origintest.Server) string {
	_, port, _ := net.SplitHostPort(s.Addr(0))
	return "http://origin.test:" + port + "/"
}

func TestUpstream(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: 4 * mid}, origintest.RateLimit(paced))
	proxy := sockstest.New(t, sockstest.Options{User: "me", Password: "secret", Dial: toNode(s, 1)})
	tr := withUpstream(t, s, proxy, nil)
	var used Usage
	r := get(t, byName(s))
	resp, err := tr.RoundTrip(r.WithContext(withUsage(t.Context(), &used)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Equal(b, s.Object().Bytes(0, s.Object().Size)) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	links := used.Links()
	if len(links) != 2 || links[0].Bytes == 0 || links[1].Bytes == 0 {
		t.Errorf("%+v", links)
	}
	if asked := proxy.Requests(); len(asked) == 0 || !strings.HasPrefix(asked[0], "name origin.test:") {
		t.Errorf("asked for %q", asked)
	}
	if in, _, _ := tr.InUse(); !slices.Equal(in, []string{"wifi"}) {
		t.Errorf("interfaces in use %q: rules of a firewall would name them", in)
	}
	// The proxy is reached within microseconds, which is not the time to an origin behind it.
	for _, l := range tr.Status().Links {
		if l.State != "up" || l.Name == "office" && l.RTT == 0 {
			t.Errorf("%+v", l)
		}
	}
	c, name, err := tr.DialTunnel(t.Context(), "origin.test:443")
	if err != nil || name != "wifi" {
		t.Fatalf("%s, %v: the system's own link comes first", name, err)
	}
	c.Close()
}

// TestUpstreamSettings: the keys of a link work for a link through a proxy, and a running Transport adopts them.
func TestUpstreamSettings(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: 1000})
	proxy := sockstest.New(t, sockstest.Options{User: "me", Password: "secret", Dial: toNode(s, 1)})
	yes, no := true, false
	tr := withUpstream(t, s, proxy, func(cfg *config.Config) {
		cfg.Links = []string{"office"}
		l := cfg.Link["office"]
		l.Metered, l.Trusted, l.MaxRate = &yes, &no, 1e6
		cfg.Link["office"] = l
	})
	ranked := tr.engine.Ranked()
	if len(ranked) != 1 || ranked[0].Name != "office" || !ranked[0].Terms.Metered || !ranked[0].Terms.Untrusted || ranked[0].Kind != link.KindSOCKS5 {
		t.Fatalf("%+v", ranked)
	}
	if strings.Contains(ranked[0].Via, "secret") {
		t.Errorf("%s shows the password", ranked[0].Via)
	}
	c, name, err := tr.DialTunnel(t.Context(), "origin.test:443")
	if err != nil || name != "office" {
		t.Fatalf("%s, %v", name, err)
	}
	if spliced(c) {
		t.Error("max_rate does not hold")
	}
	c.Close()

	cfg := tr.Settings()
	other := sockstest.New(t, sockstest.Options{Dial: toNode(s, 1)})
	cfg.Link = map[string]config.Link{"office": {Via: "socks5://" + other.Addr()}}
	tr.Reload(cfg)
	eventually(t, "the other proxy", func() bool {
		c, name, err := tr.DialTunnel(t.Context(), "origin.test:443")
		if err != nil || name != "office" {
			t.Fatalf("%s, %v", name, err)
		}
		plain := spliced(c)
		c.Close()
		return plain && len(other.Requests()) > 0
	})
	cfg.Link = nil
	tr.Reload(cfg)
	eventually(t, "no link", func() bool { return len(tr.engine.Ranked()) == 0 })
	cfg.Links = nil
	tr.Reload(cfg)
	eventually(t, "wifi", func() bool { return len(tr.engine.Ranked()) == 1 })
}

// spliced reports whether the kernel can copy through a connection.
func spliced(c net.Conn) bool {
	over, ok := c.(interface{ TCP() *net.TCPConn })
	return ok && over.TCP() != nil
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not seen: %s", what)
		}
	}
}

// TestUpstreamDies: a link whose proxy is gone behaves like any dead link.
func TestUpstreamDies(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: 4 * mid}, origintest.RateLimit(paced))
	proxy := sockstest.New(t, sockstest.Options{User: "me", Password: "secret", Dial: toNode(s, 1)})
	tr := withUpstream(t, s, proxy, nil)
	r := get(t, byName(s))
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b := make([]byte, s.Object().Size)
	if _, err := io.ReadFull(resp.Body, b[:mid]); err != nil {
		t.Fatal(err)
	}
	proxy.Close()
	if n, err := io.ReadFull(resp.Body, b[mid:]); err != nil || !bytes.Equal(b, s.Object().Bytes(0, s.Object().Size)) {
		t.Errorf("%d more bytes, %v", n, err)
	}
}

func TestCandidatesWithUpstream(t *testing.T) {
	no := false
	cfg := config.Default()
	cfg.Links = []string{"office"}
	cfg.Link = map[string]config.Link{
		"office": {Via: "socks5://127.0.0.1:1080"}, "home": {Via: "socks5://127.0.0.1:1081"}, "off": {Via: "socks5://127.0.0.1:1082", Enabled: &no},
		"lo": {Via: "socks5://127.0.0.1:1083"},
	}
	all, _, err := Candidates(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if c := all[0]; !c.Use || c.Link.Name != "office" || !strings.Contains(c.Reason, "socks5://127.0.0.1:1080") {
		t.Errorf("%+v", c)
	}
	seen := map[string]string{}
	for _, c := range all[1:] {
		if c.Use || c.Link.Name == "office" {
			t.Errorf("%s is used: %s", c.Link.Name, c.Reason)
		}
		seen[c.Link.Name] += c.Reason + "\n"
	}
	for name, want := range map[string]string{"home": "not one of the links", "off": "enabled = false", "lo": "uses its name for an upstream proxy"} {
		if !strings.Contains(seen[name], want) {
			t.Errorf("%s: %s", name, seen[name])
		}
	}
	for _, reason := range seen {
		if strings.Contains(reason, "there is no interface with this name") {
			t.Error(reason)
		}
	}
	if err := all[0].Link.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1080 cannot be reached") {
		t.Errorf("%v", err)
	}
}
