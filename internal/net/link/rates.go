package link

import (
	"net"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/tributary-http/tributary/internal/net/conn"
)

// Rates limits the receive rate of links, all connections of a link together, so that a download leaves room for a
// call. TCP's window slows the sender down, as with any slow reader. Safe for concurrent use.
type Rates struct {
	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

// Set replaces the limits, in bytes per second by name of the link; a link without an entry has none. Connections that
// are limited follow the new limit at once; others stay as they are.
func (r *Rates) Set(limits map[string]int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.limiters == nil {
		r.limiters = map[string]*rate.Limiter{}
	}
	for name, l := range r.limiters {
		if limits[name] == 0 {
			l.SetLimit(rate.Inf)
		}
	}
	for name, n := range limits {
		l := r.limiters[name]
		if l == nil {
			l = rate.NewLimiter(0, 0)
			r.limiters[name] = l
		}
		l.SetBurst(limitedRead(n))
		l.SetLimit(rate.Limit(n))
	}
}

// limitedRead returns the size of the largest read at n bytes per second: bytes must arrive often, or the link seems
// silent.
func limitedRead(n int64) int { return int(min(max(n/40, 1<<10), 64<<10)) }

// Limit applies the named link's limit to a connection, if it has one.
func (r *Rates) Limit(c *conn.Conn, name string) {
	r.mu.Lock()
	l := r.limiters[name]
	free := l == nil || l.Limit() == rate.Inf
	r.mu.Unlock()
	if free {
		return
	}
	p := &pace{limiter: l, closed: make(chan struct{})}
	c.Through(p)
	c.BeforeClose(func() { close(p.closed) })
}

// pace pays for the bytes already read before it lets more be read.
type pace struct {
	limiter *rate.Limiter
	due     time.Time // time when all bytes read are paid for; belongs to the reader
	closed  chan struct{}
}

// Pass implements conn.Gate.
func (p *pace) Pass(write bool, n int) (int, error) {
	if write {
		return n, nil
	}
	if wait := time.Until(p.due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.closed:
			return 0, net.ErrClosed
		}
	}
	return min(n, p.limiter.Burst()), nil
}

// Moved implements conn.Gate.
func (p *pace) Moved(read, _ int) {
	if read <= 0 {
		return
	}
	now := time.Now()
	if paid := p.limiter.ReserveN(now, read); paid.OK() {
		p.due = now.Add(paid.DelayFrom(now))
	}
}
