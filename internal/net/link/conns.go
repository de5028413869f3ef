package link

import (
	"net"
	"sync"
	"time"
	"weak"
)

// Conns tracks the open connections over each link, whatever they are used for, and asks the kernel when something last
// arrived over the link. This costs the connections nothing: they are referenced weakly, need not be wrapped, and can
// be spliced. The zero value is empty. Safe for concurrent use.
type Conns struct {
	mu   sync.Mutex
	over map[string]*open // by name of the link
}

// open is the connections over one link, including some that have closed.
type open struct {
	conns []weak.Pointer[net.TCPConn]
	most  int // number of conns beyond which closed ones are dropped
}

// fewConns is how many connections of a link are kept before closed ones are looked for.
const fewConns = 64

// Add adds a connection over a link. It ignores connections other than *net.TCPConn, and those to a host near the link,
// whose data says nothing about the path to the internet.
func (c *Conns) Add(l Link, nc net.Conn) {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return
	}
	if to, ok := tcp.RemoteAddr().(*net.TCPAddr); ok && l.Near(to.AddrPort().Addr()) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil {
		c.over = map[string]*open{}
	}
	o := c.over[l.Name]
	if o == nil {
		o = &open{most: fewConns}
		c.over[l.Name] = o
	}
	o.conns = append(o.conns, weak.Make(tcp))
	if len(o.conns) > o.most {
		o.forget()
	}
}

// forget drops connections that have closed.
func (o *open) forget() {
	kept := o.conns[:0]
	for _, w := range o.conns {
		if tcp := w.Value(); tcp != nil && isOpen(tcp) {
			kept = append(kept, w)
		}
	}
	clear(o.conns[len(kept):])
	o.conns = kept
	o.most = max(fewConns, 2*len(kept))
}

// isOpen reports whether a connection has not been closed at this end.
func isOpen(tcp *net.TCPConn) bool {
	rc, err := tcp.SyscallConn()
	return err == nil && rc.Control(func(uintptr) {}) == nil
}

// Heard reports whether the other end of a connection over the named link sent something within the last d. It asks the
// kernel about one connection after another, in about a microsecond each.
func (c *Conns) Heard(name string, d time.Duration) bool {
	c.mu.Lock()
	var conns []weak.Pointer[net.TCPConn]
	if o := c.over[name]; o != nil {
		conns = append(conns, o.conns...)
	}
	c.mu.Unlock()
	for _, w := range conns {
		if tcp := w.Value(); tcp != nil {
			if ago, ok := lastReceived(tcp); ok && ago < d {
				return true
			}
		}
	}
	return false
}
