package proxy

import (
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// maxLooks bounds how often the same first bytes are looked at: a client may send them one by one.
const maxLooks = 64

// peek looks at the first bytes of a connection, as they arrive, until look returns true, time is up, or b is full.
// They stay in the kernel, so that the connection can be read from its beginning. look is not called for a connection
// that ends without a byte.
func peek(c *net.TCPConn, b []byte, within time.Duration, look func(first []byte) bool) {
	raw, err := c.SyscallConn()
	if err != nil || c.SetReadDeadline(time.Now().Add(within)) != nil {
		return
	}
	looks := 0
	// The netpoller reports each arrival once, so a look at too few bytes waits for more.
	_ = raw.Read(func(fd uintptr) bool {
		n, _, err := unix.Recvfrom(int(fd), b, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		if err == unix.EAGAIN || err == unix.EINTR {
			return false
		}
		looks++
		return err != nil || n == 0 || look(b[:n]) || n == len(b) || looks == maxLooks
	})
	_ = c.SetReadDeadline(time.Time{})
}

// sniff classifies what a client sends within a time, after the bytes that were read; unclear if it sends too little.
func sniff(c *net.TCPConn, read []byte, within time.Duration) verdict {
	v := judge(read)
	if v != unclear {
		return v
	}
	var b [longestMethod + 2]byte
	peek(c, b[:], within, func(next []byte) bool {
		v = judge(slices.Concat(read, next))
		return v != unclear
	})
	return v
}

// serverName returns the name of the server that the client names in its ClientHello, "" if it names none within a
// time.
func serverName(c *net.TCPConn, within time.Duration) (name string) {
	peek(c, make([]byte, maxHello), within, func(first []byte) bool {
		whole, possible := wholeHello(first)
		if whole {
			name = helloName(first)
		}
		return !possible
	})
	return name
}
