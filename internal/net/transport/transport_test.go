package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

const (
	mid   = 1<<20 + 12345 // bytes: some ranges per link, not a multiple of anything
	paced = 2 << 20       // bytes per second of one connection: both links are needed for long enough
)

func named(names ...string) []link.Link {
	var all []link.Link
	for i, n := range names {
		all = append(all, link.Link{Name: n, Metric: 100 * (i + 1), Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})}})
	}
	return all
}

// newTransport returns a Transport that runs until the test ends. The n-th link leads to the n-th node of s.
func newTransport(t testing.TB, s *origintest.Server, names ...string) *Transport {
	t.Helper()
	cfg := config.Default()
	cfg.Threshold = 64 << 10
	links := named(names...)
	dial := func(ctx context.Context, l link.Link, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.Addr(l.Metric/100-1))
	}
	tr, err := New(Config{Settings: cfg, Log: slog.New(slog.DiscardHandler), Source: discover.NewStatic(link.DialFunc(dial).Over(links...)...)})
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

func get(t testing.TB, u string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// withUsage returns a context whose requests record in u what they use.
func withUsage(ctx context.Context, u *Usage) context.Context {
	return With(ctx, func(o *Options) { o.Usage = u })
}

func TestRoundTrip(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: mid}, origintest.RateLimit(paced))
	tr := newTransport(t, s, "wifi", "lte")
	var used Usage
	r := get(t, s.URL())
	resp, err := tr.RoundTrip(r.WithContext(withUsage(t.Context(), &used)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.Equal(b, s.Object().Bytes(0, mid)) {
		t.Errorf("%d, %d bytes, %v", resp.StatusCode, len(b), err)
	}
	resp.Body.Close()
	links := used.Links()
	if len(links) != 2 || links[0].Bytes == 0 || links[1].Bytes == 0 || used.Reason() != "" {
		t.Errorf("%+v, %q", links, used.Reason())
	}
	for reason, ctx := range map[string]context.Context{"mine": With(t.Context(), func(o *Options) { o.Undivided = "mine" }), "multi_range": t.Context()} {
		r := get(t, s.URL())
		if reason != "mine" {
			r.Header.Set("Range", "bytes=0-1,3-4")
		}
		var used Usage
		resp, err := tr.RoundTrip(r.WithContext(withUsage(ctx, &used)))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, resp.Body); n == 0 || err != nil {
			t.Error(n, err)
		}
		resp.Body.Close()
		if links := used.Links(); len(links) != 1 || links[0].Link != "wifi" || used.Reason() != reason {
			t.Errorf("%+v, %q, want %q", links, used.Reason(), reason)
		}
	}
}

// file is an io.WriterAt in memory that checks that no byte is written twice.
type file struct {
	mu      sync.Mutex
	b       []byte
	written []bool
	twice   bool
	inOrder bool
	next    int64
	fail    error
}

func newFile(size int64) *file {
	return &file{b: make([]byte, size), written: make([]bool, size), inOrder: true}
}

func (f *file) WriteAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil && f.next > 0 {
		return 0, f.fail
	}
	f.inOrder = f.inOrder && off == f.next
	f.next = off + int64(len(p))
	for i := range p {
		f.twice = f.twice || f.written[off+int64(i)]
		f.written[off+int64(i)] = true
	}
	return copy(f.b[off:], p), nil
}

func TestWriteAtTo(t *testing.T) {
	size := int64(8 * mid)
	s := origintest.New(t, origintest.Object{Size: size}, origintest.RateLimit(4*paced))
	tr := newTransport(t, s, "wifi", "lte")
	for _, field := range []string{"", "bytes=1000-", "bytes=1000-5000000", "bytes=0-1,3-4"} {
		t.Run(field, func(t *testing.T) {
			r := get(t, s.URL())
			if field != "" {
				r.Header.Set("Range", field)
			}
			resp, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if field == "bytes=0-1,3-4" {
				return // a passed-through answer has an ordinary Body
			}
			f := newFile(resp.ContentLength)
			var written, prefix int64
			n, err := resp.Body.(engine.Body).WriteAtTo(f, func(w, p int64) {
				if p > w || w < written || p < prefix {
					t.Errorf("%d written, %d of them without a gap; before %d, %d", w, p, written, prefix)
				}
				written, prefix = w, p
			})
			start := size - resp.ContentLength
			if field == "bytes=1000-5000000" {
				start = 1000
			}
			if err != nil || n != resp.ContentLength || written != n || prefix != n || f.twice || !bytes.Equal(f.b, s.Object().Bytes(start, start+n)) {
				t.Errorf("%d of %d bytes, %v; %d, %d, twice: %v", n, resp.ContentLength, err, written, prefix, f.twice)
			}
			if f.inOrder {
				t.Error("everything came in order: nothing is shown")
			}
		})
	}
	t.Run("the disk is full", func(t *testing.T) {
		resp, err := tr.RoundTrip(get(t, s.URL()))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		f := newFile(size)
		f.fail = errors.New("full")
		if n, err := resp.Body.(engine.Body).WriteAtTo(f, nil); !errors.Is(err, f.fail) || n >= size {
			t.Errorf("%d, %v", n, err)
		}
	})
	if st := tr.Status(); st.Budget.Held != 0 || st.Budget.Granted != 0 {
		t.Errorf("%d bytes held, %d granted", st.Budget.Held, st.Budget.Granted)
	}
}

