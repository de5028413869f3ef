package allowance

import (
	"io"
	"net"
	"sync"
	"syscall"
)

// tcpConn lists the methods of a TCP connection that other packages use.
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
	accounts *Accounts
	account  *account
	closed   chan struct{}
	once     sync.Once

	// mu of the Accounts guards these.
	read   int64 // bytes
	asked  bool  // something was written: there may be an answer
	buffer int64 // size of the receive buffer while it is fixed, otherwise 0
	hold   int64 // bytes reserved for the receive buffer
}

// largest is the maximum number of bytes read or written at once.
const largest = 32 << 10

// part returns how many bytes may be read or written at once. A read or write under way when an account runs empty exceeds the
// account by up to part, so part is included in the reservation.
func (c *conn) part() int64 {
	if c.buffer > 0 {
		return min(largest, c.buffer/4)
	}
	return largest
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.most(p)
	if err != nil {
		return 0, err
	}
	n, err = c.tcpConn.Read(p[:n])
	c.accounts.count(c, n, 0)
	return n, err
}

func (c *conn) Write(p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		var n int
		if n, err = c.most(p[written:]); err != nil {
			break
		}
		n, err = c.tcpConn.Write(p[written : written+n])
		c.accounts.count(c, 0, n)
		written += n
	}
	return written, err
}

// most waits until the account has something to spend, and returns how many bytes of p may be read or written.
func (c *conn) most(p []byte) (int, error) {
	n, err := c.accounts.wait(c)
	return int(min(int64(len(p)), max(1, n*100/overhead))), err
}

func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.accounts.leave(c)
	})
	return c.tcpConn.Close()
}

var _ io.ReadWriteCloser = (*conn)(nil) // without ReadFrom and WriteTo, which would bypass the count
