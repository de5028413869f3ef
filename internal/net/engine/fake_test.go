package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/net/link"
)

// fakeOrigin is an Opener whose connections answer at once from memory. It stands in for package origin where a test
// needs to do something at an exact moment.
type fakeOrigin struct {
	size   int64
	onHead func() // called before each head is handed out
	onOpen func(link string) error
	onNext func(RangeRequest, *RangeResponse) (*RangeResponse, error) // may change an answer
}

func (o *fakeOrigin) Open(ctx context.Context, l link.Link, _ Target) (Conn, error) {
	if o.onOpen != nil {
		if err := o.onOpen(l.Name); err != nil {
			return nil, err
		}
	}
	return &fakeConn{o: o, asks: make(chan RangeRequest, 16), gone: make(chan struct{})}, ctx.Err()
}

func (o *fakeOrigin) Warm(_ link.Link, _ string, c net.Conn, _ link.Info) { c.Close() }

type fakeConn struct {
	o    *fakeOrigin
	asks chan RangeRequest
	once sync.Once
	gone chan struct{}
}

func (c *fakeConn) Send(a RangeRequest) error { c.asks <- a; return nil }
func (c *fakeConn) Cut(uint32, int64) bool    { return false }
func (c *fakeConn) Info() ConnInfo            { return ConnInfo{RTT: 1e6} }
func (c *fakeConn) Release()                  { c.Close() }

func (*fakeConn) Received() (link.Counters, bool)     { return link.Counters{}, false }
func (*fakeConn) Sample() (transfer.PathSample, bool) { return transfer.PathSample{}, false }
func (*fakeConn) Behind() bool                        { return false }

func (c *fakeConn) Close() { c.once.Do(func() { close(c.gone) }) }

func (c *fakeConn) Next() (*RangeResponse, error) {
	var a RangeRequest
	select {
	case a = <-c.asks:
	case <-c.gone:
		return nil, &AttemptError{Op: "head", Outcome: fault.Canceled, Err: net.ErrClosed}
	}
	if c.o.onHead != nil {
		c.o.onHead()
	}
	r := segment.Range{End: c.o.size}
	h := http.Header{"Etag": {`"v"`}, "Accept-Ranges": {"bytes"}, "Content-Type": {"a/b"}}
	status := http.StatusOK
	if !a.Range.Empty() {
		status = http.StatusPartialContent
		r = a.Range.Clip(r)
		h.Set("Content-Range", byterange.Content{Range: r, Total: c.o.size}.String())
	}
	h.Set("Content-Length", strconv.FormatInt(r.Len(), 10))
	b := make([]byte, r.Len())
	for i := range b {
		b[i] = at(r.Start + int64(i))
	}
	response := &RangeResponse{
		Response: &http.Response{StatusCode: status, Header: h, ContentLength: r.Len(), Body: io.NopCloser(bytes.NewReader(b))},
		Range:    r, ID: Identity{Total: c.o.size, Validator: `"v"`, ETag: `"v"`, Type: "a/b"},
	}
	if c.o.onNext != nil {
		return c.o.onNext(a, response)
	}
	return response, nil
}

func newFakeEngine(t *testing.T, o *fakeOrigin) *Engine {
	t.Helper()
	e := New(Config{
		Opener: o, Log: slog.New(slog.DiscardHandler), Scheduler: scheduler("alg3"), Budget: 8 * mib, Window: 4 * mib, Threshold: 64 << 10,
		WaitForLink: time.Minute, // a busy machine makes both links silent for a moment
	})
	e.SetLinks([]link.Link{{Name: "a"}, {Name: "b"}})
	return e
}

// fakeRequest is a GET that starts with a range, or as the client made it.
func fakeRequest(ranged bool) *Request {
	h := http.Header{}
	if !ranged {
		h.Set("Accept-Encoding", "gzip")
	}
	return &Request{Target: Target{Scheme: "http", Host: "h", Addr: "h:80", Path: "/"}, Header: h}
}

func nothingHeld(t *testing.T, e *Engine) {
	t.Helper()
	if s := e.Status(); s.Budget.Held != 0 || s.Budget.Granted != 0 || len(s.Transfers) != 0 {
		t.Fatalf("held %d, granted %d, %d transfers", s.Budget.Held, s.Budget.Granted, len(s.Transfers))
	}
}

func TestGet(t *testing.T) {
	for _, ranged := range []bool{true, false} {
		for _, size := range []int64{1, 64<<10 - 1, 64 << 10, 64<<10 + 1, 3*mib + 5} {
			e := newFakeEngine(t, &fakeOrigin{size: size})
			resp, err := e.Get(t.Context(), fakeRequest(ranged))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(struct{ io.Reader }{resp.Body}) // by Read, not by WriteTo
			if err != nil || int64(len(got)) != size || resp.ContentLength != size || resp.Status != http.StatusOK {
				t.Fatalf("size %d: %d bytes, length %d, status %d, %v", size, len(got), resp.ContentLength, resp.Status, err)
			}
			for i, c := range got {
				if c != at(int64(i)) {
					t.Fatalf("size %d: byte %d is wrong", size, i)
				}
			}
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
			nothingHeld(t, e)
		}
	}
}

// TestCanceledAtTheHead cancels a request at the moment of its first head: every block read in the meantime is given back.
func TestCanceledAtTheHead(t *testing.T) {
	for range 300 {
		ctx, cancel := context.WithCancel(t.Context())
		e := newFakeEngine(t, &fakeOrigin{size: 3 * mib, onHead: cancel})
		if resp, err := e.Get(ctx, fakeRequest(true)); err == nil {
			resp.Body.Close()
		}
		nothingHeld(t, e)
	}
}

// TestClientLeavesInPeace: connections stay until the transfer has seen that the client left. If they broke before, their links would
// be blamed.
func TestClientLeavesInPeace(t *testing.T) {
	opened := make(chan context.Context, 16)
	o := &fakeOrigin{size: 32 * mib}
	e := newFakeEngine(t, o)
	e.cfg.Opener = opener(func(ctx context.Context, l link.Link, to Target) (Conn, error) {
		opened <- ctx
		return o.Open(ctx, l, to)
	})
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := e.Get(ctx, fakeRequest(true))
	if err != nil {
		t.Fatal(err)
	}
	conn := <-opened
	e.fleet.mu.Lock() // which the end of a transfer needs
	cancel()
	if conn.Err() != nil {
		t.Error("the connection ends before the transfer")
	}
	e.fleet.mu.Unlock()
	resp.Body.Close()
	nothingHeld(t, e)
	<-conn.Done()
}

type opener func(context.Context, link.Link, Target) (Conn, error)

func (o opener) Open(ctx context.Context, l link.Link, t Target) (Conn, error) { return o(ctx, l, t) }

func (opener) Warm(_ link.Link, _ string, c net.Conn, _ link.Info) { c.Close() }

func TestNoLink(t *testing.T) {
	e := newFakeEngine(t, &fakeOrigin{size: 1})
	e.SetLinks(nil)
	if _, err := e.Get(t.Context(), fakeRequest(true)); !errors.Is(err, ErrNoLink) {
		t.Errorf("%v, want ErrNoLink", err)
	}
	nothingHeld(t, e)
}

// scheduler returns what makes the schedulers of a name.
func scheduler(name string) func() schedule.Scheduler {
	s, err := schedule.Maker(name)
	if err != nil {
		panic(err)
	}
	return s
}
