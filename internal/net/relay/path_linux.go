package relay

import (
	"math"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/core/lanes"
)

// unsentLowat is how many unsent bytes a lane's socket accepts (TCP_NOTSENT_LOWAT): bytes that wait there cannot move
// to another lane, and small messages wait behind them.
const unsentLowat = 16 << 10

// prepare sets the options of a lane's socket.
func prepare(c syscall.Conn) error {
	rc, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = rc.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, unsentLowat)
	})
	if err != nil {
		return err
	}
	return failed
}

// pace makes the kernel spread what a lane sends over the round trip. The rate limit is above that of any link.
func pace(rc syscall.RawConn) {
	_ = rc.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, math.MaxInt32)
	})
}

// restartControl makes the BBR of a lane look for the rate of its link as at the start of a connection, but from its
// current window. Otherwise BBR raises its estimate by a quarter in eight round trips. Other congestion controls do not
// have anything like this.
func restartControl(rc syscall.RawConn) {
	if controlOf(rc) != "bbr" || !mayUse("bbr") {
		return
	}
	_ = rc.Control(func(fd uintptr) {
		if setControl(int(fd), "reno") == nil {
			_ = setControl(int(fd), "bbr")
		}
	})
}

// useModel makes a lane send with BBR, which does not shrink its window at each lost packet, if the kernel has BBR. It
// reports whether the lane sends with BBR now.
func useModel(rc syscall.RawConn) bool {
	_ = rc.Control(func(fd uintptr) { _ = setControl(int(fd), "bbr") })
	return controlOf(rc) == "bbr"
}

// setControl chooses the congestion control of a socket.
func setControl(fd int, name string) error {
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
}

// controlOf returns the name of a connection's congestion control, "" if it is unknown.
func controlOf(rc syscall.RawConn) (name string) {
	_ = rc.Control(func(fd uintptr) {
		if s, err := unix.GetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION); err == nil {
			name, _, _ = strings.Cut(s, "\x00")
		}
	})
	return name
}

// mayUse reports whether this process may choose a congestion control.
func mayUse(name string) bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return setControl(fd, "reno") == nil && setControl(fd, name) == nil
}

// tcpInfo asks the kernel about a lane.
func tcpInfo(rc syscall.RawConn) (info *unix.TCPInfo, ok bool) {
	var failed error
	err := rc.Control(func(fd uintptr) {
		info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	return info, err == nil && failed == nil
}

// receptionOf returns what the client has to know about a lane. Received data has a round trip of its own
// (tcpi_rcv_rtt): an end that only receives sends too little to measure one.
func receptionOf(rc syscall.RawConn) (r lanes.Reception, ok bool) {
	info, ok := tcpInfo(rc)
	if !ok || info.Min_rtt == math.MaxUint32 {
		return r, false
	}
	micro := func(n uint32) time.Duration { return time.Duration(n) * time.Microsecond }
	r = lanes.Reception{
		RTT: micro(info.Rtt), Least: micro(info.Min_rtt), Holes: int64(info.Rcv_ooopack) + int64(info.Total_retrans),
		Bytes: int64(info.Bytes_received) + int64(info.Bytes_acked),
	}
	if info.Bytes_received > info.Bytes_acked && info.Rcv_rtt > 0 {
		r.RTT = micro(info.Rcv_rtt)
	}
	return r, true
}

// pathOf asks the kernel about a lane.
func pathOf(rc syscall.RawConn) (p lanes.Path, ok bool) {
	info, ok := tcpInfo(rc)
	if !ok {
		return lanes.Path{}, false
	}
	mss := int(info.Snd_mss)
	flying := int(info.Unacked) - int(info.Sacked) - int(info.Lost) + int(info.Retrans)
	p = lanes.Path{
		RTT:          time.Duration(info.Rtt) * time.Microsecond,
		CWnd:         int(info.Snd_cwnd) * mss,
		InFlight:     max(flying, 0) * mss,
		Unsent:       int(info.Notsent_bytes),
		DeliveryRate: float64(info.Delivery_rate),
		AppLimited:   appLimited(info),
		Hole:         info.Sacked > 0,
		Progress:     uint64(info.Delivered) * uint64(mss),
		Threshold:    threshold(info),
	}
	if info.Min_rtt != math.MaxUint32 {
		p.MinRTT = time.Duration(info.Min_rtt) * time.Microsecond
	}
	if info.Unacked > 0 && p.InFlight == 0 {
		p.InFlight = mss // all of it is considered lost: an acknowledgment is owed anyway
	}
	return p, true
}

// threshold returns the congestion window, in bytes, that the lane returned to after a loss, 0 if nothing was lost.
// Without a loss, CUBIC ends slow start as soon as round trips become longer (HyStart++, RFC 9406), which on a busy
// machine is too soon, and says nothing about the link.
func threshold(info *unix.TCPInfo) int64 {
	if info.Total_retrans == 0 {
		return 0
	}
	return int64(info.Snd_ssthresh) * int64(info.Snd_mss)
}

// appLimited reads tcpi_delivery_rate_app_limited, a bit between the fields that package unix names.
func appLimited(info *unix.TCPInfo) bool { return (*[8]byte)(unsafe.Pointer(info))[7]&1 != 0 }