// kernel has no link; its interface may become one soon.
type kernel struct {
	*discover.Static
	seen discover.Candidate
}

func (k kernel) List() ([]discover.Candidate, error) {
	return []discover.Candidate{k.seen}, nil
}

// Without a link, Await waits a moment for one, longer if the kernel is about to have one, and requests then report that there is none.
func TestAwait(t *testing.T) {
	none := func() discover.Source { return discover.NewStatic() }
	sees := func(seen discover.Candidate) func() discover.Source {
		return func() discover.Source { return kernel{discover.NewStatic(), seen} }
	}
	for name, c := range map[string]struct {
		source  func() discover.Source
		stopped bool
		want    time.Duration
	}{
		"waits": {none, false, firstLink}, "stopped": {none, true, 0},
		"no link in sight": {sees(discover.Candidate{}), false, firstLink}, "a carrier is about to come": {sees(discover.Candidate{Soon: true}), false, comingLink},
		"one has come, and is not reported yet": {sees(discover.Candidate{Use: true}), false, comingLink},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr, err := New(Config{Settings: config.Default(), Log: slog.New(slog.DiscardHandler), Source: c.source()})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stop, err := tr.Start(ctx)
				if err != nil {
					t.Fatal(err)
				}
				defer stop()
				if c.stopped {
					cancel()
				}
				began := time.Now()
				tr.Await(ctx)
				_, err = tr.RoundTrip(get(t, "http://h/"))
				took := time.Since(began)
				if !errors.Is(err, engine.ErrNoLink) || took != c.want {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// A command goes where its user could go, but over the link that leads there.
func TestDestinations(t *testing.T) {
	tr, err := New(Config{Settings: config.Default(), Log: slog.New(slog.DiscardHandler), Source: discover.NewStatic(), Binder: link.Device{}, Allow: Everywhere})
	if err != nil {
		t.Fatal(err)
	}
	home := link.Link{Name: "wifi", Prefixes: []netip.Prefix{netip.MustParsePrefix("192.168.1.0/24")}}
	other := link.Link{Name: "lte"}
	tr.reach.SetLinks([]link.Link{home, other})
	for _, addr := range []string{"127.0.0.1:80", "[::1]:80", "169.254.1.1:80", "93.184.215.14:80", "192.168.1.1:80"} {
		if _, err := tr.reach.Check(home, "", netip.MustParseAddrPort(addr)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if _, err := tr.reach.Check(other, "", netip.MustParseAddrPort("192.168.1.1:80")); !errors.Is(err, link.ErrOffLink) {
		t.Errorf("R184: %v", err)
	}
}

// Where an app owns the networks, the routes are unknown: this machine's addresses are denied anyway.
func TestR183_OwnAddresses(t *testing.T) {
	tr, err := New(Config{Settings: config.Default(), Log: slog.New(slog.DiscardHandler), Source: discover.NewStatic(), Binder: link.Device{}})
	if err != nil {
		t.Fatal(err)
	}
	if tr.reach.Local == nil {
		t.Fatal("nobody is asked which addresses are this machine's")
	}
	c, err := net.Dial("udp", "192.0.2.1:9") // sends nothing
	if err != nil {
		t.Skip("this machine has no address but loopback:", err)
	}
	own := c.LocalAddr().(*net.UDPAddr).AddrPort()
	c.Close()
	for _, a := range []netip.Addr{own.Addr(), netip.AddrFrom16(own.Addr().As16())} {
		if _, err := tr.reach.Check(link.Link{Name: "wifi"}, "", netip.AddrPortFrom(a, 80)); !errors.Is(err, link.ErrDenied) {
			t.Errorf("R183 %s: %v", a, err)
		}
	}
}

// A kept connection is checked like before its dial.
func TestR183_R198_KeptConnections(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tr, err := New(Config{Settings: config.Default(), Log: slog.New(slog.DiscardHandler), Source: discover.NewStatic(), Binder: link.Device{}})
	if err != nil {
		t.Fatal(err)
	}
	wifi := link.Link{Name: "wifi"}
	wifi.Path = link.DevicePath(wifi, tr.dials.Load)
	wifi.Path = &linkPath{tr, wifi}
	for _, addr := range []string{ln.Addr().String(), "name.example:80"} {
		if err := wifi.Revalidate(addr, c); !errors.Is(err, link.ErrDenied) {
			t.Errorf("R183 R198: %s may be reached over a kept connection: %v", addr, err)
		}
	}
}
