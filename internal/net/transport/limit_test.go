package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// census counts the open connections of a link. They are not wrapped, as in the product.
type census struct {
	mu    sync.Mutex
	conns []*net.TCPConn
	most  int
}

// add counts a new connection.
func (c *census) add(tcp *net.TCPConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, tcp)
	c.most = max(c.most, c.count())
}

// count returns how many connections are open. mu is held.
func (c *census) count() (n int) {
	for _, tcp := range c.conns {
		if rc, err := tcp.SyscallConn(); err == nil && rc.Control(func(uintptr) {}) == nil {
			n++
		}
	}
	return n
}

// now returns how many connections are open, and the most that were open at once.
func (c *census) now() (open, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count(), c.most
}

// watcher records the states of links.
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

// limited is a Transport over links with a limited number of connections per host.
type limited struct {
	*Transport
	links   map[string]*census
	watcher watcher
	cut     atomic.Bool // nothing can be connected to
}

func newLimited(t *testing.T, s *origintest.Server, most int, waitForLink time.Duration, names ...string) *limited {
	t.Helper()
	r := &limited{links: map[string]*census{}}
	for _, name := range names {
		r.links[name] = &census{}
	}
	cfg := config.Default()
	cfg.Threshold, cfg.MaxConnectionsPerHost, cfg.WaitForLink = 64<<10, most, waitForLink
	links := link.DialFunc(func(ctx context.Context, l link.Link, network, _ string) (net.Conn, error) {
		if r.cut.Load() {
			return nil, syscall.EHOSTUNREACH
		}
		c, err := (&net.Dialer{}).DialContext(ctx, network, s.Addr(l.Metric/100-1))
		if err != nil {
			return nil, err
		}
		r.links[l.Name].add(c.(*net.TCPConn))
		return c, nil
	}).Over(named(names...)...)
	var err error
	r.Transport, err = New(Config{
		Settings: cfg, Log: slog.New(slog.DiscardHandler), Source: discover.NewStatic(links...), Observers: []engine.Observer{&r.watcher},
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
		eventually(t, "the end of all connections", func() bool {
			for _, c := range r.links {
				if open, _ := c.now(); open > 0 {
					return false
				}
			}
			return true
		})
	})
	return r
}

// fits checks that no link had more than n connections open at once and that none was blamed for anything.
func (r *limited) fits(t *testing.T, n int) {
	t.Helper()
	for name, c := range r.links {
		if _, most := c.now(); most > n || most == 0 {
			t.Errorf("%s had %d connections at a time, want %d at most", name, most, n)
		}
	}
	r.watcher.mu.Lock()
	defer r.watcher.mu.Unlock()
	well := func(s string) bool { // on a busy machine bytes may be overdue, too
		return strings.HasSuffix(s, " up ") || strings.HasSuffix(s, " suspect silence")
	}
	if slices.ContainsFunc(r.watcher.states, func(s string) bool { return !well(s) }) {
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

// TestLimitDownloads: two downloads from one host that may have one connection over each link. A connection that one has
// finished with goes to the other; neither waits for idle connections to end.
func TestLimitDownloads(t *testing.T) {
	for _, names := range [][]string{{"wifi"}, {"wifi", "lte"}} {
		t.Run(fmt.Sprint(names), func(t *testing.T) {
			s := origintest.New(t, origintest.Object{Size: 4 * mid}, origintest.RateLimit(4*paced))
			r := newLimited(t, s, 1, 10*time.Second, names...)
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() { r.download(t, s) })
			}
			all.Wait()
			r.fits(t, 1)
		})
	}
}

// TestLimitSharesWithIdle: idle connections make room for others, whatever they were used for.
func TestLimitSharesWithIdle(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: mid})
	r := newLimited(t, s, 1, 10*time.Second, "wifi")
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
		r.cut.Store(true)
		if _, _, err := r.DialTunnel(t.Context(), s.Addr(0)); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("what has failed holds no slot: %v", err)
		}
		r.cut.Store(false)
	}
	if took := time.Since(began); took >= 10*time.Second {
		t.Errorf("it took %v: somebody waited for idle connections", took)
	}
	r.fits(t, 1)
}

// TestLimitCountsEverything: tunnels, pass-through and transfers share the slots of a host.
func TestLimitCountsEverything(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: mid})
	r := newLimited(t, s, 1, 50*time.Millisecond, "wifi", "lte")
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
		if f := FailureOf(err); f.Outcome != fault.NoSlot || !errors.As(err, new(*link.NoSlotError)) {
			t.Errorf("%s: %v", what, err)
		}
	}
	tunnels[1].Close()
	r.download(t, s)
	tunnels[0].Close()
	for name, c := range r.links {
		if _, most := c.now(); most > 2 { // one for the other host
			t.Errorf("%s had %d connections at a time", name, most)
		}
	}
}
