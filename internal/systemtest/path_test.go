package systemtest

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
)

// path is the path of one link: to one node of the origin, with its own faults. With only addr set, it lets everything through.
type path struct {
	name string

	mu      sync.Mutex
	addr    string // destination of every connection over this link
	secure  string // destination of connections to port 443, if not ""
	refused bool   // connections are refused
	reset   bool   // connections are reset as soon as they are open
	most    int    // connections beyond this number are reset; 0 = no limit
	shut    chan struct{}
	conns   map[*gated]bool // open connections; true = with a request
	busiest int             // maximum number of concurrent connections with a request
	dials   int
}

func (p *path) set(change func(p *path)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

// silence blocks all bytes in both directions until speak. Connections stay open, and new ones hang.
func (p *path) silence() {
	p.set(func(p *path) {
		if p.shut == nil {
			p.shut = make(chan struct{})
		}
	})
}

func (p *path) speak() {
	p.set(func(p *path) {
		if p.shut != nil {
			close(p.shut)
			p.shut = nil
		}
	})
}

// resetAll resets the connections that are open now.
func (p *path) resetAll() {
	p.set(func(p *path) {
		for c := range p.conns {
			_ = c.SetLinger(0) // a closed connection needs no reset
			_ = c.TCPConn.Close()
		}
	})
}

func (p *path) dialed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dials
}

// asks records that a connection carries a request.
func (p *path) asks(c *gated) {
	p.set(func(p *path) {
		if asked, open := p.conns[c]; asked || !open {
			return
		}
		p.conns[c] = true
		n := 0
		for _, asked := range p.conns {
			if asked {
				n++
			}
		}
		p.busiest = max(p.busiest, n)
	})
}

// inUse returns the maximum number of concurrent connections with a request. The origin would count more: on a busy machine, it
// notices late that a connection was closed.
func (p *path) inUse() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busiest
}

// pass waits until the path lets bytes through.
func (p *path) pass(gone <-chan struct{}) error {
	for {
		p.mu.Lock()
		shut := p.shut
		p.mu.Unlock()
		if shut == nil {
			return nil
		}
		select {
		case <-shut:
		case <-gone:
			return net.ErrClosed
		}
	}
}

func (p *path) dial(ctx context.Context, network, to string) (net.Conn, error) {
	p.mu.Lock()
	p.dials++
	addr, refused, reset := p.addr, p.refused, p.reset || p.most > 0 && len(p.conns) >= p.most
	if p.secure != "" && strings.HasSuffix(to, ":443") {
		addr = p.secure
	}
	p.mu.Unlock()
	if refused {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
	if err := p.pass(ctx.Done()); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ETIMEDOUT)}
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &gated{TCPConn: nc.(*net.TCPConn), p: p, gone: make(chan struct{})}
	_ = c.SetReadBuffer(128 << 10) // limits the unread bytes of a slow client
	if reset {
		_ = c.SetLinger(0)
		_ = c.TCPConn.Close()
	}
	p.mu.Lock()
	p.conns[c] = false
	p.mu.Unlock()
	return c, nil
}

// gated is a connection over a path.
type gated struct {
	*net.TCPConn
	p    *path
	once sync.Once
	gone chan struct{}
}

func (c *gated) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if perr := c.p.pass(c.gone); perr != nil {
		return 0, perr
	}
	return n, err
}

func (c *gated) Write(b []byte) (int, error) {
	if err := c.p.pass(c.gone); err != nil {
		return 0, err
	}
	c.p.asks(c)
	return c.TCPConn.Write(b)
}

func (c *gated) Close() error {
	c.once.Do(func() {
		close(c.gone)
		c.p.mu.Lock()
		delete(c.p.conns, c)
		c.p.mu.Unlock()
	})
	return c.TCPConn.Close()
}

// Without these, io.Copy would bypass the gate.
func (c *gated) ReadFrom(r io.Reader) (int64, error) { return io.Copy(struct{ io.Writer }{c}, r) }
func (c *gated) WriteTo(w io.Writer) (int64, error)  { return io.Copy(w, struct{ io.Reader }{c}) }
