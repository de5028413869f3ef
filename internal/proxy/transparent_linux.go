package proxy

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// speaksHTTP reports whether the client begins with an HTTP request within a time. It only peeks: the bytes stay in the kernel,
// so that the connection can be read from its beginning.
func speaksHTTP(c *net.TCPConn, within time.Duration) bool {
	raw, err := c.SyscallConn()
	if err != nil || c.SetReadDeadline(time.Now().Add(within)) != nil {
		return false
	}
	var b [longestMethod + 2]byte
	v := unclear
	// The netpoller reports each arrival once, so a look at too little waits for more.
	_ = raw.Read(func(fd uintptr) bool {
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			return false
		case err != nil || n == 0: // an end without a byte passes through as one
			v = isOther
		default:
			v = judge(b[:n])
		}
		return v != unclear
	})
	_ = c.SetReadDeadline(time.Time{})
	return v == isHTTP
}
