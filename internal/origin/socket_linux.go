package origin

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// waiting reports whether a byte, the end or an error waits in the socket. It does not block, and a read in another
// goroutine does not block it. The error says that this connection cannot be looked into.
func waiting(nc net.Conn) (bool, error) {
	waits := true
	err := control(nc, func(fd int) error {
		var b [1]byte
		_, _, err := unix.Recvfrom(fd, b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		waits = !errors.Is(err, unix.EAGAIN)
		return nil
	})
	return waits, err
}

// control calls f with the descriptor of nc.
func control(nc net.Conn, f func(fd int) error) error {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return errors.ErrUnsupported
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := rc.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}
