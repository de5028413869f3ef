package tributary

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
	"github.com/tributary-http/tributary/internal/net/transport"
)

const (
	size  = 4<<20 + 12345
	paced = 4 << 20 // bytes per second of one connection, so that both links are needed for long enough
)

// newTransport returns a Transport over two loopback links. lead returns where a connection over a link to an address goes.
func newTransport(t *testing.T, roots *x509.CertPool, lead func(link, addr string) string) *Transport {
	t.Helper()
	return dialing(t, roots, func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, lead(l.Name, addr))
	})
}

// dialing returns a Transport over two links that uses dial to connect.
func dialing(t *testing.T, roots *x509.CertPool, dial link.DialFunc) *Transport {
	t.Helper()
	var links []link.Link
	for i, name := range []string{"wifi", "lte"} {
		links = append(links, link.Link{Name: name, Metric: i, Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})}})
	}
	inner, err := transport.New(transport.Config{
		Settings: config.Default(), Log: slog.New(slog.DiscardHandler), Source: discover.NewStatic(dial.Over(links...)...), Roots: roots,
	})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := start(inner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

func straight(_, addr string) string { return addr }

// toNodes leads wifi to node 0 of s and lte to node 1.
func toNodes(s interface{ Addr(int) string }) func(string, string) string {
	return func(name, _ string) string { return s.Addr(map[string]int{"wifi": 0, "lte": 1}[name]) }
}

func request(t *testing.T, method, u string, body io.Reader, fields ...string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, u, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	return r
}

// all reads a response to its end.
func all(t *testing.T, resp *http.Response, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	return b
}

func TestDivides(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: size}, origintest.RateLimit(paced))
	secure := s.Secure()
	for name, tt := range map[string]struct {
		url   string
		nodes interface{ Addr(int) string }
	}{
		"http": {"http://object.test/object", s}, "HTTP/2": {"https://object.secure.test/object", secure},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTransport(t, secure.Roots, toNodes(tt.nodes))
			var report Report
			r := request(t, http.MethodGet, tt.url, nil)
			resp, err := tr.RoundTrip(r.WithContext(WithReport(t.Context(), &report)))
			b := all(t, resp, err)
			if !bytes.Equal(b, s.Object().Bytes(0, size)) || resp.StatusCode != http.StatusOK || resp.ContentLength != size || resp.Uncompressed {
				t.Errorf("%d, %d bytes", resp.StatusCode, len(b))
			}
			use := report.Links()
			if len(use) != 2 || use[0].Received == 0 || use[1].Received == 0 || report.Undivided() != "" {
				t.Errorf("%+v, %q", use, report.Undivided())
			}
			for _, l := range tr.Links() {
				if l.State != "up" || l.Received == 0 {
					t.Errorf("%+v", l)
				}
			}
		})
	}
	t.Run("the caller's own range", func(t *testing.T) {
		tr := newTransport(t, nil, toNodes(s))
		resp, err := tr.RoundTrip(request(t, http.MethodGet, s.URL(), nil, "Range: bytes=1000-3000999"))
		b := all(t, resp, err)
		want := fmt.Sprintf("bytes 1000-3000999/%d", size)
		if resp.StatusCode != http.StatusPartialContent || resp.Header.Get("Content-Range") != want || !bytes.Equal(b, s.Object().Bytes(1000, 3001000)) {
			t.Errorf("%d, %q, %d bytes", resp.StatusCode, resp.Header.Get("Content-Range"), len(b))
		}
	})
}

