package link

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// lastReceived returns how long ago a connection received data, or was made (tcpi_last_data_recv).
func lastReceived(tcp *net.TCPConn) (time.Duration, bool) {
	rc, err := tcp.SyscallConn()
	if err != nil {
		return 0, false
	}
	var info *unix.TCPInfo
	var failed error
	err = rc.Control(func(fd uintptr) { info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err != nil || failed != nil {
		return 0, false
	}
	return time.Duration(info.Last_data_recv) * time.Millisecond, true
}
