package link

import (
	"net"
	"net/netip"
)

// Local reports whether an address belongs to this machine; if that cannot be told, it is taken to.
func Local(a netip.Addr) bool {
	a = a.Unmap()
	if a.IsLoopback() {
		return true
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true
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