// TestContract checks net/http's contract of a RoundTripper.
func TestContract(t *testing.T) {
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Seen", fmt.Sprint(r.Method, " ", r.Header["X-Mine"], r.Header["User-Agent"], r.Header["Accept-Encoding"], r.Host))
		w.Header().Set("Trailer", "Sum")
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("Sum", "42")
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(large))
	})
	mux.HandleFunc("/hints", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "<a>")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = w.Write([]byte("ok"))
	})
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/large", http.StatusFound) })
	s := httptest.NewServer(mux)
	defer s.Close()
	tr := newTransport(t, nil, straight)

	t.Run("the request is not changed", func(t *testing.T) {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodHead} {
			r := request(t, method, s.URL+"/echo", nil, "X-Mine: a")
			before := r.Clone(t.Context())
			resp, err := tr.RoundTrip(r)
			all(t, resp, err)
			if fmt.Sprint(r.Header) != fmt.Sprint(before.Header) || *r.URL != *before.URL || r.Host != before.Host {
				t.Errorf("%v has become %v", before, r)
			}
			if seen := resp.Header.Get("Seen"); !strings.HasPrefix(seen, method+" [a] [Go-http-client/1.1] []127.0.0.1:") || resp.Request != r {
				t.Errorf("the server saw %q", seen)
			}
		}
	})
	t.Run("User-Agent can be left out", func(t *testing.T) {
		r := request(t, http.MethodPost, s.URL+"/echo", nil)
		r.Header["User-Agent"] = nil
		resp, err := tr.RoundTrip(r)
		if all(t, resp, err); !strings.Contains(resp.Header.Get("Seen"), "POST [] [] []") {
			t.Errorf("the server saw %q", resp.Header.Get("Seen"))
		}
	})
	t.Run("bodies are sent and closed, trailers come", func(t *testing.T) {
		b := &closing{Reader: strings.NewReader("content")}
		resp, err := tr.RoundTrip(request(t, http.MethodPost, s.URL+"/echo", b))
		if got := all(t, resp, err); string(got) != "content" || !b.isClosed() || resp.Trailer.Get("Sum") != "42" {
			t.Errorf("%q, closed %v, trailer %v", got, b.isClosed(), resp.Trailer)
		}
	})
	t.Run("bodies are closed when a request fails", func(t *testing.T) {
		for _, u := range []string{"http://127.0.0.1:1/", "ftp://h/", "http:///path"} {
			b := &closing{Reader: strings.NewReader("content")}
			if _, err := tr.RoundTrip(request(t, http.MethodPost, u, b)); err == nil || !b.isClosed() {
				t.Errorf("%s: %v, closed %v", u, err, b.isClosed())
			}
		}
	})
	t.Run("interim responses", func(t *testing.T) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			var codes []int
			trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
				if h.Get("Link") == "<a>" {
					codes = append(codes, code)
				}
				return nil
			}}
			r := request(t, method, s.URL+"/hints", nil)
			resp, err := tr.RoundTrip(r.WithContext(httptrace.WithClientTrace(t.Context(), trace)))
			if all(t, resp, err); !slices.Equal(codes, []int{103}) {
				t.Errorf("%s: %v", method, codes)
			}
		}
	})
	t.Run("cancellation", func(t *testing.T) {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			ctx, cancel := context.WithCancel(t.Context())
			r := request(t, method, s.URL+"/hang", nil)
			time.AfterFunc(20*time.Millisecond, cancel)
			if _, err := tr.RoundTrip(r.WithContext(ctx)); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", method, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := tr.RoundTrip(request(t, http.MethodGet, s.URL+"/large", nil).WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := io.Copy(io.Discard, struct{ io.Reader }{resp.Body}); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		resp.Body.Close()
	})
	t.Run("concurrent use", func(t *testing.T) {
		var each sync.WaitGroup
		for range 16 {
			each.Go(func() {
				resp, err := tr.RoundTrip(request(t, http.MethodGet, s.URL+"/large", nil))
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if b, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(b, large) {
					t.Errorf("%d bytes, %v", len(b), err)
				}
			})
		}
		each.Wait()
	})
	t.Run("no redirect is followed but by a client", func(t *testing.T) {
		resp, err := tr.RoundTrip(request(t, http.MethodGet, s.URL+"/redirect", nil))
		if all(t, resp, err); resp.StatusCode != http.StatusFound {
			t.Errorf("%d", resp.StatusCode)
		}
		var report Report
		r := request(t, http.MethodGet, s.URL+"/redirect", nil)
		resp, err = (&http.Client{Transport: tr}).Do(r.WithContext(WithReport(t.Context(), &report)))
		if b := all(t, resp, err); !bytes.Equal(b, large) || report.Undivided() != "" {
			t.Errorf("%d bytes, undivided: %q", len(b), report.Undivided())
		}
	})
	t.Run("HEAD and reasons", func(t *testing.T) {
		for method, reason := range map[string]string{http.MethodHead: "method", http.MethodGet: "small"} {
			var report Report
			r := request(t, method, s.URL+"/echo", nil)
			resp, err := tr.RoundTrip(r.WithContext(WithReport(t.Context(), &report)))
			all(t, resp, err)
			if use := report.Links(); report.Undivided() == "" || len(use) != 1 || reason == "method" && report.Undivided() != reason {
				t.Errorf("%s: %q, %+v", method, report.Undivided(), use)
			}
		}
	})
	t.Run("DialContext", func(t *testing.T) {
		c, err := tr.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if _, err := tr.DialContext(t.Context(), "udp", "h:1"); err == nil {
			t.Error("udp was dialed")
		}
	})
}

