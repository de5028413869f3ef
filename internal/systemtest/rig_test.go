package systemtest

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// limit bounds every wait of these tests; a passing test does not come near it.
const limit = time.Minute

const (
	threshold = 64 << 10
	mid       = 1<<20 + 12345 // size of most objects: some ranges per link, no multiple of anything
	paced     = 2 << 20       // bytes per second of one connection: both links are needed for long enough
)

// rig is the real proxy over links that lead to the nodes of an origin.
type rig struct {
	t      testing.TB
	server *origintest.Server
	wifi   *path
	lte    *path
	source *discover.Static
	d      *daemon.Daemon
	url    *url.URL
	stop   func()
	said   said
}

// said is the proxy's log.
type said struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) has(part string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Contains(s.b.String(), part)
}

func named(names ...string) []link.Link {
	var all []link.Link
	for _, n := range names {
		i := 1 + max(slices.Index([]string{"wifi", "lte", "wifi2", "lte2"}, n), 0)
		addr := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
		all = append(all, link.Link{Name: n, Metric: 100 * i, Addrs: []netip.Addr{addr}})
	}
	return all
}

func settings() config.Config {
	cfg := config.Default()
	cfg.Listen, cfg.Admin, cfg.Control = "127.0.0.1:0", "", ""
	cfg.Threshold = threshold
	return cfg
}

// newRig starts the proxy over the named links: Wi-Fi links lead to node 0, others to node 1. Cleanup waits for everything.
func newRig(t testing.TB, s *origintest.Server, cfg config.Config, names ...string) *rig {
	t.Helper()
	return makeRig(t, s, nil, cfg, "", names...)
}

// newRigWith makes a rig whose port 443 leads to the secure face of the origin.
func newRigWith(t testing.TB, s *origintest.Server, secure *origintest.Secure, cfg config.Config, names ...string) *rig {
	t.Helper()
	return makeRig(t, s, secure, cfg, "", names...)
}

// newRigRemembering makes a rig that keeps its history in a file.
func newRigRemembering(t testing.TB, s *origintest.Server, cfg config.Config, history string, names ...string) *rig {
	t.Helper()
	return makeRig(t, s, nil, cfg, history, names...)
}

func makeRig(t testing.TB, s *origintest.Server, secure *origintest.Secure, cfg config.Config, history string, names ...string) *rig {
	t.Helper()
	r := &rig{t: t, server: s, source: discover.NewStatic(named(names...)...)}
	r.wifi = &path{name: "wifi", addr: s.Addr(0), conns: map[*gated]bool{}}
	r.lte = &path{name: "lte", addr: s.Addr(1), conns: map[*gated]bool{}}
	var roots *x509.CertPool
	if secure != nil {
		roots, r.wifi.secure, r.lte.secure = secure.Roots, secure.Addr(0), secure.Addr(1)
	}
	dial := func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
		if strings.HasPrefix(l.Name, "wifi") {
			return r.wifi.dial(ctx, network, addr)
		}
		return r.lte.dial(ctx, network, addr)
	}
	var to io.Writer = &r.said
	if os.Getenv("TRIBUTARY_TEST_LOG") != "" {
		to = io.MultiWriter(to, os.Stderr)
	}
	log := slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d, u, stop, err := daemon.StartWith(context.Background(), cfg, log, transport.Config{
		Source: discover.WithPaths(r.source, link.DialFunc(dial).Path), Roots: roots, History: history,
	})
	if err != nil {
		t.Fatalf("start the proxy: %v", err)
	}
	r.d, r.stop = d, sync.OnceFunc(stop)
	r.url, _ = url.Parse(u)
	t.Cleanup(func() {
		r.wifi.speak()
		r.lte.speak()
		within(t, "stop of the proxy", r.stop)
	})
	return r
}

// within runs f and fails the test with every goroutine's stack if it takes too long.
func within(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(limit):
		t.Errorf("%s takes longer than %v:\n%s", what, limit, origintest.Stacks())
	}
}

// until polls until a condition is true.
func until(t testing.TB, what string, within time.Duration, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not so after %v", what, within)
		}
	}
}

// carried returns the number of body bytes that arrived over a link.
func (r *rig) carried(name string) int64 {
	for _, l := range r.d.Status().Links {
		if l.Name == name {
			return l.Bytes
		}
	}
	return 0
}

func (r *rig) state(name string) string {
	for _, l := range r.d.Status().Links {
		if l.Name == name {
			return l.State
		}
	}
	return ""
}

