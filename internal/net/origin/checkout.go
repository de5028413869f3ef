package origin

import (
	"net/http"
	"sync"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
)

// checkout is the period during which one transfer owns a connection, over either version of HTTP. Send and the reading
// side share the fields that mu guards.
type checkout struct {
	*stream
	pool *Pool
	info engine.ConnInfo

	mu       sync.Mutex
	answers  int  // heads read for this owner
	reading  bool // the body of the oldest answer has been handed out
	broken   bool // no further request may be sent
	given    bool // closed or released
	canceled bool // closed by the owner
}

func newCheckout(p *Pool, s *stream, reused bool) *checkout {
	info := engine.ConnInfo{Reused: reused, RTT: s.info.RTT, Multiplexed: s.h2 != nil}
	if s.info.Origin.IsValid() {
		info.Remote = s.info.Origin.String()
	}
	return &checkout{stream: s, pool: p, info: info}
}

// Info implements engine.Conn.
func (t *checkout) Info() engine.ConnInfo { return t.info }

// Sample implements engine.Conn.
func (t *checkout) Sample() (engine.PathSample, bool) {
	p, ok := link.PathState(t.socket)
	return engine.PathSample{
		RTT: p.RTT, Least: p.Least, Data: p.Receiving, Delay: p.Receiving, Holes: p.Disordered,
	}, ok
}

// Received implements engine.Conn.
func (t *checkout) Received() (link.Counters, bool) { return link.Received(t.socket) }

// allowed returns an error if no further request may be sent: a change since the dial may forbid it.
func (t *checkout) allowed() error { return t.link.Revalidate(t.key.addr, t.socket) }

// forbid bars further requests. The outcome is that of a kept connection that has closed: the next one is dialed again,
// or refused.
func (t *checkout) forbid(err error) *engine.AttemptError {
	t.spoil()
	return t.fail("send", fault.Stale, err)
}

// spoil bars the connection from further requests.
func (t *checkout) spoil() {
	t.mu.Lock()
	t.broken = true
	t.mu.Unlock()
}

// judged returns a response with the verdict on it.
func (t *checkout) judged(resp *http.Response, v Verdict) (*engine.RangeResponse, error) {
	r := &engine.RangeResponse{Response: resp, Range: v.Range, ID: v.ID, Unfit: v.Unfit}
	if v.Err == nil {
		return r, nil
	}
	e := t.fail("check", v.Err.Outcome, v.Err)
	e.RetryAfter = v.Err.RetryAfter
	return r, e
}

// unanswered returns the Outcome of a request that got no byte of an answer.
func (t *checkout) unanswered() fault.Outcome {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.info.Reused && t.answers == 0 {
		return fault.Stale
	}
	return fault.Unanswered
}

// fail returns the error of an attempt. After the owner's Close, every outcome is Canceled.
func (t *checkout) fail(op string, outcome fault.Outcome, err error) *engine.AttemptError {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.canceled {
		outcome, err = fault.Canceled, errClosed
	}
	return &engine.AttemptError{Op: op, Link: t.key.link, Outcome: outcome, Err: err}
}

// end marks t as closed by its owner. It returns false if t had already ended.
func (t *checkout) end() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.given {
		return false
	}
	t.given, t.canceled = true, true
	return true
}
