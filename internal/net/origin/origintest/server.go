package origintest

import (
	"bufio"
	"fmt"
	"net"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Server is a running origin.
type Server struct {
	t         testing.TB
	object    Object
	faults    []Fault
	listeners []net.Listener
	stop      chan struct{} // closed by Close
	close     sync.Once
	running   sync.WaitGroup
	sent      []atomic.Int64 // body bytes, per node

	mu       sync.Mutex
	requests []*Request
	targets  map[string]int
	conns    map[*serverConn]bool
	accepted int
	stopped  bool
}

// New starts a server of o with two nodes on loopback addresses of their own; the test's cleanup closes it.
func New(t testing.TB, o Object, faults ...Fault) *Server {
	t.Helper()
	s := &Server{
		t:       t,
		object:  o.Defaults(),
		faults:  faults,
		stop:    make(chan struct{}),
		sent:    make([]atomic.Int64, 2),
		targets: map[string]int{},
		conns:   map[*serverConn]bool{},
	}
	for node := range s.sent {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", node+1))
		if err != nil { // not every system has all of 127.0.0.0/8
			l, err = net.Listen("tcp", "127.0.0.1:0")
		}
		if err != nil {
			t.Fatalf("origintest: %v", err)
		}
		s.listeners = append(s.listeners, l)
	}
	for node, l := range s.listeners {
		s.running.Go(func() { s.accept(node, l) })
	}
	t.Cleanup(s.Close)
	return s
}

// Object returns the object as it is without faults, defaults filled in.
func (s *Server) Object() Object { return s.object }

// Addr returns the "host:port" of a node, 0 or 1.
func (s *Server) Addr(node int) string { return s.listeners[node].Addr().String() }

// URL returns the address of the object at node 0.
func (s *Server) URL() string { return "http://" + s.Addr(0) + "/object" }

// Requests returns the requests so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Request, 0, len(s.requests))
	for _, r := range s.requests {
		all = append(all, *r)
	}
	return all
}

// Accepted returns the number of connections so far.
func (s *Server) Accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// Sent returns the number of body bytes that a node has handed to the kernel.
func (s *Server) Sent(node int) int64 { return s.sent[node].Load() }

// CloseConns ends the connections that are open now, as a node that restarts does.
func (s *Server) CloseConns() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.Close()
	}
}

// Close ends the server and waits for its goroutines; the test fails if one does not end.
func (s *Server) Close() {
	s.close.Do(func() {
		close(s.stop)
		for _, l := range s.listeners {
			l.Close()
		}
		s.mu.Lock()
		s.stopped = true
		s.mu.Unlock()
		s.CloseConns()
		done := make(chan struct{})
		go func() { s.running.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			var b strings.Builder
			_ = pprof.Lookup("goroutine").WriteTo(&b, 1)
			s.t.Errorf("origintest: goroutines of the server are left:\n%s", b.String())
		}
	})
}

func (s *Server) accept(node int, l net.Listener) {
	for {
		nc, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.accepted++
		c := &serverConn{
			s:      s,
			node:   node,
			number: s.accepted,
			Conn:   nc,
			in:     make(chan *Request, 64),
			gone:   make(chan struct{}),
		}
		s.conns[c] = true
		stopped := s.stopped
		s.mu.Unlock()
		if stopped {
			nc.Close()
		}
		s.running.Go(c.read)
		s.running.Go(func() {
			c.serve()
			nc.Close()
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
		})
	}
}

// serverConn is one connection: read accepts requests ahead of serve, so that pipelining and a close by the client are
// noticed while an answer is under way.
type serverConn struct {
	net.Conn
	s      *Server
	node   int
	number int
	in     chan *Request // closed after the last request
	gone   chan struct{} // closed when the client has closed
	open   atomic.Int64  // requests received and not yet answered
}

func (c *serverConn) read() {
	defer close(c.gone)
	defer close(c.in)
	br := bufio.NewReader(c.Conn)
	for seq := 1; ; seq++ {
		r, err := readRequest(br)
		if err != nil {
			return
		}
		r.Node, r.Conn, r.Seq = c.node, c.number, seq
		r.Pipelined = c.open.Add(1) > 1
		r.Local, r.Remote = c.LocalAddr().String(), c.RemoteAddr().String()
		c.s.record(r)
		select {
		case c.in <- r:
		case <-c.s.stop:
			return
		}
	}
}

