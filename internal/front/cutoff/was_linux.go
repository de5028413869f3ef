package cutoff

import (
	"net"

	"golang.org/x/sys/unix"
)

// tcpClose is the state of a TCP connection that is over (include/net/tcp_states.h).
const tcpClose = 7

// WasReset reports whether the peer of c has reset it. The kernel reports that once, to whatever call comes first, and
// the end of the stream to all later ones. After CloseWrite the answer means nothing: a connection that both sides
// ended is over, too.
func WasReset(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	over := false
	_ = raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		over = err == nil && info.State == tcpClose
	})
	return over
}
