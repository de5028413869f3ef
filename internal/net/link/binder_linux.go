package link

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/core/health"
)

// Device binds sockets to the link's interface with SO_BINDTODEVICE: they send and receive there only. It needs no
// privilege on kernels >= 5.7, CAP_NET_RAW before. A socket of the zero Link is marked and not bound.
type Device struct {
	Mark func() uint32 // mark of sockets (SO_MARK), which needs CAP_NET_ADMIN; nil or 0 = none
}

// Control implements [Binder].
func (d Device) Control(l Link) func(network, address string, c syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		e := c.Control(func(fd uintptr) {
			if l.Name != "" {
				err = unix.BindToDevice(int(fd), l.Name)
			}
			if err != nil || d.Mark == nil {
				return
			}
			if mark := d.Mark(); mark != 0 {
				err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, int(mark))
			}
		})
		if e != nil {
			err = e
		}
		if err != nil {
			return &BindError{Link: l.Name, Err: err}
		}
		return nil
	}
}

// control is a function that a [net.Dialer] calls on a new socket.
type control = func(network, address string, c syscall.RawConn) error

// withUserTimeout adds TCP_USER_TIMEOUT to the control function of a Binder.
func withUserTimeout(bind control) control {
	return withOption(bind, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(health.GoneAfter.Milliseconds()))
}

// withBuffer adds SO_RCVBUF, which has to be set before the socket connects to bound the first window.
func withBuffer(bind control, n int) control {
	return withOption(bind, unix.SOL_SOCKET, unix.SO_RCVBUF, n)
}

// withOption adds an option to the control function of new TCP sockets.
func withOption(do control, level, option, value int) control {
	return func(network, address string, c syscall.RawConn) error {
		if err := do(network, address, c); err != nil || !strings.HasPrefix(network, "tcp") {
			return err
		}
		var err error
		if e := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, value) }); e != nil {
			err = e
		}
		return err
	}
}

// apartBuffer is the SO_RCVBUF of a socket whose first bytes nobody reads, in bytes: a few packets.
const apartBuffer = 8 << 10

// withApartBuffer makes the first window small, as for a context of [Apart]. The kernel may still widen the buffer when
// somebody reads. It does nothing before Linux 5.14, where a small buffer would stay small.
func withApartBuffer(do control) control {
	return func(network, address string, c syscall.RawConn) error {
		if err := do(network, address, c); err != nil {
			return err
		}
		return c.Control(func(fd uintptr) {
			if _, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BUF_LOCK); err != nil {
				return
			}
			if unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, apartBuffer) == nil {
				_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BUF_LOCK, 0)
			}
		})
	}
}
