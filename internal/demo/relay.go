package demo

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	pieceSize    = 8 << 10  // bytes paced at once
	socketBuffer = 64 << 10 // small: data in the kernel has already passed the pacer
	leastFlight  = 16       // pieces that may be under way on a connection over a link without delay
)

// shape describes a link.
type shape struct {
	name  string
	rate  float64       // bytes per second, each direction
	delay time.Duration // one way
}

// relay is an emulated link: a TCP relay with a shape on loopback to one origin. It can be killed and revived. All
// methods are safe for concurrent use.
type relay struct {
	shape
	origin   string
	listener net.Listener
	up, down pacer        // towards the origin, towards the client
	carried  atomic.Int64 // bytes delivered to clients

	ctx    context.Context // context of everything that runs; done when close is called
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	alive chan struct{} // closed while the link is alive
}

// newRelay starts a link to the origin at a TCP address.
func newRelay(s shape, origin string) (*relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("emulate link %s: %w", s.name, err)
	}
	r := &relay{shape: s, origin: origin, listener: l, alive: make(chan struct{})}
	close(r.alive)
	r.up.rate, r.down.rate = s.rate, s.rate
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.wg.Go(r.accept)
	return r, nil
}

// close closes the link and waits until all of its goroutines have ended.
func (r *relay) close() {
	r.cancel()
	r.listener.Close()
	r.wg.Wait()
}

// kill makes the link silently swallow everything: bytes, ends of connections, and dials.
func (r *relay) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.alive:
		r.alive = make(chan struct{})
	default:
	}
}

// revive ends a kill. Data that was in flight arrives now, as if TCP had retransmitted it.
func (r *relay) revive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.alive:
	default:
		close(r.alive)
	}
}

// wait waits until the link is alive and returns true; it returns false when ctx is done.
func (r *relay) wait(ctx context.Context) bool {
	r.mu.Lock()
	alive := r.alive
	r.mu.Unlock()
	select {
	case <-alive:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// dial connects to the origin over the link, after one round trip, and hangs while the link is dead.
func (r *relay) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if addr != r.origin {
		return nil, fmt.Errorf("emulated link %s leads to %s only, not to %s", r.name, r.origin, addr)
	}
	if !sleepUntil(ctx, time.Now().Add(2*r.delay)) || !r.wait(ctx) {
		return nil, fmt.Errorf("dial over %s: %w", r.name, context.Cause(ctx))
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, r.listener.Addr().String())
	if err != nil {
		return nil, err
	}
	if err := c.(*net.TCPConn).SetReadBuffer(socketBuffer); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (r *relay) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		r.wg.Go(func() { r.serve(c.(*net.TCPConn)) })
	}
}

// serve carries one connection until both directions have ended or one fails.
func (r *relay) serve(client *net.TCPConn) {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	defer client.Close()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", r.origin)
	if err != nil {
		return
	}
	origin := c.(*net.TCPConn)
	defer origin.Close()
	for _, c := range []*net.TCPConn{client, origin} {
		if c.SetReadBuffer(socketBuffer) != nil || c.SetWriteBuffer(socketBuffer) != nil {
			return
		}
	}
	// Closing unblocks reads and writes.
	stop := context.AfterFunc(ctx, func() {
		client.Close()
		origin.Close()
	})
	defer stop()

	var wg sync.WaitGroup
	wg.Go(func() { r.carry(ctx, cancel, origin, client, &r.up, nil) })
	wg.Go(func() { r.carry(ctx, cancel, client, origin, &r.down, &r.carried) })
	wg.Wait()
}

// piece is the data of one read, with its time of arrival.
type piece struct {
	data []byte
	at   time.Time
}

// window returns how many pieces may be under way on one connection: twice what fills the link. As with TCP, a
// connection whose receiver does not read then takes nothing from the others.
func (s shape) window() int { return leastFlight + int(2*s.rate*s.delay.Seconds())/pieceSize }

// carry moves bytes from src to dst, paced and delayed, and then the end of src. If that fails, it breaks the
// connection.
func (r *relay) carry(ctx context.Context, broken func(), dst, src *net.TCPConn, p *pacer, count *atomic.Int64) {
	pieces := make(chan piece, r.window())
	var wg sync.WaitGroup
	wg.Go(func() {
		if !r.deliver(ctx, dst, pieces, count) {
			broken()
		}
	})
	defer wg.Wait()
	defer close(pieces)
	for {
		buf := make([]byte, pieceSize)
		n, err := src.Read(buf)
		if n > 0 {
			if !r.wait(ctx) {
				return
			}
			left := p.reserve(time.Now(), n)
			select {
			case pieces <- piece{buf[:n], left.Add(r.delay)}:
			case <-ctx.Done():
				return
			}
			if !sleepUntil(ctx, left) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// deliver writes the pieces at their times of arrival and then closes dst for writing. It returns false if that failed.
func (r *relay) deliver(ctx context.Context, dst *net.TCPConn, pieces <-chan piece, count *atomic.Int64) bool {
	for p := range pieces {
		if !sleepUntil(ctx, p.at) || !r.wait(ctx) {
			return false
		}
		n, err := dst.Write(p.data)
		if count != nil {
			count.Add(int64(n))
		}
		if err != nil {
			return false
		}
	}
	return r.wait(ctx) && dst.CloseWrite() == nil
}

// sleepUntil sleeps until t and returns true; it returns false if ctx is done before.
func sleepUntil(ctx context.Context, t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
