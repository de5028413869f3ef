package link

import (
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

// Rates limits the receive rate of links, all connections of a link together, so that a download leaves room for a call. TCP's
// window slows the sender down, as with any slow reader. Safe for concurrent use.
type Rates struct {
	mu       sync.Mutex
	limiters map[string]*rate.Limiter
}

// Set replaces the limits, in bytes per second by name of the link; a link without an entry has none. Connections that are limited
// follow the new limit at once; others stay as they are.
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

// limitedRead returns the size of the largest read at n bytes per second: bytes must arrive often, or the link seems silent.
func limitedRead(n int64) int { return int(min(max(n/40, 1<<10), 64<<10)) }

// Limit applies the named link's limit to a connection. It returns those of a link without a limit unchanged. A connection that
// cannot be limited is an error, and closed.
func (r *Rates) Limit(c net.Conn, name string) (net.Conn, error) {
	r.mu.Lock()
	l := r.limiters[name]
	free := l == nil || l.Limit() == rate.Inf
	r.mu.Unlock()
	if free {
		return c, nil
	}
	tcp, ok := c.(tcpConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("max_rate does not apply to connections of this kind (%T): remove it from the configuration of the link", c)
	}
	return &limitedConn{tcpConn: tcp, pace: pace{limiter: l, closed: make(chan struct{})}}, nil
}

// tcpConn lists the methods of a TCP connection that other packages use.
type tcpConn interface {
	net.Conn
	CloseWrite() error
	SetKeepAliveConfig(net.KeepAliveConfig) error
	SetLinger(sec int) error
	SyscallConn() (syscall.RawConn, error)
}

// limitedConn is a TCP connection that reads no faster than its link may. It has no WriteTo, which would bypass Read.
type limitedConn struct {
	tcpConn
	pace pace
}

func (c *limitedConn) Read(p []byte) (int, error) { return c.pace.read(c.tcpConn, p) }

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.pace.close()
	return c.tcpConn.Close()
}

// pace pays for the bytes already read before it reads again.
type pace struct {
	limiter *rate.Limiter
	due     time.Time // time when all bytes read are paid for; belongs to the reader
	once    sync.Once
	closed  chan struct{}
}

func (p *pace) read(r io.Reader, b []byte) (int, error) {
	if wait := time.Until(p.due); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.closed:
			return 0, net.ErrClosed
		}
	}
	if burst := p.limiter.Burst(); len(b) > burst {
		b = b[:burst]
	}
	n, err := r.Read(b)
	if n > 0 {
		now := time.Now()
		if paid := p.limiter.ReserveN(now, n); paid.OK() {
			p.due = now.Add(paid.DelayFrom(now))
		}
	}
	return n, err
}

func (p *pace) close() { p.once.Do(func() { close(p.closed) }) }
