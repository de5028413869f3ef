package engine

import (
	"context"
	"io"
	"math"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/net/link"
)

// breaking is a connection whose first answer breaks off while the second request is being sent; the end of the connection then
// cuts off that request.
type breaking struct {
	*fakeConn
	once            sync.Once
	asked           bool
	sending, closed chan struct{}
}

func (c *breaking) Send(a RangeRequest) error {
	if !c.asked {
		c.asked = true
		return c.fakeConn.Send(a)
	}
	close(c.sending)
	<-c.closed
	return &AttemptError{Op: "send", Outcome: fault.Canceled, Err: net.ErrClosed}
}

func (c *breaking) Next() (*RangeResponse, error) {
	r, err := c.fakeConn.Next()
	if err == nil {
		r.Response.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(r.Response.Body, 1000), c), r.Response.Body}
	}
	return r, err
}

func (c *breaking) Read([]byte) (int, error) {
	select {
	case <-c.sending:
	case <-c.closed:
	}
	return 0, &AttemptError{Op: "body", Outcome: fault.Short, Err: io.ErrUnexpectedEOF}
}

func (c *breaking) Close() {
	c.once.Do(func() { close(c.closed) })
	c.fakeConn.Close()
	time.Sleep(time.Second) // of the bubble: whoever waited for the end acts first
}

// TestEndsInOrder: the answer that broke off is reported first, not the request behind it, which then could not be sent.
func TestEndsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &fakeOrigin{size: mib}
		e := newFakeEngine(t, o)
		e.cfg.Opener = opener(func(ctx context.Context, l link.Link, to Target) (Conn, error) {
			c, err := o.Open(ctx, l, to)
			if err != nil {
				return nil, err
			}
			return &breaking{fakeConn: c.(*fakeConn), sending: make(chan struct{}), closed: make(chan struct{})}, nil
		})
		r, err := newRun(t.Context(), e, fakeRequest(true), opening.New("http", "/", nil, 64<<10))
		if err != nil {
			t.Fatal(err)
		}
		l := newConnLoop(r, 1, 0, false)
		for i := range int64(2) {
			f := &attempt{id: uint32(i), request: RangeRequest{Want: &Identity{}, Range: segment.Range{Start: i * 2000, End: (i + 1) * 2000}}}
			f.credit.Store(mib)
			f.end.Store(math.MaxInt64)
			l.requests <- f
		}
		for e := range r.events {
			if e.Kind == transfer.Ended {
				if e.Attempt != 0 || e.Outcome != fault.Short {
					t.Errorf("attempt %d ended first: %v", e.Attempt, e.err)
				}
				break
			}
		}
		l.close()
		l.alive.Wait()
		e.fleet.leave(r)
	})
}

// recorded is a connection whose reads end with a record, as TLS's do.
type recorded struct {
	*fakeConn
	record int
	behind bool
}

func (c *recorded) Behind() bool { return c.behind }

func (c *recorded) Next() (*RangeResponse, error) {
	r, err := c.fakeConn.Next()
	if err == nil {
		r.Response.Body = &records{r.Response.Body, c.record}
	}
	return r, err
}

type records struct {
	io.ReadCloser
	size int
}

func (r *records) Read(p []byte) (int, error) { return r.ReadCloser.Read(p[:min(len(p), r.size)]) }

// TestBatches: short reads show that a reader keeps up, and it lets bytes gather, unless much waits behind them.
func TestBatches(t *testing.T) {
	for _, tt := range []struct {
		name   string
		record int
		behind bool
		pauses bool
	}{
		{"it keeps up", batch - 1, false, true},
		{"it is behind", batch - 1, true, false},
		{"large reads", batch, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &fakeOrigin{size: 2 * mib}
				e := newFakeEngine(t, o)
				e.cfg.Opener = opener(func(ctx context.Context, l link.Link, to Target) (Conn, error) {
					c, err := o.Open(ctx, l, to)
					if err != nil {
						return nil, err
					}
					return &recorded{c.(*fakeConn), tt.record, tt.behind}, nil
				})
				r, err := newRun(t.Context(), e, fakeRequest(true), opening.New("http", "/", nil, 64<<10))
				if err != nil {
					t.Fatal(err)
				}
				l := newConnLoop(r, 1, 0, false)
				f := &attempt{request: RangeRequest{Want: &Identity{}, Range: segment.Range{End: 2 * mib}}}
				f.credit.Store(2 * mib)
				f.end.Store(math.MaxInt64)
				began := time.Now()
				l.requests <- f
				for e := range r.events {
					if e.piece.b != nil {
						e.piece.b.free()
					}
					if e.Kind == transfer.Ended {
						break
					}
				}
				if took := time.Since(began); (took > 0) != tt.pauses {
					t.Errorf("it paused for %v", took)
				}
				l.close()
				l.alive.Wait()
				e.fleet.leave(r)
			})
		})
	}
}

// TestEndedConnectionsAreForgotten: however many connections a transfer uses up, it keeps only those that have not ended.
func TestEndedConnectionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine(t, &fakeOrigin{size: mib})
		r, err := newRun(t.Context(), e, fakeRequest(true), opening.New("http", "/", nil, 64<<10))
		if err != nil {
			t.Fatal(err)
		}
		for id := range uint32(50) {
			r.conns[id] = newConnLoop(r, id, 0, false)
			r.conns[id].close()
			r.retire(id)
			synctest.Wait()
			for len(r.events) > 0 {
				<-r.events
			}
		}
		if n := len(r.kept); n > 1 {
			t.Errorf("%d ended connections are kept", n)
		}
		e.fleet.leave(r)
	})
}
