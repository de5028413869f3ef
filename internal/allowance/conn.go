package allowance

import (
	"io"
	"net"
	"sync"
	"syscall"
)

// tcpConn is what others use of a TCP connection.
type tcpConn interface {
	net.Conn
	CloseWrite() error
	SetKeepAliveConfig(net.KeepAliveConfig) error
	SetLinger(sec int) error
	SyscallConn() (syscall.RawConn, error)
}

// conn is a TCP connection whose bytes are counted.
type conn struct {
	tcpConn
	book    *Book
	account *account
	closed  chan struct{}
	once    sync.Once
}

// largest is the most bytes that are read or written at a time: what connections have under way when an account runs empty
// is beyond it.
const largest = 32 << 10

// part waits for something to spend and does what do does with so much of p.
func (c *conn) part(p []byte, do func([]byte) (int, error)) (int, error) {
	most, err := c.book.wait(c.account, c.closed)
	if err != nil {
		return 0, err
	}
	n, err := do(p[:min(int64(len(p)), max(1, min(most, largest)*100/overhead))])
	c.book.count(c.account, n)
	return n, err
}

func (c *conn) Read(p []byte) (int, error) { return c.part(p, c.tcpConn.Read) }

func (c *conn) Write(p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		var n int
		n, err = c.part(p[written:], c.tcpConn.Write)
		written += n
	}
	return written, err
}

func (c *conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.tcpConn.Close()
}

var _ io.ReadWriteCloser = (*conn)(nil) // without ReadFrom and WriteTo, which would go around the count
