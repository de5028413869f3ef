package origin_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
)

const h2Tag = `"v1"`

// h2rig is an HTTP/2 origin of one object and a pool whose links lead there.
type h2rig struct {
	t      testing.TB
	server *httptest.Server
	pool   *pool
	object []byte
	dials  atomic.Int64
}

// newH2 serves object with wrap around the handler that answers ranges of it.
func newH2(t testing.TB, size int, wrap func(w http.ResponseWriter, r *http.Request, serve http.HandlerFunc)) *h2rig {
	t.Helper()
	r := unstartedH2(t, size, wrap)
	r.start()
	return r
}

func unstartedH2(t testing.TB, size int, wrap func(http.ResponseWriter, *http.Request, http.HandlerFunc)) *h2rig {
	r := &h2rig{t: t, object: make([]byte, size)}
	for i := range r.object {
		r.object[i] = byte(i ^ i>>8 ^ i>>16)
	}
	serve := func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("ETag", h2Tag)
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, q, "", time.Time{}, bytes.NewReader(r.object))
	}
	r.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.ProtoMajor != 2 {
			t.Errorf("asked over %s", q.Proto)
		}
		if wrap != nil {
			wrap(w, q, serve)
			return
		}
		serve(w, q)
	}))
	return r
}

func (r *h2rig) start() {
	r.server.EnableHTTP2 = true
	r.server.Config.ErrorLog = log.New(io.Discard, "", 0) // for handshakes that fail on purpose
	r.server.StartTLS()
	roots := x509.NewCertPool()
	roots.AddCert(r.server.Certificate())
	r.pool = newPool(func(ctx context.Context, _ link.Link, network, _ string) (net.Conn, error) {
		r.dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, r.server.Listener.Addr().String())
	}, roots)
	r.t.Cleanup(func() { r.pool.Close(); r.server.CloseClientConnections(); r.server.Close() })
}

func (r *h2rig) target() engine.Target {
	return engine.Target{Scheme: "https", Host: "example.com:8443", Addr: "example.com:8443", Path: "/object"}
}

func (r *h2rig) open() engine.Conn {
	r.t.Helper()
	c, err := r.pool.Open(r.t.Context(), links[0], r.target())
	if err != nil {
		r.t.Fatal(err)
	}
	if !c.Info().Multiplexed {
		r.t.Fatal("no HTTP/2 connection")
	}
	r.t.Cleanup(c.Close)
	return c
}

// ask asks for a range of the version that the object has.
func (r *h2rig) ask(start, end int64) engine.RangeRequest {
	return engine.RangeRequest{
		Target: r.target(), Range: segment.Range{Start: start, End: end}, IfRange: h2Tag,
		Want: &engine.Identity{Total: int64(len(r.object)), Validator: h2Tag, ETag: h2Tag, Type: "application/octet-stream"},
	}
}

func (r *h2rig) send(c engine.Conn, asks ...engine.RangeRequest) {
	r.t.Helper()
	for _, a := range asks {
		if err := c.Send(a); err != nil {
			r.t.Fatal(err)
		}
	}
}

// next reads one good answer and checks its bytes.
func (r *h2rig) next(c engine.Conn) *engine.RangeResponse {
	r.t.Helper()
	response, err := c.Next()
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := io.ReadAll(response.Body)
	if err != nil || !bytes.Equal(b, r.object[response.Range.Start:response.Range.End]) {
		r.t.Fatalf("%v: %d bytes, right ones: no, or %v", response.Range, len(b), err)
	}
	return response
}

func TestH2TenRangesInFlight(t *testing.T) {
	const n, size = 10, 2 << 20 // together more than may wait unread
	r := newH2(t, n*size, nil)
	c := r.open()
	for i := range int64(n) {
		r.send(c, r.ask(i*size, (i+1)*size))
	}
	for i := range int64(n) {
		if got := r.next(c).Range.Start; got != i*size {
			t.Fatalf("answer %d begins at %d", i, got)
		}
	}
	c.Release()
	again := r.open()
	if !again.Info().Reused || r.dials.Load() != 1 {
		t.Errorf("not used again: %+v, %d dials", again.Info(), r.dials.Load())
	}
	r.send(again, r.ask(1, 2))
	r.next(again)
}

