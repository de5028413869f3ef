package netlab

import (
	"fmt"
	"time"
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

// rawIO is read or write on a descriptor that never blocks, without the detour through Go's scheduler, which would cost
// more than the call.
func rawIO(trap uintptr, fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	return int(n), errno
}

// rawPoll is ppoll without the detour through Go's scheduler: the calling goroutine keeps its P. EINTR is among the
// errors.
func rawPoll(fds []unix.PollFd, wait time.Duration) unix.Errno {
	timeout := unix.NsecToTimespec(int64(wait))
	_, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(fds))), uintptr(len(fds)),
		uintptr(unsafe.Pointer(&timeout)), 0, 0, 0)
	return errno
}
