package transport

import (
	"net"
	"syscall"
)

// Count makes connections opened from now on report to f the bytes that they read from and write to their sockets, with the
// name of the link. f is called from any goroutine, after each read and write, and must not block.
func (t *Transport) Count(f func(link string, read, written int)) { t.count.Store(&f) }

// counted returns a connection over a link, with its bytes counted if Count was called.
func (t *Transport) counted(c net.Conn, link string) net.Conn {
	f := t.count.Load()
	tcp, ok := c.(tcpConn)
	if f == nil || !ok {
		return c
	}
	return &countedConn{tcpConn: tcp, link: link, count: *f}
}

// tcpConn lists the methods of a TCP connection that other packages use.
type tcpConn interface {
	net.Conn
	CloseWrite() error
	SetKeepAliveConfig(net.KeepAliveConfig) error
	SetLinger(sec int) error
	SyscallConn() (syscall.RawConn, error)
}

// countedConn has neither ReadFrom nor WriteTo, which would bypass the count.
type countedConn struct {
	tcpConn
	link  string
	count func(link string, read, written int)
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.tcpConn.Read(p)
	c.count(c.link, n, 0)
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.tcpConn.Write(p)
	c.count(c.link, 0, n)
	return n, err
}