func TestH2Judgement(t *testing.T) {
	tests := []struct {
		name string
		wrap func(w http.ResponseWriter, q *http.Request, serve http.HandlerFunc)
		want fault.Outcome
	}{
		{"R96 another version", func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) {
			w.Header().Set("ETag", `"v2"`)
			w.Header().Set("Content-Range", "bytes 0-999/100000")
			w.WriteHeader(http.StatusPartialContent)
			w.Write(make([]byte, 1000))
		}, fault.Changed},
		{
			"403", func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) { w.WriteHeader(http.StatusForbidden) },
			fault.Unwanted,
		},
		{"R105 503", func(w http.ResponseWriter, _ *http.Request, _ http.HandlerFunc) { w.WriteHeader(503) }, fault.Busy},
		{"R133 head over the limit", func(w http.ResponseWriter, q *http.Request, serve http.HandlerFunc) {
			for i := range 40 {
				w.Header().Set("X-"+strconv.Itoa(i), string(bytes.Repeat([]byte("x"), 10_000)))
			}
			serve(w, q)
		}, fault.Unwanted},
		{
			"R128 reset before the head", func(http.ResponseWriter, *http.Request, http.HandlerFunc) { panic(http.ErrAbortHandler) },
			fault.Unanswered,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newH2(t, 100_000, tt.wrap)
			c := r.open()
			r.send(c, r.ask(0, 1000))
			_, err := c.Next()
			if got := outcome(t, err); got != tt.want {
				t.Errorf("%v (%v), want %v", got, err, tt.want)
			}
		})
	}
}

