package direct_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/direct"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
	ot "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

var links = []link.Link{{Name: "w0", Index: 1}, {Name: "w1", Index: 2}}

// dialNodes connects links[i] to node i, whatever the address.
func dialNodes(s *ot.Server) link.DialFunc {
	return func(ctx context.Context, l link.Link, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.Addr(l.Index-1))
	}
}

// outcome returns the outcome of an *engine.AttemptError.
func outcome(t *testing.T, err error) fault.Outcome {
	t.Helper()
	var a *engine.AttemptError
	if !errors.As(err, &a) {
		t.Fatalf("%v is no AttemptError", err)
	}
	return a.Outcome
}

var errDown = errors.New("the link is down")

// passThrough returns a pass-through client whose links named in down cannot connect.
func passThrough(t *testing.T, dial link.DialFunc, down ...string) *direct.PassThrough {
	over := link.DialFunc(func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
		for _, name := range down {
			if l.Name == name {
				return nil, errDown
			}
		}
		return dial(ctx, l, network, addr)
	}).Over(links...)
	p := direct.NewPassThrough(func() []link.Link { return over }, nil, time.Minute)
	t.Cleanup(p.Close)
	return p
}

func dialDirect(ctx context.Context, _ link.Link, network, addr string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

func TestR027_R028_PassThroughAddsNothing(t *testing.T) {
	s := ot.New(t, ot.Object{Size: 5000})
	p := passThrough(t, dialNodes(s))
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, l, err := p.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || int64(len(b)) != s.Object().Size || s.Object().Mismatch(b, 0) >= 0 || l.Name != "w0" {
		t.Errorf("%d bytes over %s, %v", len(b), l.Name, err)
	}
	if got, want := s.Requests()[0].Raw, "GET /object HTTP/1.1\r\nHost: "+s.Addr(0)+"\r\n\r\n"; got != want {
		t.Errorf("R27 R28: origin sees %q, want %q", got, want)
	}
}

func TestR051_R063_PassThroughPassesRedirectsAndCodings(t *testing.T) {
	s := ot.New(t, ot.Object{Size: 5000}, ot.AfterRequests(1, ot.Redirect("/elsewhere")), ot.UntilRequest(1, ot.Gzip()))
	p := passThrough(t, dialNodes(s))
	for _, want := range []int{200, 302} {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL(), nil)
		r.Header.Set("Accept-Encoding", "gzip")
		resp, _, err := p.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want || (want == 200) != bytes.HasPrefix(b, []byte("\x1f\x8b")) {
			t.Errorf("R51 R63: status %d, %d bytes, %v", resp.StatusCode, len(b), err)
		}
	}
	s = ot.New(t, ot.Object{Size: 5000}, ot.Set("Content-Encoding", "gzip"))
	p = passThrough(t, dialNodes(s))
	r, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL(), nil) // the coding is sent without being requested
	resp, _, err := p.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || len(b) != 5000 || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("R51: %d bytes, %v, %v", len(b), resp.Header, err)
	}
}

// Only after a dial failure may another link try: nothing was sent.
func TestPassThroughFallsThrough(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Write(b)
	}))
	defer echo.Close()
	p := passThrough(t, dialDirect, "w0")
	body := &closing{Reader: strings.NewReader(strings.Repeat("x", 1<<20))}
	r, _ := http.NewRequestWithContext(t.Context(), "POST", echo.URL, body)
	resp, l, err := p.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || len(b) != 1<<20 || l.Name != "w1" {
		t.Errorf("%d bytes over %s, %v", len(b), l.Name, err)
	}

	p = passThrough(t, dialDirect, "w0", "w1")
	body = &closing{Reader: strings.NewReader("x")}
	r, _ = http.NewRequestWithContext(t.Context(), "POST", echo.URL, body)
	_, _, err = p.Do(r)
	var a *engine.AttemptError
	if !errors.As(err, &a) || a.Outcome != fault.Unreachable || a.Link != "w0" || !errors.Is(err, errDown) {
		t.Errorf("all links down: %v", err)
	}
	if body.closed != 1 {
		t.Errorf("the request body was closed %d times", body.closed)
	}

	p = direct.NewPassThrough(func() []link.Link { return nil }, nil, time.Minute)
	r, _ = http.NewRequestWithContext(t.Context(), "GET", echo.URL, nil)
	if _, _, err := p.Do(r); !errors.Is(err, engine.ErrNoLink) {
		t.Errorf("no link: %v", err)
	}
}

type closing struct {
	io.Reader
	closed int
}

func (c *closing) Close() error { c.closed++; return nil }

func TestR061_NoSecondTryAfterSending(t *testing.T) {
	s := ot.New(t, ot.Object{Size: 5000}, ot.Raw(""), ot.ClosesEarly())
	p := passThrough(t, dialNodes(s))
	r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL(), strings.NewReader("x"))
	if _, l, err := p.Do(r); err == nil || l.Name != "w0" {
		t.Errorf("got %v over %s", err, l.Name)
	}
	if got := len(s.Requests()); got != 1 {
		t.Errorf("R61: %d arrivals", got)
	}

	s = ot.New(t, ot.Object{Size: 5000}, ot.AfterRequests(1, ot.Raw(""), ot.ClosesEarly()))
	p = passThrough(t, dialNodes(s))
	for i := range 2 { // the second one uses the connection of the first
		r, _ := http.NewRequestWithContext(t.Context(), "POST", s.URL(), strings.NewReader("x"))
		resp, _, err := p.Do(r)
		if (err == nil) != (i == 0) {
			t.Fatalf("request %d: %v", i+1, err)
		}
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}
	if got := len(s.Requests()); got != 2 || s.Accepted() != 1 {
		t.Errorf("R61: %d arrivals on %d connections", got, s.Accepted())
	}
}

