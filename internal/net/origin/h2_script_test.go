package origin_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
)

// frames is the server's side of one connection, frame by frame.
type frames struct {
	t    *testing.T
	fr   *http2.Framer
	buf  bytes.Buffer
	henc *hpack.Encoder
}

// scripted serves one HTTP/2 connection with play, after the SETTINGS of both sides, and opens it.
func scripted(t *testing.T, play func(*frames)) engine.Conn {
	t.Helper()
	h := httptest.NewTLSServer(nil) // for its certificate
	h.Close()
	roots := x509.NewCertPool()
	roots.AddCert(h.Certificate())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		nc, err := l.Accept()
		if err != nil {
			return
		}
		c := tls.Server(nc, &tls.Config{Certificates: h.TLS.Certificates, NextProtos: []string{"h2"}})
		defer c.Close()
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			t.Error(err)
			return
		}
		f := &frames{t: t, fr: http2.NewFramer(c, c)}
		f.fr.AllowIllegalWrites = true
		f.henc = hpack.NewEncoder(&f.buf)
		f.fr.WriteSettings()
		play(f)
		io.Copy(io.Discard, c)
	}()
	p := newPool(func(ctx context.Context, _ link.Link, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, l.Addr().String())
	}, roots)
	c, err := p.Open(t.Context(), links[0], scriptTarget)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); p.Close(); l.Close(); <-done })
	return c
}

var scriptTarget = engine.Target{Scheme: "https", Host: "example.com", Addr: "example.com:443", Path: "/"}

// scriptAsk asks for bytes n*100 to n*100+99 of 1000.
func scriptAsk(n int64) engine.RangeRequest {
	return engine.RangeRequest{
		Target: scriptTarget, Range: segment.Range{Start: n * 100, End: n*100 + 100}, IfRange: h2Tag,
		Want: &engine.Identity{Total: 1000, Validator: h2Tag, ETag: h2Tag},
	}
}

// asked reads frames up to the next request and returns its stream.
func (f *frames) asked() uint32 {
	for {
		frame, err := f.fr.ReadFrame()
		if err != nil {
			return 0
		}
		switch frame := frame.(type) {
		case *http2.HeadersFrame:
			return frame.StreamID
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				f.fr.WriteSettingsAck()
			}
		}
	}
}

func (f *frames) fields(pairs ...string) []byte {
	f.buf.Reset()
	for i := 0; i < len(pairs); i += 2 {
		f.henc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return f.buf.Bytes()
}

// head answers scriptAsk(n) up to the body.
func (f *frames) head(id uint32, n int64, more ...string) {
	block := f.fields(append([]string{
		":status", "206", "etag", h2Tag,
		"content-range", fmt.Sprintf("bytes %d-%d/1000", n*100, n*100+99),
	}, more...)...)
	f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true})
}

func (f *frames) data(id uint32, n int, end bool) { f.fr.WriteData(id, end, make([]byte, n)) }

