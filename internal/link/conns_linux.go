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
	return microseconds(info.Rtt)
}

// TCPPath is the state of a connection's path, as the kernel knows it.
type TCPPath struct {
	RTT        time.Duration // smoothed round trip of what this side sent (tcpi_rtt)
	Least      time.Duration // shortest round trip so far (tcpi_min_rtt)
	Receiving  time.Duration // smoothed round trip of what this side receives, queues included, 0 = unknown (tcpi_rcv_rtt)
	Disordered int64         // packets that came out of order (tcpi_rcv_ooopack)
}

// PathState asks the kernel for the state of a connection's path under its present load.
func PathState(c net.Conn) (TCPPath, bool) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return TCPPath{}, false
	}
	info, ok := tcpInfo(sc)
	if !ok || info.Min_rtt == 0 || info.Min_rtt == math.MaxUint32 {
		return TCPPath{}, false
	}
	return TCPPath{
		RTT: microseconds(info.Rtt), Least: microseconds(info.Min_rtt), Receiving: microseconds(info.Rcv_rtt),
		Disordered: int64(info.Rcv_ooopack),
	}, true
}

func microseconds(n uint32) time.Duration { return time.Duration(n) * time.Microsecond }

func tcpInfo(c syscall.Conn) (info *unix.TCPInfo, ok bool) {
	rc, err := c.SyscallConn()
	if err != nil {
		return nil, false
	}
	var failed error
	err = rc.Control(func(fd uintptr) { info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	return info, err == nil && failed == nil
}
