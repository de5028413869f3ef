package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/front/page"
	"github.com/tributary-http/tributary/internal/net/engine"
)

// state is a proxy whose links carry data.
type state struct {
	mu     sync.Mutex
	s      control.Status
	looks  int
	perAsk int64 // bytes that wifi carries between two looks
}

func (x *state) status() control.Status {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.looks++
	if len(x.s.Links) > 0 {
		x.s.Links[0].Bytes += x.perAsk
	}
	s := x.s
	s.Links = append([]engine.LinkStatus(nil), x.s.Links...)
	return s
}

func (x *state) set(change func(*state)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change(x)
}

// update is what a viewer sees.
type update struct {
	History []struct{ Rates map[string]int64 }
	Sample  *struct{ Rates map[string]int64 }
	Status  control.Status
	Names   map[uint64]struct{ Host, Name string }
	Ended   []page.Ended
	Passed  map[string]int64
	Found   []page.Finding
}

// stream is a viewer.
type stream struct {
	t    *testing.T
	from *bufio.Reader
}

// watch opens the stream of updates, in a synctest bubble without sockets.
func watch(t *testing.T, h http.Handler) *stream {
	t.Helper()
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		h.ServeHTTP(&answer{w, http.Header{}}, httptest.NewRequestWithContext(ctx, "GET", "/live/events", nil))
		w.Close()
	}()
	t.Cleanup(func() { cancel(); r.Close(); <-over })
	return &stream{t, bufio.NewReader(r)}
}

// answer is a ResponseWriter that streams.
type answer struct {
	io.Writer
	h http.Header
}

func (a *answer) Header() http.Header              { return a.h }
func (a *answer) WriteHeader(int)                  {}
func (a *answer) Flush()                           {}
func (a *answer) SetWriteDeadline(time.Time) error { return nil }

func (s *stream) next() (u update) {
	s.t.Helper()
	line, err := s.from.ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	if empty, err := s.from.ReadString('\n'); err != nil || empty != "\n" || !strings.HasPrefix(line, "data: ") {
		s.t.Fatalf("%q then %q, %v", line, empty, err)
	}
	if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &u); err != nil {
		s.t.Fatal(err)
	}
	return u
}

func everybody(*http.Request) bool { return true }

// TestUpdates: a viewer gets the history, then once a second the bytes that the links carried.
func TestUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &state{perAsk: 1_000_000}
		x.s.Links = []engine.LinkStatus{{Name: "wifi", State: "up", Bytes: 5e9}}
		x.s.Transfers = []engine.TransferStatus{{ID: 1, Host: "a.test", Name: "big.iso", Size: 100}}
		p := page.New(nil)
		go p.Run(t.Context(), x.status)
		h := p.Handler(everybody)
		time.Sleep(10*time.Second + time.Millisecond)
		one, two := watch(t, h), watch(t, h)
		u := one.next()
		if len(u.History) != 11 || u.History[0].Rates["wifi"] != 0 || u.Sample != nil {
			t.Fatalf("%+v: want 11 samples, the first without what was carried before", u)
		}
		if u.Ended == nil || u.Passed == nil {
			t.Error("null in place of an empty list")
		}
		two.next()
		for i := range 3 {
			u, other := one.next(), two.next()
			if u.Sample == nil || u.Sample.Rates["wifi"] < 900_000 || u.Sample.Rates["wifi"] > 3_000_000 {
				t.Errorf("update %d: %+v", i, u.Sample)
			}
			if len(u.Status.Transfers) != 1 || u.Names[1].Name != "big.iso" || u.Names[1].Host != "a.test" || other.Status.Links[0].Bytes != u.Status.Links[0].Bytes {
				t.Errorf("update %d: %+v and %+v", i, u.Status, other.Status)
			}
		}
	})
}

