package link

import (
	"errors"
	"math"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lastReceived returns how long ago a connection received data or was established (tcpi_last_data_recv).
func lastReceived(tcp *net.TCPConn) (time.Duration, bool) {
	info, ok := tcpInfo(tcp)
	if !ok {
		return 0, false
	}
	return time.Duration(info.Last_data_recv) * time.Millisecond, true
}

// Vitals describes a TCP connection as the kernel knows it.
type Vitals struct {
	// Carried is the number of bytes carried in both directions: those that the other end acknowledged, and those that
	// arrived in order (tcpi_bytes_acked, tcpi_bytes_received).
	Carried int64
	// Heard is the time since data or an acknowledgment last arrived from the other end, or since the connection was
	// established.
	Heard time.Duration
	// Owed means that the other end has not acknowledged sent data, or has not answered a keep-alive.
	Owed bool
}

// VitalsOf returns the vitals of a connection, zero if they are unknown.
func VitalsOf(c syscall.Conn) Vitals {
	info, ok := tcpInfo(c)
	if !ok {
		return Vitals{}
	}
	return Vitals{
		Carried: int64(info.Bytes_acked + info.Bytes_received),
		Heard:   time.Duration(min(info.Last_data_recv, info.Last_ack_recv)) * time.Millisecond,
		Owed:    info.Unacked > 0 || info.Probes > 0,
	}
}

// pressing is the time between two keep-alives on a connection that Press was called for.
const pressing = time.Second

// Press makes the kernel send a keep-alive over a connection after a second of silence, then every second, so that the
// other end answers even if it has nothing to say. relax restores the earlier settings; it is nil if the kernel
// refuses.
func Press(c syscall.Conn) (relax func()) {
	rc, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	set := func(idle, interval int) error {
		var failed error
		err := rc.Control(func(fd uintptr) {
			failed = errors.Join(
				unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, interval),
				unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, idle), // sets the timer
			)
		})
		return errors.Join(err, failed)
	}
	var idle, interval int
	var failed error
	err = rc.Control(func(fd uintptr) {
		var first, second error
		idle, first = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
		interval, second = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_KEEPINTVL)
		failed = errors.Join(first, second)
	})
	every := int(pressing.Seconds())
	if err != nil || failed != nil || set(every, every) != nil {
		return nil
	}
	return func() { _ = set(idle, interval) } // fails only if the connection is closed
}

// handshakeRTT returns the kernel's round-trip time of a connection that has carried no data, which is the time from
// SYN to SYN-ACK (tcpi_rtt); 0 if it is unknown.
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
	RTT   time.Duration // smoothed round trip of what this side sent (tcpi_rtt)
	Least time.Duration // shortest round trip so far (tcpi_min_rtt)
	// smoothed round trip of what this side receives, queues included, 0 = unknown (tcpi_rcv_rtt)
	Receiving  time.Duration
	Disordered int64 // packets that arrived out of order (tcpi_rcv_ooopack)
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
	err = rc.Control(func(fd uintptr) {
		info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	return info, err == nil && failed == nil
}
