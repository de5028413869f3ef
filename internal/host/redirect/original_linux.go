package redirect

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// originalDst is the option in linux/netfilter_ipv4.h and linux/netfilter_ipv6/ip6_tables.h.
const originalDst = 80

// Original returns the destination of a connection before it was redirected to its own address. An error, or its own
// address, means that it was not redirected. The listener must be of one family: on a dual-stack socket an IPv4
// connection would look like one of IPv6 (R154).
func Original(c *net.TCPConn) (to netip.AddrPort, err error) {
	local, ok := c.LocalAddr().(*net.TCPAddr)
	if !ok {
		return to, net.ErrClosed
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return to, err
	}
	var optErr error
	err = raw.Control(func(fd uintptr) {
		if local.IP.To4() != nil {
			to, optErr = original4(int(fd))
		} else {
			to, optErr = original6(int(fd))
		}
	})
	if err == nil {
		err = optErr
	}
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("original destination: %w", err)
	}
	return to, nil
}

// original4 reads a struct sockaddr_in with a function of x/sys/unix for another option whose value has the same size.
func original4(fd int) (netip.AddrPort, error) {
	v, err := unix.GetsockoptIPv6Mreq(fd, unix.SOL_IP, originalDst)
	if err != nil {
		return netip.AddrPort{}, err
	}
	b := v.Multiaddr
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:4])), nil
}

// original6 reads the struct sockaddr_in6 at the start of an ip6_mtuinfo.
func original6(fd int) (netip.AddrPort, error) {
	v, err := unix.GetsockoptIPv6MTUInfo(fd, unix.SOL_IPV6, originalDst)
	if err != nil {
		return netip.AddrPort{}, err
	}
	var port [2]byte
	binary.NativeEndian.PutUint16(port[:], v.Addr.Port)
	return netip.AddrPortFrom(netip.AddrFrom16(v.Addr.Addr), binary.BigEndian.Uint16(port[:])), nil
}
