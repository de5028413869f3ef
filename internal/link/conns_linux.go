package link

import (
	"math"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lastReceived returns how long ago a connection received data, or was made (tcpi_last_data_recv).
func lastReceived(tcp *net.TCPConn) (time.Duration, bool) {
	info, ok := tcpInfo(tcp)
	if !ok {
		return 0, false
	}
	return time.Duration(info.Last_data_recv) * time.Millisecond, true
}

// handshakeRTT returns the kernel's round-trip time of a connection that has carried no data, which is the time from SYN to
// SYN-ACK (tcpi_rtt); 0 if it is unknown.
func handshakeRTT(c net.Conn) time.Duration {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0
	}
	info, ok := tcpInfo(sc)
	if !ok {
		return 0
	}
	return time.Duration(info.Rtt) * time.Microsecond
}

// PathState asks the kernel for the state of a connection's path: the smoothed round trip under the present load, the shortest
// one so far, and how many packets came out of order (tcpi_rtt, tcpi_min_rtt, tcpi_rcv_ooopack).
func PathState(c net.Conn) (rtt, least time.Duration, disordered int64, ok bool) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0, 0, 0, false
	}
	info, ok := tcpInfo(sc)
	if !ok || info.Min_rtt == 0 || info.Min_rtt == math.MaxUint32 {
		return 0, 0, 0, false
	}
	return time.Duration(info.Rtt) * time.Microsecond, time.Duration(info.Min_rtt) * time.Microsecond, int64(info.Rcv_ooopack), true
}

func tcpInfo(c syscall.Conn) (info *unix.TCPInfo, ok bool) {
	rc, err := c.SyscallConn()
	if err != nil {
		return nil, false
	}
	var failed error
	err = rc.Control(func(fd uintptr) { info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	return info, err == nil && failed == nil
}