func TestR127_GoAwayBelow(t *testing.T) {
	c := scripted(t, func(f *frames) {
		one := f.asked()
		f.head(one, 0)
		f.data(one, 30, false)
		two, three := f.asked(), f.asked()
		f.fr.WriteGoAway(two, http2.ErrCodeNo, nil)
		f.data(one, 70, true)
		f.head(two, 1)
		f.data(two, 100, true)
		if three <= two {
			f.t.Errorf("streams %d and %d", two, three)
		}
	})
	for n := range int64(3) {
		if err := c.Send(scriptAsk(n)); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 2 {
		response, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(response.Body); len(b) != 100 || err != nil {
			t.Errorf("answer %d: %d bytes, %v", n, len(b), err)
		}
	}
	_, err := c.Next()
	if outcome(t, err) != fault.Unanswered {
		t.Errorf("beyond the last stream: %v", err)
	}
}

func TestR127_GoAwayIsToldInTime(t *testing.T) {
	c := scripted(t, func(f *frames) {
		one := f.asked()
		f.fr.WriteGoAway(one, http2.ErrCodeNo, nil)
		f.head(one, 0)
		f.data(one, 100, true)
	})
	if err := c.Send(scriptAsk(0)); err != nil {
		t.Fatal(err)
	}
	response, err := c.Next()
	if err != nil || !response.Close {
		t.Fatalf("%+v, %v", response, err)
	}
	if b, err := io.ReadAll(response.Body); len(b) != 100 || err != nil {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if err := c.Send(scriptAsk(1)); outcome(t, err) != fault.Unanswered {
		t.Error(err)
	}
}

func TestH2BadStreams(t *testing.T) {
	reset := func(code http2.ErrCode) func(*frames) {
		return func(f *frames) { f.fr.WriteRSTStream(f.asked(), code) }
	}
	raw := func(pairs ...string) func(*frames) {
		return func(f *frames) {
			f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.asked(), BlockFragment: f.fields(pairs...), EndHeaders: true})
		}
	}
	tests := []struct {
		name string
		play func(*frames)
		want fault.Outcome
	}{
		{"R128 REFUSED_STREAM", reset(http2.ErrCodeRefusedStream), fault.Unanswered},
		{"R128 INTERNAL_ERROR", reset(http2.ErrCodeInternal), fault.Unanswered},
		{"R128 CANCEL", reset(http2.ErrCodeCancel), fault.Unanswered},
		{"R128 PROTOCOL_ERROR", reset(http2.ErrCodeProtocol), fault.Unwanted},
		{"R128 HTTP_1_1_REQUIRED", reset(http2.ErrCodeHTTP11Required), fault.Unwanted},
		{"R126 ENHANCE_YOUR_CALM", reset(http2.ErrCodeEnhanceYourCalm), fault.Busy},
		{"R127 GOAWAY before the answer", func(f *frames) { f.asked(); f.fr.WriteGoAway(0, http2.ErrCodeNo, nil) }, fault.Unanswered},
		{"R131 no :status", raw("etag", h2Tag), fault.Unwanted},
		{"R131 :status out of range", raw(":status", "99"), fault.Unwanted},
		{"R131 101", raw(":status", "101"), fault.Unwanted},
		{"R131 upper case", raw(":status", "206", "ETag", h2Tag), fault.Unwanted},
		{"R131 LF in a value", raw(":status", "206", "etag", "a\nb"), fault.Unwanted},
		{"R53 too many interim answers", func(f *frames) {
			id := f.asked()
			for range origin.MaxInterim + 1 {
				f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.fields(":status", "103"), EndHeaders: true})
			}
		}, fault.Unwanted},
		{"R133 flood of CONTINUATION", func(f *frames) {
			id := f.asked()
			f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.fields(":status", "206")})
			for i := range 10_000 { // 160 MB, if they were accepted
				name := fmt.Sprintf("x-%d", i)
				if f.fr.WriteContinuation(id, false, f.fields(name, string(make([]byte, 8<<10)))) != nil {
					return
				}
			}
			f.t.Error("the flood was taken to its end")
		}, fault.Unwanted},
		{"R133 interim answers of many small fields", func(f *frames) {
			id := f.asked()
			hints := []string{":status", "103"}
			for range 4000 { // a byte each on the wire
				hints = append(hints, "a", "b")
			}
			for range 3 {
				f.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: f.fields(hints...), EndHeaders: true})
			}
			f.head(id, 0)
		}, fault.Unwanted},
		{"R133 pushed stream", func(f *frames) {
			f.fr.WritePushPromise(http2.PushPromiseParam{StreamID: f.asked(), PromiseID: 2, BlockFragment: f.fields(":method", "GET"), EndHeaders: true})
		}, fault.Unwanted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := scripted(t, tt.play)
			if err := c.Send(scriptAsk(0)); err != nil {
				t.Fatal(err)
			}
			_, err := c.Next()
			if got := outcome(t, err); got != tt.want {
				t.Errorf("%v, want %v: %v", got, tt.want, err)
			}
		})
	}
}

