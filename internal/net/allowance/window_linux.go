package allowance

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// margin is how many bytes the receive buffers of an account may grow by until the keeper looks again, which it
	// does with each lease. The kernel sizes a buffer by the bytes read in a round trip: in Linux 6.18 it is at most 32
	// times that, when a connection has read its first window.
	margin = 64 * lease
	// newcomer is the assumed size of the buffer of a connection that look has not measured yet.
	newcomer = 1 << 20
	// leastBuffer is the smallest receive buffer: half of it is advertised as the window.
	leastBuffer = 64 << 10
	// quiet is how long a connection must be silent before nothing is assumed to be in flight to it.
	quiet = 10 * time.Second
)

// buffer returns the SO_RCVBUF of a new connection. The kernel doubles it.
func (a *account) buffer() int { return int(max(leastBuffer, a.free()/64) / 2) }

// join adds a connection, before any request is sent on it.
func (a *account) join(c *counted) {
	a.conns[c] = struct{}{}
	if a.near {
		a.reserve(c)
		return
	}
	if a.windows += newcomer; a.closing() {
		a.look()
	}
}

// closing reports whether the buffers might outgrow the remaining allowance before the next look.
func (a *account) closing() bool { return a.rest() <= margin+2*a.windows }

// look measures the buffers of the connections. Near the limit it fixes and reserves them; far from it the kernel sizes
// them.
func (a *account) look() {
	a.windows = 0
	for c := range a.conns {
		a.windows += c.receiveBuffer()
	}
	near := a.closing()
	if near == a.near {
		return
	}
	a.near = near
	for c := range a.conns {
		if near {
			a.reserve(c)
		} else {
			a.release(c)
		}
	}
}

// reserve fixes a connection's receive buffer and reserves the bytes that it may receive: the data in the buffer and
// the advertised window together never exceed the buffer. Bytes being read or written are not counted yet.
func (a *account) reserve(c *counted) {
	c.buffer = c.receiveBuffer()
	c.control(func(fd int) error {
		err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK, unix.SOCK_RCVBUF_LOCK)
		if err != nil { // before Linux 5.14; larger buffers shrink to the system's maximum
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, int(c.buffer/2))
		}
		return err
	})
	c.hold = cost(c.buffer + 2*c.part())
	a.held += c.hold
}

// release lets the kernel size a connection's receive buffer again.
func (a *account) release(c *counted) {
	c.control(func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK, 0) })
	a.held -= c.hold
	c.buffer, c.hold = 0, 0
}

// receiveBuffer returns the size of the receive buffer, 0 if the connection is closed.
func (c *counted) receiveBuffer() (n int64) {
	c.control(func(fd int) error {
		size, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		n = int64(size)
		return err
	})
	return n
}

// TCP states in which the peer can send.
const (
	established = 1
	finWait1    = 4
	finWait2    = 5
)

// owed returns how many bytes the connection received but did not read, plus those that it may still receive if it is
// closed now.
func (c *counted) owed() (n int64) {
	c.control(func(fd int) error {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err != nil {
			return err
		}
		size, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		n = owed(info, c.read, c.asked, int64(size))
		return err
	})
	return n
}

// owed is the same for a connection that has read this many bytes and has a receive buffer of this size. The window
// counts only if the peer may be sending: it has not ended its side, has something to answer or spoke first, and one
// side spoke a moment ago.
func owed(info *unix.TCPInfo, read int64, asked bool, buffer int64) int64 {
	unread := max(0, int64(info.Bytes_received)-read)
	open := info.State == established || info.State == finWait1 || info.State == finWait2
	silent := time.Duration(min(info.Last_data_recv, info.Last_data_sent)) * time.Millisecond
	switch {
	case !open, !asked && info.Bytes_received == 0, silent >= quiet:
		return unread
	case info.Rcv_wnd == 0: // Linux before 6.2, or the window is closed
		return max(unread, buffer)
	}
	return unread + int64(info.Rcv_wnd)
}

// control calls f with the connection's descriptor. It ignores errors: they mean that the connection is closed.
func (c *counted) control(f func(fd int) error) {
	raw, err := c.conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { _ = f(int(fd)) })
}