type closing struct {
	io.Reader
	mu     sync.Mutex
	closed bool
}

func (c *closing) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return nil
}

func (c *closing) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

func TestErrors(t *testing.T) {
	t.Run("unreachable", func(t *testing.T) {
		tr := newTransport(t, nil, func(string, string) string { return "127.0.0.1:1" })
		_, err := tr.RoundTrip(request(t, http.MethodGet, "http://h/", nil))
		var e *Error
		if !errors.As(err, &e) || e.Link == "" || !errors.Is(err, ErrUnreachable) {
			t.Errorf("%v", err)
		}
	})
	t.Run("changed in the middle", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: size}, origintest.RateLimit(paced), origintest.AfterBytes(1<<20, origintest.NewVersion()))
		tr := newTransport(t, nil, toNodes(s))
		resp, err := tr.RoundTrip(request(t, http.MethodGet, s.URL(), nil))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); !errors.Is(err, ErrChanged) {
			t.Errorf("%v", err)
		}
	})
	t.Run("untrusted certificate", func(t *testing.T) {
		s := origintest.New(t, origintest.Object{Size: size})
		tr := newTransport(t, x509.NewCertPool(), toNodes(s.Secure()))
		_, err := tr.RoundTrip(request(t, http.MethodGet, "https://object.secure.test/object", nil))
		if !errors.As(err, new(x509.UnknownAuthorityError)) {
			t.Errorf("%v", err)
		}
	})
	t.Run("broken", func(t *testing.T) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/content" {
				w.Header().Set("Content-Length", "1000")
				w.WriteHeader(http.StatusOK)
				_ = http.NewResponseController(w).Flush()
			}
			panic(http.ErrAbortHandler)
		}))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		defer s.Close()
		tr := newTransport(t, nil, straight)
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for _, path := range []string{"/head", "/content"} {
				resp, err := tr.RoundTrip(request(t, method, s.URL+path, nil))
				if err == nil {
					_, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				var e *Error
				if !errors.As(err, &e) || e.Link == "" || !strings.Contains(err.Error(), e.Link) || !errors.Is(err, ErrBroken) || e.Timeout() {
					t.Errorf("%s %s: %v", method, path, err)
				}
			}
		}
	})
	t.Run("timed out", func(t *testing.T) {
		tr := dialing(t, nil, func(context.Context, link.Link, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded}
		})
		_, err := (&http.Client{Transport: tr}).Get("http://h/")
		var u *url.Error
		if !errors.Is(err, ErrUnreachable) || !errors.As(err, &u) || !u.Timeout() {
			t.Errorf("%v", err)
		}
	})
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		o     Options
		wrong string // part of the error text; "" = no error
	}{
		{Options{}, ""},
		{Options{Memory: 8 << 20}, ""}, // MemoryPerResponse follows
		{Options{Memory: 8 << 20, MemoryPerResponse: 9 << 20}, "Memory:"},
		{Options{MemoryPerResponse: 1}, "MemoryPerResponse:"},
		{Options{Memory: -1}, "Memory:"},
		{Options{MinSize: -1}, "MinSize:"},
		{Options{WaitForLink: -1}, "WaitForLink:"},
		{Options{Scheduler: "none-such"}, "none-such"},
		{Options{Links: []string{"a/b"}}, "Links"},
	} {
		cfg, err := tt.o.settings()
		if (err == nil) != (tt.wrong == "") || err != nil && !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%+v: %v", tt.o, err)
		}
		if err == nil && cfg.TransferWindow > cfg.Budget {
			t.Errorf("%+v: %v for one response of %v", tt.o, cfg.TransferWindow, cfg.Budget)
		}
	}
	if _, err := New(Options{Scheduler: "none-such"}); err == nil {
		t.Error("New takes any scheduler")
	}
}