func TestH2BadBodies(t *testing.T) {
	tests := []struct {
		name  string
		play  func(f *frames, id uint32)
		bytes int
		want  fault.Outcome // Complete: io.EOF
	}{
		{"R128 reset", func(f *frames, id uint32) {
			f.head(id, 0)
			f.data(id, 40, false)
			f.fr.WriteRSTStream(id, http2.ErrCodeInternal)
		}, 40, fault.Reset},
		{"R98 early end", func(f *frames, id uint32) { f.head(id, 0); f.data(id, 40, true) }, 40, fault.Short},
		{"R131 less than Content-Length", func(f *frames, id uint32) {
			f.head(id, 0, "content-length", "100")
			f.data(id, 40, true)
		}, 40, fault.Short},
		{"R101 surplus", func(f *frames, id uint32) { f.head(id, 0); f.data(id, 101, true) }, 99, fault.BadRange},
		{"R131 R234 surplus over Content-Length", func(f *frames, id uint32) {
			f.head(id, 0, "content-length", "100")
			f.data(id, 140, true)
		}, 99, fault.BadRange},
		{"R234 surplus over Content-Length in another frame", func(f *frames, id uint32) {
			f.head(id, 0, "content-length", "100")
			f.data(id, 100, false)
			f.data(id, 1, true)
		}, 99, fault.BadRange},
		{"R234 surplus over a range in another frame", func(f *frames, id uint32) {
			f.head(id, 0)
			f.data(id, 100, false)
			f.data(id, 1, true)
		}, 99, fault.BadRange},
		{"R234 the end in another frame", func(f *frames, id uint32) {
			f.head(id, 0, "content-length", "100")
			f.data(id, 100, false)
			f.data(id, 0, true)
		}, 100, fault.Complete},
		{"reset after the last byte", func(f *frames, id uint32) {
			f.head(id, 0)
			f.data(id, 100, false)
			f.fr.WriteRSTStream(id, http2.ErrCodeInternal)
		}, 100, fault.Complete},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := scripted(t, func(f *frames) { tt.play(f, f.asked()) })
			if err := c.Send(scriptAsk(0)); err != nil {
				t.Fatal(err)
			}
			response, err := c.Next()
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(response.Body)
			got := fault.Complete
			if err != nil {
				got = outcome(t, err)
			}
			if len(b) != tt.bytes || got != tt.want {
				t.Errorf("%d bytes, %v: %v; want %d, %v", len(b), got, err, tt.bytes, tt.want)
			}
		})
	}
}

func TestH2NoContent(t *testing.T) {
	for _, status := range []string{"204", "304"} {
		c := scripted(t, func(f *frames) {
			for range 2 {
				f.fr.WriteHeaders(http2.HeadersFrameParam{
					StreamID: f.asked(), EndStream: true, EndHeaders: true,
					BlockFragment: f.fields(":status", status, "content-length", "77"),
				})
			}
		})
		for range 2 {
			if err := c.Send(engine.RangeRequest{Target: scriptTarget}); err != nil {
				t.Fatal(err)
			}
			response, err := c.Next()
			if err != nil || response.ContentLength != 0 {
				t.Fatalf("%+v, %v", response, err)
			}
			if _, err := response.Body.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Error(err)
			}
		}
	}
}

func TestR006_R027_R053_H2RequestFields(t *testing.T) {
	got := make(chan *http.Request, 1)
	r := newH2(t, 1000, func(w http.ResponseWriter, q *http.Request, serve http.HandlerFunc) {
		w.Header().Set("Link", "x")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		got <- q
		serve(w, q)
	})
	for _, path := range []string{"/a/../b;c=%7e|[?q", "//a/../b", "/\xc3\xa9%2F?"} {
		c := r.open()
		a := r.ask(5, 10)
		a.Target.Path = path
		a.Header = http.Header{"X-B": {"2", "1"}, "Accept-Encoding": {"gzip"}, "Te": {"trailers"}}
		hints := 0
		a.Interim = func(status int, h http.Header) {
			if status == 103 && h.Get("Link") == "x" {
				hints++
			}
		}
		r.send(c, a)
		r.next(c)
		q := <-got
		if q.RequestURI != path || q.Host != a.Target.Host {
			t.Errorf("R6: %q at %q, want %q", q.RequestURI, q.Host, path)
		}
		want := http.Header{"X-B": {"2", "1"}, "Accept-Encoding": {"identity"}, "Range": {"bytes=5-9"}, "If-Range": {h2Tag}}
		if fmt.Sprint(q.Header) != fmt.Sprint(want) {
			t.Errorf("R27: %v, want %v", q.Header, want)
		}
		if hints != 1 {
			t.Errorf("R53: %d early hints", hints)
		}
		c.Release()
	}
}
