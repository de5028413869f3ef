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

// inlet reports how much waits in a socket, without an allocation for each look.
type inlet struct {
	raw  syscall.RawConn // nil = it cannot be looked into
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
