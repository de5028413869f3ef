package netlab

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wantDestination asks the kernel to report which address each packet was sent to.
func wantDestination(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var optErr error
	err = raw.Control(func(fd uintptr) {
		if optErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1); optErr == nil {
			optErr = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_PKTINFO, 1)
		}
	})
	if err != nil {
		return err
	}
	return optErr
}

// replySource turns the control message of a received packet into the one for the reply, whose source is the address
// that the packet was sent to.
func replySource(oob []byte) []byte {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, m := range msgs {
		switch {
		case m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_PKTINFO:
			if len(m.Data) < unix.SizeofInet4Pktinfo {
				continue
			}
			got := (*unix.Inet4Pktinfo)(unsafe.Pointer(&m.Data[0]))
			return unix.PktInfo4(&unix.Inet4Pktinfo{Spec_dst: got.Addr})
		case m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO:
			if len(m.Data) < unix.SizeofInet6Pktinfo {
				continue
			}
			got := (*unix.Inet6Pktinfo)(unsafe.Pointer(&m.Data[0]))
			return unix.PktInfo6(&unix.Inet6Pktinfo{Addr: got.Addr})
		}
	}
	return nil
}