// TestSleeps: while there are neither downloads nor viewers, Run does not read the state; the history covers at most five
// minutes.
func TestSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &state{}
		x.s.Links = []engine.LinkStatus{{Name: "wifi"}}
		p := page.New(nil)
		go p.Run(t.Context(), x.status)
		time.Sleep(5 * time.Second)
		x.set(func(x *state) { x.looks = 0 })
		time.Sleep(time.Hour)
		x.set(func(x *state) {
			if x.looks > 0 {
				t.Errorf("%d looks while nothing runs", x.looks)
			}
			x.perAsk = 1000
			x.s.Undivided = 1
		})
		p.Wake()
		time.Sleep(20 * time.Minute)
		u := watch(t, p.Handler(everybody)).next()
		if n := len(u.History); n < 299 || n > 300 {
			t.Errorf("%d samples of 20 minutes, want those of five", n)
		}
	})
}

// TestFindings: Run looks for problems while there are viewers, once in ten minutes, and a look that hangs delays nothing.
func TestFindings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		p := page.New(func(ctx context.Context) []page.Finding {
			if looks.Add(1) == 1 {
				return []page.Finding{{Name: "dns", Found: "slow"}}
			}
			<-ctx.Done() // hangs
			return nil
		})
		over := make(chan struct{})
		go func() { defer close(over); p.Run(ctx, (&state{}).status) }()
		time.Sleep(time.Hour)
		if n := looks.Load(); n != 0 {
			t.Errorf("%d looks while nobody watches", n)
		}
		one := watch(t, p.Handler(everybody))
		if u := one.next(); u.Found != nil {
			t.Errorf("%+v before the first look", u.Found)
		}
		for range 300 {
			one.next()
		}
		if u := watch(t, p.Handler(everybody)).next(); len(u.Found) != 1 || u.Found[0].Name != "dns" || looks.Load() != 1 {
			t.Errorf("%+v after %d looks, want one", u.Found, looks.Load())
		}
		for range 302 {
			one.next()
		}
		if n := looks.Load(); n != 2 {
			t.Errorf("%d looks in ten minutes and one second, want 2", n)
		}
		for range 16 {
			one.next()
		}
		if u := one.next(); u.Found == nil || len(u.Found) > 0 {
			t.Errorf("%+v after a look that was cut off", u.Found)
		}
		for range 590 {
			one.next()
		}
		cancel() // while another look hangs
		<-over
	})
}

// TestEvents: the page shows ended downloads and passed-through requests, within limits.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := page.New(nil)
		for i := range 60 {
			p.Observe(engine.Event{
				Kind: engine.EventTransferEnded, Reason: "ok", Took: 2 * time.Second, At: time.Now(),
				Ended: &engine.TransferStatus{ID: uint64(i), Host: "a.test", Name: "f", Offset: int64(i), Links: []engine.LinkBytes{{Link: "lte", Bytes: 7}}},
			})
			p.Observe(engine.Event{Kind: engine.EventPassedThrough, Reason: "method"})
		}
		p.Observe(engine.Event{Kind: engine.EventTransferEnded, Reason: "origin"}) // without a first answer
		go p.Run(t.Context(), (&state{}).status)
		u := watch(t, p.Handler(everybody)).next()
		if len(u.Ended) != 50 || u.Ended[0].Bytes != 59 || u.Ended[0].Links[0] != (engine.LinkBytes{Link: "lte", Bytes: 7}) || u.Ended[0].Seconds != 2 {
			t.Errorf("%d ended, the last %+v", len(u.Ended), u.Ended[0])
		}
		if u.Passed["the request is not a GET"] != 60 {
			t.Errorf("%v", u.Passed)
		}
	})
}

