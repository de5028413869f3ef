package origin

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// waiting reports whether a byte, the end of the stream or an error is pending in the socket. It does not block, even
// during a read in another goroutine. It returns an error if the connection cannot be inspected.
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

// inlet reports how many bytes wait in a socket, without allocating on each call.
type inlet struct {
	raw  syscall.RawConn // nil = the socket cannot be inspected
	n    *int
	look func(fd uintptr)
}

func newInlet(nc net.Conn) inlet {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return inlet{}
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return inlet{}
	}
	n := new(int)
	return inlet{raw, n, func(fd uintptr) { *n, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ) }}
}

// waiting returns how many bytes wait to be read, 0 if that is not known.
func (i inlet) waiting() int {
	if i.raw == nil || i.raw.Control(i.look) != nil {
		return 0
	}
	return *i.n
}
