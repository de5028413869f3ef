package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/front/admission"
	"github.com/tributary-http/tributary/internal/front/cutoff"
)

// Bounds on silence in both directions of a tunnel together; its age is not limited (R143, R144). A tunnel ends between
// one and one and a quarter times the bound after its last byte.
const (
	tunnelIdle     = time.Hour
	halfClosedIdle = 60 * time.Second // one side has announced that it sends no more
)

// tunnel copies bytes between a client and an origin. It stays on one link, unless the first bytes of its client get no
// answer there (see begin). The goroutine in run owns both connections; two more copy.
type tunnel struct {
	origin io.ReadWriteCloser
	link   string // "" = not known
	by     *client
	cut    context.Context // ends when the tunnel is to be reset
	reset  context.CancelFunc
	again  redial       // dials over another link; nil = it stays on its link
	bytes  atomic.Int64 // copied, both directions; for TCP to TCP only up to the last look
}

// ended reports that one direction of a tunnel is over.
type ended struct {
	dst, src io.ReadWriteCloser
	err      error // nil = the source sends no more
}

// run copies until both directions are over and returns why the tunnel ended. early and answer hold the bytes that the
// client and the origin already sent.
func (t *tunnel) run(client io.ReadWriteCloser, early, answer []byte, buffers *sync.Pool) string {
	over := make(chan ended, 2)
	go t.copy(t.origin, client, early, buffers, over)
	go t.copy(client, t.origin, answer, buffers, over)
	abort := func() {
		cutoff.Reset(client)
		cutoff.Reset(t.origin)
	}
	bound, last, since := tunnelIdle, int64(0), time.Now()
	ticker := time.NewTicker(bound / 4)
	defer ticker.Stop()
	reason, cut := "", t.cut.Done()
	for running := 2; running > 0; {
		select {
		case e := <-over:
			running--
			switch {
			case reason != "": // closed already, this is the echo
			case e.err != nil, running > 0 && wasReset(e.src):
				reason = "broken"
				abort()
			case running > 0:
				bound, since = halfClosedIdle, time.Now()
				ticker.Reset(bound / 4)
				if c, ok := e.dst.(interface{ CloseWrite() error }); !ok || c.CloseWrite() != nil {
					reason = "closed" // there is no other way to notify the other side
					_ = client.Close()
					_ = t.origin.Close()
				}
			}
		case <-cut:
			cut = nil
			if reason == "" {
				reason = "cut"
				abort()
			}
		case now := <-ticker.C:
			if n := t.bytes.Load(); n != last {
				last, since = n, now
			} else if reason == "" && now.Sub(since) >= bound {
				reason = "idle"
				_ = client.Close()
				_ = t.origin.Close()
			}
			look(client)
			look(t.origin)
		}
	}
	_ = client.Close()
	_ = t.origin.Close()
	if reason == "" {
		reason = "closed"
	}
	return reason
}

// copy copies one direction. From TCP to TCP it hands both connections to the kernel (splice), which reports how much
// it moved only when it stops: look makes it stop for a moment.
func (t *tunnel) copy(dst, src io.ReadWriteCloser, early []byte, buffers *sync.Pool, over chan<- ended) {
	err := t.copyAll(dst, src, early, buffers)
	over <- ended{dst, src, err}
}

func (t *tunnel) copyAll(dst, src io.ReadWriteCloser, early []byte, buffers *sync.Pool) error {
	if len(early) > 0 {
		if _, err := dst.Write(early); err != nil {
			return err
		}
		t.bytes.Add(int64(len(early)))
	}
	to, toTCP := tcpOf(dst)
	from, fromTCP := tcpOf(src)
	if !toTCP || !fromTCP {
		buf := buffers.Get().(*[]byte)
		defer buffers.Put(buf)
		_, err := io.CopyBuffer(counter{dst, &t.bytes}, onlyReader{src}, *buf)
		return err
	}
	admission.BoundUnsent(to, 0) // reaching the bound costs a wake-up each time: a fifth of the rate on loopback
	for {
		n, err := to.ReadFrom(from)
		t.bytes.Add(n)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		_ = from.SetReadDeadline(time.Time{}) // fails only if closed, which the next read reports
	}
}

