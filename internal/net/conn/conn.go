// Package conn has the type of a connection over a link, between the dial and whoever uses it.
//
// Whatever limits or counts the bytes of a connection is a [Gate]. Whatever must know that it closes is a hook. Every
// byte passes the gates, since a Conn has no method that avoids them: [Conn.TCP] hands the socket out for splicing only
// if there are none. What cannot pass a gate is refused, so nothing is carried uncounted.
package conn

import (
	"errors"
	"net"
	"sync"
	"syscall"
)

// Conn is a connection over a link. Gates are added before it is shared. Otherwise it is as safe for concurrent use as
// any net.Conn.
type Conn struct {
	net.Conn // as dialed
	gates    []Gate

	mu            sync.Mutex
	closed        bool
	before, after []func()
}

// Gate sees the bytes of a connection. Reads and writes may call it at the same time.
type Gate interface {
	// Pass waits until bytes may be read, or written, and returns how many of n may be at once, at least one.
	Pass(write bool, n int) (int, error)
	// Moved is called with the number of bytes that were read and written.
	Moved(read, written int)
}

// Counter is a Gate that lets everything pass.
type Counter func(read, written int)

// Pass implements Gate.
func (Counter) Pass(_ bool, n int) (int, error) { return n, nil }

// Moved implements Gate.
func (c Counter) Moved(read, written int) { c(read, written) }

// Of returns c if it is a Conn already, or a Conn over c.
func Of(c net.Conn) *Conn {
	if is, ok := c.(*Conn); ok {
		return is
	}
	return &Conn{Conn: c}
}

// Through makes all bytes pass a gate.
func (c *Conn) Through(g Gate) { c.gates = append(c.gates, g) }

// BeforeClose makes Close call f once, while the connection is still open. After Close, f is called at once.
func (c *Conn) BeforeClose(f func()) { c.hook(&c.before, f) }

// AfterClose makes Close call f once, when the connection is closed. After Close, f is called at once.
func (c *Conn) AfterClose(f func()) { c.hook(&c.after, f) }

func (c *Conn) hook(at *[]func(), f func()) {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		*at = append(*at, f)
	}
	c.mu.Unlock()
	if closed {
		f()
	}
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.mu.Lock()
	before, after := c.before, c.after
	c.closed, c.before, c.after = true, nil, nil
	c.mu.Unlock()
	for _, f := range before {
		f()
	}
	err := c.Conn.Close()
	for _, f := range after {
		f()
	}
	return err
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (n int, err error) {
	most := len(p)
	for _, g := range c.gates {
		if most, err = g.Pass(false, most); err != nil {
			return 0, err
		}
	}
	n, err = c.Conn.Read(p[:most])
	for _, g := range c.gates {
		g.Moved(n, 0)
	}
	return n, err
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (written int, err error) {
	if len(c.gates) == 0 {
		return c.Conn.Write(p)
	}
	for written < len(p) && err == nil {
		n := len(p) - written
		for _, g := range c.gates {
			if n, err = g.Pass(true, n); err != nil {
				return written, err
			}
		}
		n, err = c.Conn.Write(p[written : written+n])
		for _, g := range c.gates {
			g.Moved(0, n)
		}
		written += n
	}
	return written, err
}

// TCP returns the TCP connection below if its bytes may move without this program seeing them (splice), nil if not. It
// must be closed by c.Close.
func (c *Conn) TCP() *net.TCPConn {
	if len(c.gates) > 0 {
		return nil
	}
	tcp, _ := c.Conn.(*net.TCPConn)
	return tcp
}

// socket lists the methods of a TCP connection that need its socket.
type socket interface {
	SyscallConn() (syscall.RawConn, error)
	SetKeepAliveConfig(cfg net.KeepAliveConfig) error
	SetLinger(seconds int) error
}

// HasSocket reports whether the kernel knows the connection.
func (c *Conn) HasSocket() bool { _, ok := c.Conn.(socket); return ok }

// SyscallConn implements syscall.Conn. Without a socket its error is errors.ErrUnsupported, as that of the methods
// below.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if s, ok := c.Conn.(socket); ok {
		return s.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// SetKeepAliveConfig is that of net.TCPConn.
func (c *Conn) SetKeepAliveConfig(cfg net.KeepAliveConfig) error {
	if s, ok := c.Conn.(socket); ok {
		return s.SetKeepAliveConfig(cfg)
	}
	return errors.ErrUnsupported
}

// SetLinger is that of net.TCPConn.
func (c *Conn) SetLinger(seconds int) error {
	if s, ok := c.Conn.(socket); ok {
		return s.SetLinger(seconds)
	}
	return errors.ErrUnsupported
}

// CloseWrite ends writing.
func (c *Conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return errors.ErrUnsupported
}