// Close ends running requests.
func TestClose(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: size}, origintest.RateLimit(paced))
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hang.Close()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		t.Run(method+" with an open Body", func(t *testing.T) {
			tr := newTransport(t, nil, toNodes(s))
			resp, err := tr.RoundTrip(request(t, method, s.URL(), nil))
			if err != nil {
				t.Fatal(err)
			}
			tr.Close()
			if n, err := io.Copy(io.Discard, struct{ io.Reader }{resp.Body}); err != ErrClosed || n == size {
				t.Errorf("%d bytes, %v", n, err)
			}
			resp.Body.Close()
			if _, err := resp.Body.Read(make([]byte, 1)); err != http.ErrBodyReadAfterClose {
				t.Error(err)
			}
		})
		t.Run(method+" without a response", func(t *testing.T) {
			sent := make(chan struct{})
			once := sync.OnceFunc(func() { close(sent) }) // both links may be tried
			tr := newTransport(t, nil, func(_, addr string) string {
				once()
				return addr
			})
			go func() {
				<-sent
				tr.Close()
				hang.CloseClientConnections() // so that the test ends even if Close does nothing
			}()
			if _, err := tr.RoundTrip(request(t, method, hang.URL, nil)); err != ErrClosed {
				t.Error(err)
			}
		})
	}
	tr := newTransport(t, nil, straight)
	tr.Close()
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	if _, err := tr.RoundTrip(request(t, http.MethodGet, "http://h/", nil)); err != ErrClosed {
		t.Error(err)
	}
	if _, err := tr.DialContext(t.Context(), "tcp", strings.TrimPrefix(hang.URL, "http://")); err != ErrClosed {
		t.Error(err)
	}
	if all := tr.Links(); len(all) != 2 {
		t.Errorf("%+v", all)
	}
}

func TestDownload(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: size}, origintest.RateLimit(paced))
	tr := newTransport(t, nil, toNodes(s))
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	resp, n, err := tr.Download(t.Context(), request(t, http.MethodGet, s.URL(), nil), f)
	if err != nil || n != size || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d bytes, %v", n, err)
	}
	if b, err := os.ReadFile(f.Name()); err != nil || !bytes.Equal(b, s.Object().Bytes(0, size)) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	for _, l := range tr.Links() {
		if l.Received == 0 {
			t.Errorf("%s brought nothing", l.Name)
		}
	}
	for name, u := range map[string]string{"divided": s.URL(), "as it is": s.URL() + "?X-Amz-SignedHeaders=range"} {
		resp, _, err := tr.Download(t.Context(), request(t, http.MethodGet, u, nil), full{})
		if err != errFull || resp == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	missing := origintest.New(t, origintest.Object{Size: size}, origintest.Status(404))
	tr = newTransport(t, nil, toNodes(missing))
	var status *StatusError
	if _, n, err := tr.Download(t.Context(), request(t, http.MethodGet, missing.URL(), nil), f); !errors.As(err, &status) || status.StatusCode != 404 || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
}

