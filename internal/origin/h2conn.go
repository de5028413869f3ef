package origin

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/fault"
)

var (
	errGoingAway = errors.New("the origin takes no more requests on this connection")
	errUnwanted  = errors.New("the answer was cancelled: it is not the one wanted")
)

// h2conn implements engine.Conn over HTTP/2: every request is a stream of its own. Answers are handed out in the order of the
// requests, however the origin interleaves them; early bytes wait in the stream's window. A request is written when the bytes
// that its answer may hold fit into maxUnread, and after the one before it. Until the first head shows that the origin's
// SETTINGS have come, there is one stream (RFC 9113 section 6.5.2). A request whose answer may be of any length waits until it
// is first in line: nobody reads the answer before that, so it could fill the connection.
//
// mu is never held across a call of http2, which may write.
type h2conn struct {
	*checkout
	ctx    context.Context // of every stream
	cancel context.CancelFunc
	runs   sync.WaitGroup // goroutines of exchanges

	// mu guards these too.
	queue    []*exchange // sent and not yet read to the end, in order
	started  int         // of queue, how many have a stream
	starting bool        // the last of these is not written yet
	settled  bool        // the origin's SETTINGS have come
	unread   int64       // sum of the started exchanges' need
}

func newH2Conn(p *Pool, s *stream, reused bool) *h2conn {
	c := &h2conn{checkout: newCheckout(p, s, reused), settled: reused}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Send implements engine.Conn. It does not wait for the request to be written: a failure to do so is that of Next.
func (c *h2conn) Send(a engine.RangeRequest) error {
	x, err := newExchange(c.ctx, &a)
	if err != nil {
		return c.fail("send", fault.Unwanted, err)
	}
	if err := c.allowed(); err != nil {
		return c.forbid(err)
	}
	alive := c.h2.CanTakeNewRequest()
	c.mu.Lock()
	first := len(c.queue) == 0
	switch {
	case c.given:
		err = errClosed
	case c.broken:
		err = errBroken
	case first && !alive: // behind others it fails in its turn, so that their answers are not lost
		c.broken, err = true, errGoingAway
	default:
		x.behind = !first
		x.trace(c)
		c.queue = append(c.queue, x)
		c.start()
	}
	c.mu.Unlock()
	if err != nil {
		return c.fail("send", c.unanswered(), err)
	}
	return nil
}

// start gives streams to the exchanges whose turn it is. c.mu is held.
func (c *h2conn) start() {
	for c.started < len(c.queue) && !c.starting && !c.given {
		x := c.queue[c.started]
		if c.started > 0 && (!c.settled || x.endless() || c.unread+x.need > maxUnread) {
			return
		}
		c.started++
		c.starting = true
		c.unread += x.need
		c.bound()
		c.runs.Go(func() { c.run(x) })
	}
}

// bound sets in inflow how much the answers under way may hold. c.mu is held.
func (c *h2conn) bound() {
	open := false
	for _, x := range c.queue[:c.started] {
		open = open || x.open
	}
	c.inflow.bound(c.unread, open)
}

// begun notes that the answer of x has begun. Until its head is judged its body may be of any length: run cancels those
// that are too long.
func (c *h2conn) begun(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x.open = true
	c.bound()
}

// wrote notes that the request of x is written or never will be.
func (c *h2conn) wrote(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !x.written {
		x.written, c.starting = true, false
	}
	c.start()
}

// run sends the request of x and judges the head of its answer.
func (c *h2conn) run(x *exchange) {
	defer close(x.done)
	resp, err := c.h2.RoundTrip(x.req)
	if err == nil {
		err = x.judge(resp, time.Now())
	}
	x.err = err
	c.mu.Lock()
	x.unwritten = !x.written
	x.open = err == nil && !x.unwanted && !x.bounded()
	c.settled = c.settled || err == nil
	c.bound()
	c.mu.Unlock()
	if err != nil || x.unwanted {
		c.holds(x, 0)
	}
	c.wrote(x)
}

// holds notes that the answer of x can hold at most n more bytes.
func (c *h2conn) holds(x *exchange, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n < x.need {
		c.unread -= x.need - n
		x.need = n
		c.bound()
		c.start()
	}
}

// Next implements engine.Conn. Closing the response's Body before its end cancels the stream and leaves the connection be.
// The body of an answer to a RangeRequest with Want that is not wanted is cancelled on arrival.
func (c *h2conn) Next() (*engine.RangeResponse, error) {
	var x *exchange
	var err error
	c.mu.Lock()
	switch {
	case c.given:
		err = errClosed
	case len(c.queue) == 0:
		err = errNotAsked
	case c.reading:
		err = errUnread
	default:
		x = c.queue[0]
	}
	c.mu.Unlock()
	if err != nil {
		return nil, c.fail("head", c.unanswered(), err)
	}
	x.await()
	if x.err != nil {
		e := c.fail("head", c.lost(x), x.err)
		c.spoil()
		return nil, e
	}
	return c.response(x)
}

// response hands out the answer of x.
func (c *h2conn) response(x *exchange) (*engine.RangeResponse, error) {
	alive := c.h2.CanTakeNewRequest()
	b := &h2body{rangeBody: newRangeBody(x.resp.Body, x.verdict), conn: c, x: x}
	x.resp.Body = b
	c.mu.Lock()
	c.answers++
	c.reading = true
	// GOAWAY: the next request needs another connection; those under way here are answered.
	x.resp.Close = !alive && len(c.queue) == 1
	c.mu.Unlock()
	switch {
	case x.unwanted:
		b.err = c.fail("body", fault.Canceled, errUnwanted)
		c.answered(x)
	case b.src == http.NoBody:
		b.finish()
	}
	return c.judged(x.resp, x.verdict)
}

// answered ends the present answer: nothing more of its body will be read.
func (c *h2conn) answered(x *exchange) {
	c.holds(x, 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
	c.queue[0] = nil
	c.queue = c.queue[1:]
	c.started--
	c.bound()
	c.start()
}

// Release implements engine.Conn.
func (c *h2conn) Release() {
	c.mu.Lock()
	clean := !c.reading && !c.broken && len(c.queue) == 0
	if c.given || !clean {
		c.mu.Unlock()
		c.Close()
		return
	}
	c.given = true
	c.mu.Unlock()
	c.cancel()
	c.runs.Wait()
	if c.usable() {
		c.pool.put(c.stream)
	} else {
		c.socket.Close()
	}
}

// Close implements engine.Conn. Below TLS no alert is sent: it could block.
func (c *h2conn) Close() {
	if !c.end() {
		return
	}
	c.inflow.Close() // before the streams end: their writes must not block
	c.cancel()
	c.runs.Wait()
}

var _ engine.Conn = (*h2conn)(nil)