// TestStreamEnds: the streams of viewers end when the proxy ends, before its servers wait for them.
func TestStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := page.New(nil)
		ctx, cancel := context.WithCancel(t.Context())
		go p.Run(ctx, (&state{}).status)
		s := watch(t, p.Handler(everybody))
		s.next()
		cancel()
		for {
			if _, err := s.from.ReadString('\n'); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if w := httptest.NewRecorder(); true {
			p.Handler(everybody).ServeHTTP(w, httptest.NewRequest("GET", "/live/events", nil))
			if w.Code != http.StatusServiceUnavailable {
				t.Errorf("%d after the end", w.Code)
			}
		}
	})
}

// TestRefused: neither pages of other sites nor other users see anything; every response forbids frames and foreign code.
func TestRefused(t *testing.T) {
	p := page.New(nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go p.Run(ctx, (&state{}).status)
	for _, c := range []struct {
		what, path string
		owner      bool
		fields     string // Site Mode Dest Origin, "-" = not sent
		want       int
	}{
		{"the address bar", "/", true, "none navigate document -", 200},
		{"a browser that sends no metadata", "/", true, "- - - -", 200},
		{"its own script", "/live/page.js", true, "same-origin cors script -", 200},
		{"a link on another site", "/", true, "cross-site navigate document -", 200},
		{"R217 another site's frame", "/", true, "cross-site navigate iframe -", 403},
		{"R217 another site's fetch", "/live/events", true, "cross-site cors empty http://evil.test", 403},
		{"R217 another site's script", "/live/page.js", true, "cross-site no-cors script -", 403},
		{"R217 another port of this machine", "/live/events", true, "same-site cors empty http://127.0.0.1:8000", 403},
		{"R217 a foreign Origin alone", "/live/events", true, "- - - http://evil.test", 403},
		{"R217 another user", "/", false, "none navigate document -", 403},
		{"R217 another user's stream", "/live/events", false, "- - - -", 403},
		{"a file that is not there", "/live/../page.go", true, "- - - -", 404},
		{"a folder", "/live/", true, "- - - -", 404},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := httptest.NewRequest("GET", "http://127.0.0.1:9091/", nil)
			r.URL.Path = c.path
			for i, name := range []string{"Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Origin"} {
				if v := strings.Fields(c.fields)[i]; v != "-" {
					r.Header.Set(name, v)
				}
			}
			w := httptest.NewRecorder()
			p.Handler(func(*http.Request) bool { return c.owner }).ServeHTTP(w, r)
			if got := w.Code; got != c.want && !(c.want == 404 && got == http.StatusTemporaryRedirect) && !(c.want == 404 && got == http.StatusMovedPermanently) {
				t.Errorf("%d, want %d", got, c.want)
			}
			if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") {
				t.Errorf("Content-Security-Policy: %s", csp)
			}
			if c.want == 403 && strings.Contains(w.Body.String(), "<") {
				t.Errorf("it shows %s", w.Body)
			}
		})
	}
}

// TestFiles: every file that the page names exists and has its type, and nothing is loaded from elsewhere.
func TestFiles(t *testing.T) {
	h := page.New(nil).Handler(everybody)
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	named := regexp.MustCompile(`(?:href|src|from) ?=? ?["']([^"']+)["']`)
	for _, of := range []string{"/", "/live/page.js", "/live/list.js", "/live/page.css"} {
		body := get(of).Body.String()
		if strings.Contains(body, "https://") || strings.Contains(body, "innerHTML") {
			t.Errorf("%s names another place, or makes HTML of text", of)
		}
		for _, m := range named.FindAllStringSubmatch(body, -1) {
			w := get(m[1])
			if w.Code != 200 || w.Body.Len() == 0 {
				t.Errorf("%s names %s: %d", of, m[1], w.Code)
			}
			want := map[string]string{".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}[path.Ext(m[1])]
			if !strings.HasPrefix(w.Header().Get("Content-Type"), want) || want == "" {
				t.Errorf("%s: %s", m[1], w.Header().Get("Content-Type"))
			}
		}
	}
	if !strings.Contains(get("/live/uplot-LICENSE.txt").Body.String(), "MIT License") {
		t.Error("uPlot's licence is missing")
	}
}