// look makes the goroutine that reads from c report how much it has copied.
func look(c io.ReadWriteCloser) {
	if tcp, ok := tcpOf(c); ok {
		_ = tcp.SetReadDeadline(time.Unix(1, 0))
	}
}

// tcpOf returns the TCP connection that c is, or that c wraps with its own Close.
func tcpOf(c io.ReadWriteCloser) (*net.TCPConn, bool) {
	if held, ok := c.(interface{ TCP() *net.TCPConn }); ok {
		tcp := held.TCP()
		return tcp, tcp != nil
	}
	tcp, ok := c.(*net.TCPConn)
	return tcp, ok
}

// wasReset reports whether a connection whose other direction still runs was reset, although its end looked regular.
func wasReset(c io.ReadWriteCloser) bool {
	tcp, ok := tcpOf(c)
	return ok && cutoff.WasReset(tcp)
}

// counter counts written bytes.
type counter struct {
	w io.Writer
	n *atomic.Int64
}

func (c counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// onlyReader hides the other methods of a reader.
type onlyReader struct{ io.Reader }

// tunnels tracks the open tunnels, since http.Server forgets hijacked connections.
type tunnels struct {
	mu      sync.Mutex
	open    map[*tunnel]struct{}
	of      map[admission.User]int // number of each user
	named   []uint32               // users whom allTunnels does not limit
	closing bool
	running sync.WaitGroup // Add only while not closing, so that Wait is safe afterwards
}

func newTunnels(named []uint32) *tunnels {
	return &tunnels{named: named, open: map[*tunnel]struct{}{}, of: map[admission.User]int{}}
}

// add registers a tunnel to origin, unless no more are accepted.
func (ts *tunnels) add(origin io.ReadWriteCloser, link string, by *client) (*tunnel, *failure) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if f := ts.refusal(by.user); f != nil {
		return nil, f
	}
	t := &tunnel{origin: origin, link: link, by: by}
	t.cut, t.reset = context.WithCancel(context.Background())
	ts.open[t] = struct{}{}
	ts.of[by.user]++
	ts.running.Add(1)
	return t, nil
}

// room returns why a user may not have one more tunnel, nil if it may. It is called before anything is dialed for the
// tunnel.
func (ts *tunnels) room(u admission.User) *failure {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.refusal(u)
}

func (ts *tunnels) refusal(u admission.User) *failure {
	switch {
	case ts.closing:
		return full("Tributary is shutting down. Try again later.")
	case u != admission.Unknown && ts.of[u] >= maxTunnels, ts.of[u] >= maxUnknownTunnels:
		return full("This user has too many tunnels open. Close some and try again.")
	case len(ts.open) >= allTunnels && !(u.Known() && slices.Contains(ts.named, uint32(u.UID))):
		return full("Too many tunnels are open. Try again later.")
	}
	return nil
}

// remove forgets a tunnel that has ended.
func (ts *tunnels) remove(t *tunnel) {
	t.reset()
	ts.mu.Lock()
	delete(ts.open, t)
	if ts.of[t.by.user]--; ts.of[t.by.user] == 0 {
		delete(ts.of, t.by.user)
	}
	ts.mu.Unlock()
	ts.running.Done()
}

// cut resets the tunnels for which which returns true.
func (ts *tunnels) cut(which func(*tunnel) bool) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for t := range ts.open {
		if which(t) {
			t.reset()
		}
	}
}

// clients returns the clients of the open tunnels.
func (ts *tunnels) clients() (all []*client) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for t := range ts.open {
		all = append(all, t.by)
	}
	return all
}

// close accepts no more tunnels; the channel is closed when all have ended.
func (ts *tunnels) close() <-chan struct{} {
	ts.mu.Lock()
	ts.closing = true
	ts.mu.Unlock()
	gone := make(chan struct{})
	go func() {
		ts.running.Wait()
		close(gone)
	}()
	return gone
}

func (ts *tunnels) count() int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return len(ts.open)
}
