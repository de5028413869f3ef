package lab

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openTUN creates a TUN device in the namespace of the calling thread. It vanishes when the descriptor is closed.
func openTUN(name string) (int, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open /dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq(name)
	if err == nil {
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("create TUN device %s: %w", name, err)
	}
	return fd, nil
}

// rawIO is read or write on a descriptor that never blocks.
func rawIO(trap uintptr, fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return int(n), errno
}
