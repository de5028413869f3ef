package link

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
)

// Local reports whether an address belongs to this machine; if that cannot be determined, Local returns true.
func Local(a netip.Addr) bool {
	a = a.Unmap()
	if a.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil { // Android keeps the list from apps
		return bound(a)
	}
	for _, x := range all {
		if n, ok := x.(*net.IPNet); ok {
			if own, ok := netip.AddrFromSlice(n.IP); ok && own.Unmap() == a {
				return true
			}
		}
	}
	return false
}

// bound reports whether a socket can have an address. Nothing is sent.
func bound(a netip.Addr) bool {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 0)))
	if err != nil {
		return !errors.Is(err, syscall.EADDRNOTAVAIL) && !errors.Is(err, syscall.EAFNOSUPPORT)
	}
	c.Close()
	return true
}