// Bodies stream in both directions at the same time.
func TestPassThroughStreams(t *testing.T) {
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		rc.EnableFullDuplex()
		in := bufio.NewReader(r.Body)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			io.WriteString(w, strings.ToUpper(line))
			rc.Flush()
		}
	}))
	defer h.Close()
	p := passThrough(t, dialDirect)
	pr, pw := io.Pipe()
	r, _ := http.NewRequestWithContext(t.Context(), "POST", h.URL, pr)
	go io.WriteString(pw, "first\n")
	resp, _, err := p.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out := bufio.NewReader(resp.Body)
	for _, word := range []string{"FIRST\n", "SECOND\n"} {
		if word == "SECOND\n" {
			go func() { io.WriteString(pw, "second\n"); pw.Close() }()
		}
		if line, err := out.ReadString('\n'); line != word || err != nil {
			t.Fatalf("got %q, %v", line, err)
		}
	}
}

func TestR056_ExpectContinue(t *testing.T) {
	body := &counting{}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		defer nc.Close()
		br := bufio.NewReader(nc)
		if _, err := textproto.NewReader(br).ReadLine(); err != nil {
			return
		}
		io.WriteString(nc, "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")
		io.Copy(io.Discard, br)
	}()
	p := passThrough(t, dialDirect)
	r, _ := http.NewRequestWithContext(t.Context(), "PUT", "http://"+ln.Addr().String()+"/", body)
	r.ContentLength = 5
	r.Header.Set("Expect", "100-continue")
	continued := false
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got100Continue: func() { continued = true }}))
	resp, _, err := p.Do(r)
	if err != nil || resp.StatusCode != 417 {
		t.Fatalf("%+v, %v", resp, err)
	}
	resp.Body.Close()
	p.Close()
	<-done
	if body.n != 0 || continued {
		t.Errorf("R56: %d reads of the body, continued %v", body.n, continued)
	}
}

type counting struct{ n int }

func (c *counting) Read(p []byte) (int, error) { c.n++; return 0, io.EOF }

func TestDialTunnel(t *testing.T) {
	s := ot.New(t, ot.Object{Size: 50})
	p := passThrough(t, dialNodes(s), "w0")
	d, err := p.DialTunnel(t.Context(), "example.com:443")
	nc, l := d.Conn, d.Link
	if err != nil || l.Name != "w1" {
		t.Fatalf("over %s, %v", l.Name, err)
	}
	nc.Close()
	p = passThrough(t, dialNodes(s), "w0", "w1")
	if _, err := p.DialTunnel(t.Context(), "example.com:443"); err == nil || outcome(t, err) != fault.Unreachable {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.DialTunnel(ctx, "example.com:443"); err == nil {
		t.Error("no error after the end of the context")
	}
}

func TestPassThroughOwnsItsConnections(t *testing.T) {
	s := ot.New(t, ot.Object{Size: 50})
	p := passThrough(t, dialNodes(s))
	get := func() {
		t.Helper()
		r, _ := http.NewRequestWithContext(t.Context(), "GET", s.URL(), nil)
		resp, _, err := p.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	get()
	get()
	if got := s.Accepted(); got != 1 {
		t.Errorf("keep-alive: %d connections", got)
	}
	p.DropLink("w0")
	get()
	if got := s.Accepted(); got != 2 {
		t.Errorf("after DropLink: %d connections", got)
	}
}

// TestPlainInterim: a caller that follows interim answers need not count them.
func TestPassThroughInterim(t *testing.T) {
	for _, n := range []int{origin.MaxInterim, origin.MaxInterim + 1} {
		t.Run(fmt.Sprintf("R36 %d interim answers", n), func(t *testing.T) {
			hint := ot.Interim(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n", n))
			s := ot.New(t, ot.Object{Size: 5000}, hint)
			p := passThrough(t, dialNodes(s))
			got := 0
			ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
				Got1xxResponse: func(int, textproto.MIMEHeader) error { got++; return nil },
			})
			r, err := http.NewRequestWithContext(ctx, "GET", s.URL(), nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, _, err := p.Do(r)
			if err == nil {
				resp.Body.Close()
			}
			if (err == nil) != (n == origin.MaxInterim) || got < origin.MaxInterim {
				t.Errorf("%d interim answers, %v", got, err)
			}
		})
	}
}

// TestPlainHeads: net/http gives a connection to the next request before an answer without content is judged. Each answer
// keeps its own fields anyway.
func TestPassThroughHeads(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Pragma", "no-cache")
		if n := r.URL.Query().Get("n"); n != "0" {
			w.Header().Set("Cache-Control", "max-age="+n)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer s.Close()
	p := passThrough(t, dialDirect)
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for i := range 1500 {
				n := strconv.Itoa(i % 3)
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/?n="+n, nil)
				if err != nil {
					t.Error(err)
					return
				}
				resp, _, err := p.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				resp.Body.Close()
				want := "max-age=" + n
				if n == "0" {
					want = "" // net/http makes one up
				}
				if got := resp.Header.Get("Cache-Control"); got != want {
					t.Errorf("Cache-Control %q, want %q", got, want)
					return
				}
			}
		})
	}
	all.Wait()
}
