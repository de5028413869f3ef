package link

import "net/netip"

// NextHop describes where the system itself sends packets for an address.
type NextHop struct {
	Local   bool // to this machine itself: Index is the interface that has the address
	Blocked bool // nowhere: a route forbids it
	Index   int  // the kernel's index of the interface; 0 = there is no route
	Default bool // by a default route, or a route to so much of the internet that it stands for one
}

// Router looks up the system's own routes. Answers apply to a socket that is not bound to an interface.
type Router interface {
	// NextHop returns where packets for an address would go. Nothing is sent.
	NextHop(a netip.Addr) (NextHop, error)
	// Device returns the Name and Kind of an interface.
	Device(index int) (Link, error)
}

// Worldwide reports whether a route leads to so much of the address space that it stands for a default route. VPNs
// replace a default route with two halves of IPv4 (0.0.0.0/1) or with the part of IPv6 in use (2000::/3).
func Worldwide(p netip.Prefix) bool {
	if p.Addr().Is4() {
		return p.Bits() <= 1
	}
	return p.Bits() <= 3
}

// CarriesVPN reports whether an interface of this kind may be that of a VPN.
func CarriesVPN(kind string) bool { return kind == KindTunnel || kind == KindPPP }
