package origin

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/engine"
)

var (
	errClosed     = errors.New("the connection was closed by its owner")
	errNotAsked   = errors.New("no request is outstanding")
	errUnread     = errors.New("the previous response was not read to its end")
	errLast       = errors.New("the origin closes the connection before this request")
	errIdle       = errors.New("the origin closed the connection or sent unrequested bytes")
	errBroken     = errors.New("an earlier failure left the connection in an unknown state")
	errSwitched   = errors.New("the origin switched protocols without a request")
	errInterim    = fmt.Errorf("more than %d interim responses", MaxInterim)
	errBadStatus  = errors.New("status code below 100")
	errOutOfStep  = errors.New("the bytes after the previous response are not a response")
	errHeadBroken = errors.New("the connection ended within the head of the response")
)

// conn implements engine.Conn for one transfer. Send and the reading side (Next and body reads) share the fields that
// mu guards.
type conn struct {
	*checkout

	out   []byte // the request being written; owned by Send
	inlet inlet  // of the socket; owned by the reading side

	// mu guards these too.
	queue   []pending // sent and not yet read to the end, in order
	last    bool      // no answer follows the current one
	surplus bool      // bytes arrived that no request asked for
}

type pending struct {
	request   *engine.RangeRequest
	pipelined bool // sent before the answer to an earlier request was complete
}

func newConn(p *Pool, s *stream, reused bool) *conn {
	return &conn{checkout: newCheckout(p, s, reused), inlet: newInlet(s.socket)}
}

// Send implements engine.Conn. A failure after which the origin cannot have acted on the request is Stale or
// Unanswered; a request that must not be written is Unwanted.
func (c *conn) Send(a engine.RangeRequest) error {
	out, err := appendRequest(c.out[:0], &a)
	if err != nil {
		return c.fail("send", fault.Unwanted, err)
	}
	c.out = out
	if err := c.allowed(); err != nil {
		return c.forbid(err)
	}
	c.mu.Lock()
	first := len(c.queue) == 0
	used := c.answers > 0
	c.mu.Unlock()
	// Nothing may arrive between two requests. A connection that cannot be inspected counts as usable here: unrequested
	// bytes make the next head fail.
	waits := false
	if first && used {
		waits, _ = waiting(c.socket)
	}
	c.mu.Lock()
	switch {
	case c.given:
		err = errClosed
	case c.last:
		err = errLast
	case c.broken:
		err = errBroken
	case waits || first && c.surplus:
		c.broken, err = true, errIdle
	default:
		c.queue = append(c.queue, pending{request: &a, pipelined: !first})
	}
	c.mu.Unlock()
	if err != nil {
		return c.fail("send", c.unanswered(), err)
	}
	if _, err := c.conn.Write(out); err != nil {
		c.mu.Lock()
		c.broken = true
		if n := len(c.queue); n > 0 && c.queue[n-1].request == &a {
			c.queue = c.queue[:n-1]
		}
		c.mu.Unlock()
		return c.fail("send", c.unanswered(), err)
	}
	return nil
}

// Next implements engine.Conn. A malformed answer is Unwanted, or Unanswered if its request was pipelined: then the
// server may merely be out of step. Closing the response's Body before its end closes the connection.
func (c *conn) Next() (*engine.RangeResponse, error) {
	var p pending
	var err error
	c.mu.Lock()
	switch {
	case c.given:
		err = errClosed
	case len(c.queue) == 0:
		err = errNotAsked
	case c.reading:
		err = errUnread
	case c.last:
		err = errLast
	default:
		p = c.queue[0]
	}
	c.mu.Unlock()
	if err != nil {
		return nil, c.fail("head", c.unanswered(), err)
	}
	resp, h, aerr := c.head(p)
	if aerr != nil {
		c.spoil()
		return nil, aerr
	}
	return c.response(p.request, resp, h)
}

