package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/origin/origintest"
)

// census counts the connections of a link that are open.
type census struct{ open, most atomic.Int64 }

func (c *census) add(n int64) {
	now := c.open.Add(n)
	for was := c.most.Load(); now > was && !c.most.CompareAndSwap(was, now); was = c.most.Load() {
	}
}

// countedConn is a TCP connection in a census.
type countedConn struct {
	*net.TCPConn
	in   *census
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.in.add(-1) })
	return c.TCPConn.Close()
}

// watcher notes the states of links.
type watcher struct {
	mu     sync.Mutex
	states []string
}

func (w *watcher) Observe(e engine.Event) {
	if e.Kind != engine.EventLinkState && e.Kind != engine.EventOriginState {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.states = append(w.states, e.Link+" "+e.State+" "+e.Reason)
}

// limited is a Transport over two links, each with so many connections per host at most.
type limited struct {
	*Transport
	links   map[string]*census
	watcher watcher
}

func newLimited(t *testing.T, s *origintest.Server, most int, patience time.Duration) *limited {
	t.Helper()
	r := &limited{links: map[string]*census{"wifi": {}, "lte": {}}}
	cfg := config.Default()
	cfg.Threshold, cfg.MaxConnectionsPerHost, cfg.WaitForLink = 64<<10, most, patience
	links := link.DialFunc(func(ctx context.Context, l link.Link, network, _ string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, s.Addr(l.Metric/100-1))
		if err != nil {
			return nil, err
		}
		r.links[l.Name].add(1)
		return &countedConn{TCPConn: c.(*net.TCPConn), in: r.links[l.Name]}, nil
	}).Over(named("wifi", "lte")...)
	var err error
	r.Transport, err = New(Config{
		Settings: cfg, Log: slog.New(slog.DiscardHandler), Source: link.NewStatic(links...), Observers: []engine.Observer{&r.watcher},
	})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := r.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.Close()
		stop()
		eventually(t, "the end of all connections", func() bool { return r.links["wifi"].open.Load() == 0 && r.links["lte"].open.Load() == 0 })
	})
	return r
}

// fits checks that no link had more than n connections at a time and that none was blamed for anything.
func (r *limited) fits(t *testing.T, n int64) {
	t.Helper()
	for name, c := range r.links {
		if most := c.most.Load(); most > n || most == 0 {
			t.Errorf("%s had %d connections at a time, want %d at most", name, most, n)
		}
	}
	r.watcher.mu.Lock()
	defer r.watcher.mu.Unlock()
	if up := []string{"wifi up ", "lte up "}; slices.ContainsFunc(r.watcher.states, func(s string) bool { return !slices.Contains(up, s) }) {
		t.Errorf("states of links: %q", r.watcher.states)
	}
}

// download gets the object and checks it.
func (r *limited) download(t *testing.T, s *origintest.Server) {
	t.Helper()
	resp, err := r.RoundTrip(get(t, s.URL()))
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(struct{ io.Reader }{resp.Body})
	if err != nil || !bytes.Equal(b, s.Object().Bytes(0, s.Object().Size)) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// TestLimitDownloads: two downloads from one host that may have one connection over each link.
func TestLimitDownloads(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: 4 * mid}, origintest.RateLimit(2*paced))
	r := newLimited(t, s, 1, time.Minute)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() { r.download(t, s) })
	}
	all.Wait()
	r.fits(t, 1)
}

// TestLimitSharesWithIdle: connections that nobody uses make room for others, whatever they were used for.
func TestLimitSharesWithIdle(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: mid})
	r := newLimited(t, s, 1, 10*time.Second)
	began := time.Now()
	for range 2 {
		r.download(t, s)
		q := get(t, s.URL())
		q.Method = http.MethodHead
		resp, err := r.RoundTrip(q)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		c, _, err := r.DialTunnel(t.Context(), s.Addr(0))
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if took := time.Since(began); took >= 10*time.Second {
		t.Errorf("it took %v: somebody waited for idle connections", took)
	}
	r.fits(t, 1)
}

// TestLimitCountsEverything: tunnels, pass-through and transfers have the slots of a host together.
func TestLimitCountsEverything(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: mid})
	r := newLimited(t, s, 1, 50*time.Millisecond)
	var tunnels []net.Conn
	for _, want := range []string{"wifi", "lte"} {
		c, name, err := r.DialTunnel(t.Context(), s.Addr(0))
		if err != nil || name != want {
			t.Fatalf("%s, %v, want %s", name, err, want)
		}
		tunnels = append(tunnels, c)
	}
	if other, _, err := r.DialTunnel(t.Context(), "other.test:80"); err != nil {
		t.Errorf("another host: %v", err)
	} else {
		other.Close()
	}
	head := get(t, s.URL())
	head.Method = http.MethodHead
	for what, ask := range map[string]func() error{
		"tunnel":   func() error { _, _, err := r.DialTunnel(t.Context(), s.Addr(0)); return err },
		"head":     func() error { _, err := r.RoundTrip(head); return err },
		"transfer": func() error { _, err := r.RoundTrip(get(t, s.URL())); return err },
	} {
		err := ask()
		if f, ok := FailureOf(err); !ok || f.Cause != Full || !errors.As(err, new(*link.NoSlotError)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	tunnels[1].Close()
	r.download(t, s)
	tunnels[0].Close()
	for name, c := range r.links {
		if most := c.most.Load(); most > 2 { // one for the other host
			t.Errorf("%s had %d connections at a time", name, most)
		}
	}
}
