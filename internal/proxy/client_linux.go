package proxy

import (
	"net"

	"golang.org/x/sys/unix"
)

// unsent is how many bytes the kernel buffers for a client beyond those on their way. Without a bound it buffers some megabytes
// for each client that reads slowly, outside of any budget.
const unsent = 128 << 10

// boundUnsent bounds the bytes that wait in the kernel for a client (tcp(7), TCP_NOTSENT_LOWAT).
func boundUnsent(c net.Conn) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return
	}
	// If the kernel does not know the option, nothing changes.
	_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsent) })
}