// head reads heads up to the first final one.
func (c *conn) head(p pending) (*http.Response, Head, *engine.AttemptError) {
	bad := func(err error) *engine.AttemptError {
		if p.pipelined {
			return c.fail("head", fault.Unanswered, fmt.Errorf("%w: %w", errOutOfStep, err))
		}
		return c.fail("head", fault.Unwanted, err)
	}
	defer c.wire.end()
	limit := MaxHead
	for interim := 0; ; interim++ {
		c.wire.begin(c.br, limit)
		resp, err := http.ReadResponse(c.br, nil)
		got := len(c.wire.in.raw) > 0
		switch {
		case err == nil:
		case c.wire.err != nil && !got && interim == 0:
			return nil, Head{}, c.fail("head", c.unanswered(), c.wire.err)
		case c.wire.err != nil:
			return nil, Head{}, c.fail("head", fault.Reset, fmt.Errorf("%w: %w", errHeadBroken, c.wire.err))
		case errors.Is(err, errHeadTooLong), errors.Is(err, ErrMalformed):
			return nil, Head{}, bad(err)
		default:
			return nil, Head{}, bad(fmt.Errorf("%w: %w", ErrMalformed, err))
		}
		limit -= len(c.wire.raw)
		restore(resp.Header, c.wire.repaired)
		switch code := resp.StatusCode; {
		case code < 100:
			return nil, Head{}, bad(fmt.Errorf("%w: %w", ErrMalformed, errBadStatus))
		case code == http.StatusSwitchingProtocols:
			return nil, Head{}, c.fail("head", fault.Unwanted, errSwitched)
		case code > 199:
			return resp, judgeable(resp, c.wire.raw), nil
		case interim == MaxInterim:
			return nil, Head{}, c.fail("head", fault.Unwanted, errInterim)
		}
		if p.request.Interim != nil {
			p.request.Interim(resp.StatusCode, resp.Header)
		}
	}
}

// judgeable returns the facts about an answer whose head arrived as raw.
func judgeable(resp *http.Response, raw []byte) Head {
	h := Head{
		Status:  resp.StatusCode,
		Header:  resp.Header,
		Length:  resp.ContentLength,
		HTTP10:  !resp.ProtoAtLeast(1, 1) || bytes.HasPrefix(raw, []byte("HTTP/1.0")), // chunks are repaired
		Trailer: len(resp.Trailer) > 0 || len(resp.Header["Trailer"]) > 0,
	}
	chunked := len(resp.TransferEncoding) > 0
	h.Ambiguous = chunked && (hasField(raw, "Content-Length") || h.HTTP10)
	if h.Ambiguous {
		resp.Close = true // RFC 9112 section 6.1
	}
	return h
}

// response judges an answer and prepares its body.
func (c *conn) response(a *engine.RangeRequest, resp *http.Response, h Head) (*engine.RangeResponse, error) {
	var v Verdict
	if a.Want == nil {
		v = Identify(a, h)
	} else {
		v = Check(a, h, time.Now())
	}
	b := &body{rangeBody: newRangeBody(resp.Body, v), conn: c}
	b.untilClose = resp.ContentLength < 0 && len(resp.TransferEncoding) == 0
	resp.Body = b
	c.mu.Lock()
	c.answers++
	c.reading = true
	c.last = resp.Close
	c.mu.Unlock()
	if b.src == http.NoBody {
		b.finish()
	}
	return c.judged(resp, v)
}

// answered ends the current answer, whose body was read to its end.
func (c *conn) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
	c.queue[0] = pending{}
	c.queue = c.queue[1:]
	// RFC 9112 section 6.3: bytes beyond the body cannot answer a request that was not yet sent.
	if len(c.queue) == 0 && c.wire.ahead(c.br) > 0 {
		c.surplus = true
	}
}

// Cut implements engine.Conn.
func (c *conn) Cut(uint32, int64) bool { return false }

// behind is the number of waiting bytes in a socket from which on its reader counts as lagging.
const behind = 16 << 10 // bytes: one TLS record

// Behind implements engine.Conn. Without TLS, a read takes all waiting bytes.
func (c *conn) Behind() bool { return c.key.scheme == "https" && c.inlet.waiting() >= behind }

// Release implements engine.Conn.
func (c *conn) Release() {
	c.mu.Lock()
	clean := !c.reading && !c.last && !c.broken && !c.surplus && len(c.queue) == 0
	if c.given || !clean {
		c.mu.Unlock()
		c.Close()
		return
	}
	c.given = true
	c.mu.Unlock()
	if c.usable() {
		c.pool.put(c.stream)
	} else {
		c.socket.Close()
	}
}

// Close implements engine.Conn. It closes the socket below TLS: a TLS alert could block.
func (c *conn) Close() {
	if c.end() {
		c.socket.Close()
	}
}

var (
	_ engine.Conn   = (*conn)(nil)
	_ io.ReadCloser = (*body)(nil)
)