// TestPartial: a part that was not asked for is never a successful Download.
func TestPartial(t *testing.T) {
	const total = 1_000_000
	always := func(start, end int64, more ...origintest.Fault) []origintest.Fault {
		return append([]origintest.Fault{origintest.Always206(start, end)}, more...)
	}
	for _, c := range []struct {
		name, asked string
		faults      []origintest.Fault
		status      int // 0 = ErrInconsistent
		start, end  int64
	}{
		{"R233 a middle for nothing", "", always(5000, 6000), 0, 0, 0},
		{"R233 the beginning for nothing", "", always(0, 1000), 0, 0, 0},
		{"R233 another range", "bytes=0-999", always(5000, 6000), 0, 0, 0},
		{"R233 less than asked", "bytes=5000-6999", always(5000, 6000), 0, 0, 0},
		{"R233 another suffix", "bytes=-1000", always(5000, 6000), 0, 0, 0},
		{"R233 no Content-Range", "bytes=0-999", always(0, 1000, origintest.NoContentRange()), 0, 0, 0},
		{"R233 two Content-Ranges", "bytes=0-999", always(0, 1000, origintest.Add("Content-Range", "bytes 0-999/1000000")), 0, 0, 0},
		{"R233 a suffix of something", "bytes=-1000", always(0, 1000, origintest.WrongTotal(-1)), 0, 0, 0},
		{"R233 all for nothing", "", always(0, total), 0, 0, 0},
		{"R233 the range", "bytes=5000-5999", nil, 206, 5000, 6000},
		{"R233 up to the end", "bytes=5000-", nil, 206, 5000, total},
		{"R233 beyond the end", "bytes=5000-2000000", nil, 206, 5000, total},
		{"R233 the suffix", "bytes=-1000", nil, 206, total - 1000, total},
		{"R233 of an unknown total", "bytes=5000-5999", []origintest.Fault{origintest.WrongTotal(-1)}, 206, 5000, 6000},
		{"R233 ranges are ignored", "bytes=5000-5999", []origintest.Fault{origintest.NoRanges()}, 200, 0, total},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := origintest.New(t, origintest.Object{Size: total}, c.faults...)
			tr := newTransport(t, nil, toNodes(s))
			r := request(t, http.MethodGet, s.URL(), nil)
			if c.asked != "" {
				r.Header.Set("Range", c.asked)
			}
			f, err := os.Create(filepath.Join(t.TempDir(), "f"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			resp, n, err := tr.Download(t.Context(), r, f)
			b, readErr := os.ReadFile(f.Name())
			if readErr != nil {
				t.Fatal(readErr)
			}
			switch {
			case c.status == 0:
				var asked int64 // bytes of the requested range may have been written
				_, _ = fmt.Sscanf(c.asked, "bytes=%d-", &asked)
				if !errors.Is(err, ErrInconsistent) || s.Object().Mismatch(b, max(asked, 0)) >= 0 {
					t.Errorf("%d bytes, %d in the file, %v", n, len(b), err)
				}
			case err != nil || resp.StatusCode != c.status || n != c.end-c.start || !bytes.Equal(b, s.Object().Bytes(c.start, c.end)):
				t.Errorf("%d bytes, %d in the file, %v", n, len(b), err)
			}
		})
	}
}

var errFull = errors.New("the disk is full")

// full is a file without space.
type full struct{}

func (full) WriteAt([]byte, int64) (int, error) { return 0, errFull }

// TestNothingIsLeft: everything that a Transport started has ended when Close returns.
func TestNothingIsLeft(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: size}, origintest.RateLimit(paced))
	tr := newTransport(t, nil, toNodes(s))
	resp, err := tr.RoundTrip(request(t, http.MethodGet, s.URL(), nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, resp.Body, 1<<20); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close() // in the middle
	tr.Close()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		stacks := make([]byte, 1<<20)
		var left []string
		for _, g := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if strings.Contains(g, "/internal/net/engine.") || strings.Contains(g, "/internal/net/transport.") || strings.Contains(g, "/internal/net/origin.") ||
				strings.Contains(g, "/internal/net/direct.") {
				left = append(left, g)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left:\n%s", strings.Join(left, "\n\n"))
		}
	}
}

// TestReadThenCopy: programs read the beginning of a body to see what it is, and copy the rest.
func TestReadThenCopy(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: size}, origintest.RateLimit(paced))
	tr := newTransport(t, nil, toNodes(s))
	resp, err := tr.RoundTrip(request(t, "GET", s.URL(), nil))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got bytes.Buffer
	if _, err := io.CopyN(&got, resp.Body, 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(&got, resp.Body); err != nil || !bytes.Equal(got.Bytes(), s.Object().Bytes(0, size)) {
		t.Errorf("%d bytes, %v; want the %d bytes of the object", got.Len(), err, size)
	}
}
