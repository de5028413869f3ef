package origin

import (
	"errors"

	"golang.org/x/net/http2"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/engine"
)

// h2conn implements engine.Conn over HTTP/2: every request is a stream of its own. Answers are handed out in the order
// of the requests, however the origin interleaves them.
type h2conn struct{ *checkout }

func newH2Conn(p *Pool, s *stream, reused bool) *h2conn { return &h2conn{newCheckout(p, s, reused)} }

// Send implements engine.Conn. A request whose turn has not come is sent later: Next then reports a failure to send it.
func (c *h2conn) Send(a engine.RangeRequest) error {
	x, err := newExchange(&a)
	if err != nil {
		return c.fail("send", fault.Unwanted, err)
	}
	if err := c.allowed(); err != nil {
		return c.forbid(err)
	}
	c.mu.Lock()
	switch {
	case c.given:
		err = errClosed
	case c.broken:
		err = errBroken
	}
	c.mu.Unlock()
	if err == nil {
		if err = c.h2.ask(x); err != nil {
			c.spoil()
		}
	}
	if err != nil {
		return c.fail("send", c.unanswered(), err)
	}
	return nil
}

// ask queues x. A request behind others fails in its turn, so that their answers are not lost.
func (s *session) ask(x *exchange) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.behind = len(s.queue) > 0; !x.behind && !s.live() {
		return errGoingAway
	}
	s.queue = append(s.queue, x)
	s.start()
	s.flush()
	return nil
}

// Next implements engine.Conn. Closing the response's Body before its end cancels the stream and leaves the connection
// open. If the answer to a RangeRequest with Want is not the wanted one, its body is cancelled on arrival.
func (c *h2conn) Next() (*engine.RangeResponse, error) {
	var err error
	c.mu.Lock()
	switch {
	case c.given:
		err = errClosed
	case c.reading:
		err = errUnread
	}
	c.mu.Unlock()
	var x *exchange
	if err == nil {
		x, err = c.h2.first()
	}
	if err != nil {
		return nil, c.fail("head", c.unanswered(), err)
	}
	last, empty, err := c.h2.await(x)
	if err != nil {
		e := c.fail("head", c.lost(x, err), err)
		c.spoil()
		return nil, e
	}
	return c.response(x, last, empty)
}

// first returns the exchange that is first in line.
func (s *session) first() (*exchange, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil, errNotAsked
	}
	return s.queue[0], nil
}

// await waits for the head of the answer and hands out interim answers until then. last reports whether the origin
// accepts no requests after those under way, empty whether the answer has no body.
func (s *session) await(x *exchange) (last, empty bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(x.interim) > 0 {
			i := x.interim[0]
			x.interim = x.interim[1:]
			if x.request.Interim != nil {
				s.mu.Unlock()
				x.request.Interim(i.status, i.header)
				s.mu.Lock()
			}
		}
		switch {
		case x.resp != nil:
			return !s.live() && len(s.queue) == 1, x.err == errEnd && x.size <= 0 && x.received == 0, nil
		case x.err != nil:
			return false, false, x.err
		}
		s.change.Wait()
	}
}

// response hands out the answer of x.
func (c *h2conn) response(x *exchange, last, empty bool) (*engine.RangeResponse, error) {
	b := &h2body{conn: c, x: x}
	x.resp.Body, x.resp.Close = b, last
	c.mu.Lock()
	c.answers++
	c.reading = true
	c.mu.Unlock()
	switch {
	case x.unwanted:
		b.err = c.fail("body", fault.Canceled, errUnwanted)
		c.answered(x)
	case empty:
		b.finish()
	}
	return c.judged(x.resp, x.verdict)
}

// answered ends the current answer. Nothing more of its body will be read.
func (c *h2conn) answered(x *exchange) {
	c.mu.Lock()
	c.reading = false
	c.mu.Unlock()
	c.h2.answered(x)
}

// answered removes x, the first in line.
func (s *session) answered(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel(x, http2.ErrCodeCancel, errClosed)
	x.unread.drop(s.chunks)
	s.queue[0] = nil
	s.queue = s.queue[1:]
	s.started--
	s.start()
	s.fill(nil)
	s.flush()
}

// lost returns the outcome of an x without an answer. A request that the origin did not act on (REFUSED_STREAM, GOAWAY:
// RFC 9113 section 8.7) is Stale or Unanswered, one with a malformed head is Unwanted.
func (c *h2conn) lost(x *exchange, err error) fault.Outcome {
	var reset http2.StreamError
	var away awayError
	switch {
	case errors.Is(err, errFlood):
		return fault.BadRange
	case errors.Is(err, ErrMalformed), errors.Is(err, errSwitched), errors.Is(err, errInterim),
		errors.Is(err, errHeadTooLong),
		errors.Is(err, errTooLong):
		return fault.Unwanted
	case errors.As(err, &reset):
		switch reset.Code {
		case http2.ErrCodeProtocol, http2.ErrCodeHTTP11Required, http2.ErrCodeInadequateSecurity:
			return fault.Unwanted
		case http2.ErrCodeEnhanceYourCalm:
			return fault.Busy
		}
	// else it may be another answer that broke the connection
	case errors.As(err, new(http2.ConnectionError)) && !x.behind:
		return fault.Unwanted
	case errors.As(err, &away) && away.code == http2.ErrCodeEnhanceYourCalm:
		return fault.Busy
	}
	return c.unanswered()
}

// Cut implements engine.Conn.
func (c *h2conn) Cut(id uint32, end int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.given && c.h2.cutAt(id, end) // else the requests may be those of another owner
}

// Sample implements engine.Conn. PING shows the delay of a response; the kernel sees only that of packets.
func (c *h2conn) Sample() (engine.PathSample, bool) {
	p, ok := c.checkout.Sample()
	p.Delay = c.h2.delay()
	return p, ok || p.Delay > 0
}

// Release implements engine.Conn.
func (c *h2conn) Release() {
	c.mu.Lock()
	clean := !c.given && !c.reading && !c.broken && c.h2.usable()
	if clean {
		c.given = true
	}
	c.mu.Unlock()
	if clean {
		c.pool.put(c.stream)
	} else {
		c.Close()
	}
}

// Close implements engine.Conn.
func (c *h2conn) Close() {
	if c.end() {
		c.h2.close()
	}
}

// ended reports whether the owner has closed the connection.
func (c *h2conn) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.canceled
}

// Behind implements engine.Conn. It returns false: the session reads ahead, and one read returns all that waits there.
func (c *h2conn) Behind() bool { return false }

var _ engine.Conn = (*h2conn)(nil)