func TestR128_H2ResetInMidBody(t *testing.T) {
	r := newH2(t, 100_000, func(w http.ResponseWriter, q *http.Request, serve http.HandlerFunc) {
		if q.Header.Get("Range") != "bytes=1000-1999" {
			serve(w, q)
			return
		}
		w.Header().Set("ETag", h2Tag)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Range", "bytes 1000-1999/100000")
		w.WriteHeader(http.StatusPartialContent)
		w.Write(make([]byte, 400))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	c := r.open()
	r.send(c, r.ask(0, 1000), r.ask(1000, 2000))
	r.next(c)
	response, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(response.Body)
	if len(b) != 400 || outcome(t, err) != fault.Reset {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestH2CloseUnblocks(t *testing.T) {
	hang := make(chan struct{})
	in := make(chan struct{}, 8)
	r := newH2(t, 100_000, func(_ http.ResponseWriter, q *http.Request, _ http.HandlerFunc) {
		in <- struct{}{}
		select {
		case <-hang:
		case <-q.Context().Done():
		}
	})
	defer close(hang)
	c := r.open()
	r.send(c, r.ask(0, 1000), r.ask(1000, 2000))
	failed := make(chan error)
	go func() { _, err := c.Next(); failed <- err }()
	<-in
	c.Close()
	if err := <-failed; outcome(t, err) != fault.Canceled {
		t.Error(err)
	}
	if err := c.Send(r.ask(0, 1)); outcome(t, err) != fault.Canceled {
		t.Error(err)
	}
}

func TestR125_H2CloseOfABodyCancelsItsStream(t *testing.T) {
	r := newH2(t, 16<<20, nil)
	c := r.open()
	r.send(c, r.ask(0, 10<<20), r.ask(5, 100))
	response, err := c.Next()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(response.Body, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	r.next(c)
	c.Release()
	if !r.open().Info().Reused {
		t.Error("the connection is gone")
	}
}

// An origin that allows one concurrent stream gets the requests one by one, in order.
func TestR130_OneStream(t *testing.T) {
	r := unstartedH2(t, 1<<20, nil)
	r.server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1}
	r.start()
	c := r.open()
	for i := range int64(8) {
		r.send(c, r.ask(i*1000, i*1000+1000))
	}
	for range 8 {
		r.next(c)
	}
}

// A late answer holds up the ones behind it, and none of them is lost.
func TestH2SlowStream(t *testing.T) {
	behind := make(chan struct{})
	r := newH2(t, 8<<20, func(w http.ResponseWriter, q *http.Request, serve http.HandlerFunc) {
		switch q.Header.Get("Range") {
		case "bytes=1-9":
			w.Header().Set("Content-Range", "bytes 1-9/8388608")
			w.Header().Set("ETag", h2Tag)
			w.Header().Set("Content-Type", "application/octet-stream")
			w.WriteHeader(http.StatusPartialContent)
			w.(http.Flusher).Flush()
			<-behind
			w.Write([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}) // as in the object
		case "bytes=10-3000000":
			serve(w, q)
			close(behind)
		default:
			serve(w, q)
		}
	})
	c := r.open()
	r.send(c, r.ask(1, 10), r.ask(10, 3_000_001), r.ask(5, 9))
	for range 3 {
		r.next(c)
	}
}

func TestR127_H2Shutdown(t *testing.T) {
	release, in := make(chan struct{}), make(chan struct{}, 2)
	r := newH2(t, 1<<20, func(w http.ResponseWriter, q *http.Request, serve http.HandlerFunc) {
		if q.Header.Get("Range") != "bytes=0-99" {
			in <- struct{}{}
			<-release
		}
		serve(w, q)
	})
	told := make(chan struct{})
	r.server.Config.RegisterOnShutdown(func() { close(told) })
	c := r.open()
	r.send(c, r.ask(0, 100))
	r.next(c)
	r.send(c, r.ask(100, 300_000), r.ask(300_000, 600_000))
	<-in
	<-in
	ended := make(chan error, 1)
	go func() { ended <- r.server.Config.Shutdown(t.Context()) }()
	<-told
	close(release)
	r.next(c)
	r.next(c)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	err := c.Send(r.ask(0, 100))
	if err == nil { // the end of the connection has not been noticed yet
		_, err = c.Next()
	}
	if outcome(t, err) != fault.Unanswered {
		t.Error(err)
	}
}

func TestR136_H2IdleConnectionDies(t *testing.T) {
	r := newH2(t, 1000, nil)
	c := r.open()
	r.send(c, r.ask(0, 100))
	r.next(c)
	c.Release()
	r.server.CloseClientConnections()
	c = r.open()
	if c.Info().Reused { // its end is not noticed yet
		err := c.Send(r.ask(0, 100))
		if err == nil {
			_, err = c.Next()
		}
		if outcome(t, err) != fault.Stale {
			t.Error(err)
		}
		c.Release()
		c = r.open()
	}
	r.send(c, r.ask(0, 100))
	r.next(c)
	c.Release()
	r.pool.DropLink(links[0].Name)
	if r.open().Info().Reused {
		t.Error("survived its link")
	}
}

func TestH2Certificate(t *testing.T) {
	r := newH2(t, 1000, nil)
	target := r.target()
	target.Host = "other.test"
	_, err := r.pool.Open(t.Context(), links[0], target)
	var name x509.HostnameError
	if !errors.As(err, &name) || outcome(t, err) != fault.Unreachable {
		t.Error(err)
	}
}

// The unread bytes of answers are bounded: of ten ranges of 4 MiB, two are requested while nothing is read.
func TestR123_UnreadAnswersAreBounded(t *testing.T) {
	const size = 4 << 20
	var asked atomic.Int64
	r := newH2(t, 10*size, func(w http.ResponseWriter, q *http.Request, serve http.HandlerFunc) {
		asked.Add(1)
		serve(w, q)
	})
	c := r.open()
	for i := range int64(10) {
		r.send(c, r.ask(i*size, (i+1)*size))
	}
	for i := range int64(10) {
		response, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if n := asked.Load(); n > i+2 {
			t.Errorf("%d asked when answer %d begins", n, i)
		}
		if b, err := io.ReadAll(response.Body); err != nil || !bytes.Equal(b, r.object[i*size:(i+1)*size]) {
			t.Fatalf("%d bytes, %v", len(b), err)
		}
	}
}

// R122: one connection carries more than 100 MB/s.
func BenchmarkH2(b *testing.B) {
	const size, depth = 2 << 20, 4
	r := newH2(b, 64<<20, nil)
	c, err := r.pool.Open(b.Context(), links[0], r.target())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 32<<10)
	b.SetBytes(size)
	sent := 0
	for i := range b.N {
		for ; sent < min(i+depth, b.N); sent++ {
			at := int64(sent%32) * size
			if err := c.Send(r.ask(at, at+size)); err != nil {
				b.Fatal(err)
			}
		}
		response, err := c.Next()
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, response.Body, buf)
		if n != size || err != nil {
			b.Fatal(n, err)
		}
	}
}

// BenchmarkH2Whole reads answers of unrequested length: little of them is held, and TCP holds back the rest.
func BenchmarkH2Whole(b *testing.B) {
	const size = 64 << 20
	r := newH2(b, size, nil)
	c, err := r.pool.Open(b.Context(), links[0], r.target())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 32<<10)
	b.SetBytes(size)
	for range b.N {
		if err := c.Send(engine.RangeRequest{Target: r.target()}); err != nil {
			b.Fatal(err)
		}
		response, err := c.Next()
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, response.Body, buf)
		if n != size || err != nil {
			b.Fatal(n, err)
		}
	}
}
