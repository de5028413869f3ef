package inbound

import (
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/host/peer"
)

// Bounds on the time between two questions whether a client has left.
const (
	firstLook = 10 * time.Millisecond
	lastLook  = time.Second
)

// left waits until a client that sends no more has left, or the connection's read deadline, and returns the error of
// the read that waits for it. A client that ends its sending side and one that closes its socket look alike here, until
// something is sent to them: then the latter answers with a reset. Within this machine, the kernel knows whether a
// program still holds the socket.
func (c *Conn) left() error {
	abandoned := c.abandoned()
	nc := c.Conn
	for {
		over, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		nc = over.NetConn()
	}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return io.EOF
	}
	raw, err := sc.SyscallConn()
	if err != nil || abandoned() {
		return io.EOF
	}
	var looking sync.WaitGroup
	defer looking.Wait()
	done := make(chan struct{})
	defer close(done)
	looking.Go(func() {
		for wait := firstLook; ; wait = min(2*wait, lastLook) {
			select {
			case <-time.After(wait):
			case <-done:
				return
			}
			if abandoned() {
				_ = nc.SetReadDeadline(time.Unix(1, 0)) // nobody needs the connection any more
				return
			}
		}
	})
	if err := raw.Read(hungUp); err != nil {
		return err
	}
	return io.EOF
}

// hungUp reports whether a connection is over in both directions, such as after a reset.
func hungUp(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd)}}
	n, err := unix.Poll(p, 0)
	return err == nil && n > 0
}

// abandoned returns a function that reports whether the client is on this machine, and no program holds its end any
// more.
func (c *Conn) abandoned() func() bool {
	var local, remote netip.AddrPort
	if c.ends != nil {
		local, remote = c.ends(c.Conn)
	}
	if !remote.IsValid() {
		l, ok1 := c.LocalAddr().(*net.TCPAddr)
		r, ok2 := c.RemoteAddr().(*net.TCPAddr)
		if !ok1 || !ok2 {
			return func() bool { return false }
		}
		local, remote = l.AddrPort(), r.AddrPort()
	}
	return func() bool { return peer.Abandoned(local, remote) }
}