// suspected reports whether a download suspected a link.
func (r *rig) suspected(name string) bool { return r.said.has("link=" + name + " state=suspect") }

// seen is an answer as the client saw it.
type seen struct {
	status int
	header http.Header
	length int64
	body   []byte
	err    error // of the head or the body
}

func (s seen) String() string {
	return fmt.Sprintf("%d, Content-Length %d, %d bytes, error %v", s.status, s.length, len(s.body), s.err)
}

// client returns a client that adds no fields and follows no redirects; proxy nil = direct.
func client(t testing.TB, proxy *url.URL) *http.Client {
	tr := &http.Transport{DisableCompression: true}
	if proxy != nil {
		tr.Proxy = http.ProxyURL(proxy)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{
		Transport: tr, Timeout: limit,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func request(ctx context.Context, u string, h http.Header) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		panic(err) // the tests' own URLs
	}
	for k, v := range h {
		req.Header[k] = v
	}
	return req
}

// fetch GETs u and reads the whole body.
func fetch(c *http.Client, u string, h http.Header) seen { return fetchBy(c, http.MethodGet, u, h) }

func fetchBy(c *http.Client, method, u string, h http.Header) seen {
	q := request(context.Background(), u, h)
	q.Method = method
	resp, err := c.Do(q)
	if err != nil {
		return seen{err: err}
	}
	defer resp.Body.Close()
	s := seen{status: resp.StatusCode, header: resp.Header, length: resp.ContentLength}
	s.body, s.err = io.ReadAll(resp.Body)
	return s
}

func (r *rig) get(h http.Header) seen { return fetch(client(r.t, r.url), r.server.URL(), h) }

// wrong describes the first error in the bytes of an object from offset off, "" if there is none.
func wrong(o origintest.Object, body []byte, off int64) string {
	if i := o.Mismatch(body, off); i >= 0 {
		return fmt.Sprintf("byte %d is not the object's", i)
	}
	return ""
}

// whole fails the test unless s is the whole object.
func whole(t testing.TB, s seen, o origintest.Object) {
	t.Helper()
	switch {
	case s.err != nil:
		t.Errorf("%v", s)
	case s.status != http.StatusOK || int64(len(s.body)) != o.Size:
		t.Errorf("%v, want 200 with %d bytes", s, o.Size)
	default:
		if w := wrong(o, s.body, 0); w != "" {
			t.Error(w)
		}
	}
}

// transfers are the names of goroutines that run for one request and must end with it.
var transfers = []string{"engine.(*run)", "engine.(*connLoop)", "proxy.(*exchange)", "origin.(*conn)"}

// noneLeft waits until no goroutine of the product whose stack contains one of the names is left.
func noneLeft(t testing.TB, within time.Duration, names ...string) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(within)
	for left := origintest.Running(names...); len(left) > 0; left = origintest.Running(names...) {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines are left after %v:\n%s", len(left), within, strings.Join(left, "\n\n"))
		}
		<-tick.C
	}
}

// stream is a running download whose reader the test controls.
type stream struct {
	t      testing.TB
	resp   *http.Response
	cancel context.CancelFunc
	got    bytes.Buffer
}

// open GETs the object through the proxy and returns when the head has arrived.
func (r *rig) open(h http.Header) *stream {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	resp, err := client(r.t, r.url).Do(request(ctx, r.server.URL(), h))
	if err != nil {
		cancel()
		r.t.Fatalf("no answer: %v", err)
	}
	s := &stream{t: r.t, resp: resp, cancel: cancel}
	r.t.Cleanup(s.close)
	return s
}

func (s *stream) close() { s.cancel(); s.resp.Body.Close() }

// read reads n more bytes.
func (s *stream) read(n int64) {
	s.t.Helper()
	if k, err := io.CopyN(&s.got, s.resp.Body, n); err != nil {
		s.t.Fatalf("%d of %d more bytes, after %d: %v", k, n, s.got.Len(), err)
	}
}

// sip reads in small pieces until stop is called, since a client that pauses for half a second is taken for a slow one, which one
// link can serve.
func (s *stream) sip() (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(4 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return
			case <-tick.C:
				if _, err := io.CopyN(&s.got, s.resp.Body, 16<<10); err != nil {
					return // rest sees the same error
				}
			}
		}
	}()
	return func() { close(over); <-ended }
}

// rest reads to the end and compares the content with o.
func (s *stream) rest(o origintest.Object) {
	s.t.Helper()
	_, err := io.Copy(&s.got, s.resp.Body)
	whole(s.t, seen{status: s.resp.StatusCode, body: s.got.Bytes(), err: err}, o)
}
