package admission

import (
	"net"

	"golang.org/x/sys/unix"
)

// BoundUnsent bounds the bytes that wait in the kernel for a client (tcp(7), TCP_NOTSENT_LOWAT); 0 = the system's
// default.
func BoundUnsent(c net.Conn, n int) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	// If the kernel does not know the option, nothing changes.
	_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, n) })
}