// record numbers a request and stores it.
func (s *Server) record(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	s.targets[r.Target]++
	r.N, r.Nth = len(s.requests), s.targets[r.Target]
	for i := range s.sent {
		r.Sent += s.sent[i].Load()
	}
}

func (c *serverConn) serve() {
	for r := range c.in {
		x := c.s.exchange(r)
		if x.Silent {
			continue // it stays outstanding
		}
		if x.Swap {
			next, ok := <-c.in
			if !ok || !c.send(c.s.exchange(next)) {
				break
			}
		}
		if !c.send(x) {
			break
		}
	}
	// Staged close (RFC 9112 section 9.6): unread bytes from the client must not cause a reset that destroys the last
	// answer.
	if tc, ok := c.Conn.(*net.TCPConn); ok && tc.CloseWrite() == nil {
		for range c.in { // until the client closes, or Close
		}
	}
}

// exchange plans the answer to a request.
func (s *Server) exchange(r *Request) *Exchange {
	x := &Exchange{Request: r, Object: s.object}
	for _, f := range s.faults {
		f(x)
	}
	return x
}

// send sends one answer. It reports whether the connection stays open.
func (c *serverConn) send(x *Exchange) bool {
	p := x.answer()
	if !c.wait(x.Delay) {
		return false
	}
	if p.length == 0 && !p.chunked {
		c.open.Add(-1)
	}
	if _, err := c.Write(p.head); err != nil {
		return false
	}
	started := time.Now()
	buf := make([]byte, 32<<10)
	for off := int64(0); off < p.length; {
		n := min(int64(len(buf)), p.length-off)
		if x.Rate > 0 {
			n = min(n, max(x.Rate/100, 512)) // about 10 ms each
		}
		if x.Reset && off <= x.ResetAt {
			n = min(n, x.ResetAt-off)
		}
		if x.Stall && off <= x.StallAt {
			n = min(n, x.StallAt-off)
		}
		switch {
		case n > 0:
		case x.Reset && off == x.ResetAt:
			c.reset()
			return false
		default:
			if !c.stalled(x) {
				return false
			}
			continue
		}
		b := buf[:n]
		if p.literal != nil {
			copy(b, p.literal[min(off, int64(len(p.literal))):])
		} else {
			p.object.fill(b, p.from+off)
		}
		off += n
		// Before the write: a client that has read the whole answer sends a request that is not pipelined.
		if off == p.length && !p.chunked {
			c.open.Add(-1)
		}
		if err := c.writeBody(b, p.chunked); err != nil {
			return false
		}
		if x.Rate > 0 {
			due := time.Duration(float64(off) / float64(x.Rate) * float64(time.Second))
			if !c.wait(due - time.Since(started)) {
				return false
			}
		}
	}
	if x.Reset && x.ResetAt >= p.length {
		c.reset()
		return false
	}
	if p.chunked && x.Short == 0 {
		c.open.Add(-1)
		if _, err := c.Write([]byte("0\r\n\r\n")); err != nil {
			return false
		}
	}
	return !p.end
}

func (c *serverConn) writeBody(b []byte, chunked bool) error {
	c.s.sent[c.node].Add(int64(len(b)))
	if !chunked {
		_, err := c.Write(b)
		return err
	}
	chunk := append(fmt.Appendf(nil, "%x\r\n", len(b)), b...)
	_, err := c.Write(append(chunk, "\r\n"...))
	return err
}

// stalled waits for the end of a stall and reports whether the connection stays open.
func (c *serverConn) stalled(x *Exchange) bool {
	select {
	case <-x.Until:
		x.Stall = false
		return true
	case <-c.gone:
	case <-c.s.stop:
	}
	return false
}

// wait waits for d and reports whether the connection stays open.
func (c *serverConn) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-c.gone:
	case <-c.s.stop:
	}
	return false
}

// reset ends the connection with RST in place of FIN.
func (c *serverConn) reset() {
	if tc, ok := c.Conn.(*net.TCPConn); ok {
		_ = tc.SetLinger(0) // not needed if the connection is already closed
	}
	c.Close()
}
