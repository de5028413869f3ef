package link

import (
	"math"
	"net/netip"
	"slices"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/policy"
)

// Link is one usable link of the device: an interface with addresses, DNS servers and a cost. It is a value: a change
// of the interface produces a new Link with the same Name.
type Link struct {
	Name   string       // interface name: the link's stable ID
	Index  int          // kernel interface index, 0 if the link is not a kernel interface
	Handle uint64       // the app's number for the network (package appbridge), 0 without an app
	Kind   string       // "wifi", "ethernet", "cellular", "tunnel", ... as far as it is known
	Addrs  []netip.Addr // usable source addresses, both families
	// Prefixes are the networks of its addresses, which are reached without a router.
	Prefixes []netip.Prefix
	// prefix for reaching IPv4 from an IPv6 network, as reported by the app; zero = the Resolver asks
	NAT64 netip.Prefix
	DNS   []netip.AddrPort // servers to ask over this link, best first; empty: see Resolver
	Terms policy.Terms     // on which it may be used
	// metric of its default route in the main table, lower is preferred by the system; or Unranked
	Metric int

	// VPN means that the link is a VPN that carries the system's own traffic to the internet.
	VPN bool
	// Beneath names the VPN that the link goes around, "" for none.
	Beneath string
	// Confined means that the link reaches only its own networks, since no default route leads through it.
	Confined bool

	// Odd says what the interface is if its kind does not count as a link, and it is used because the system's own
	// traffic leaves there; "" = its kind counts, or it was named.
	Odd string

	// SourceRouted means that only packets with one of the link's addresses find its default route (an `ip rule from
	// ADDR`): sockets are bound to the first of Addrs too.
	SourceRouted bool

	// Via names the upstream proxy that its connections go through and that resolves their names, "" for none.
	Via string

	// Network identifies the network behind the link, see [Identify]; "" = nothing is known but the Name.
	Network string

	// Path makes connections over the link; nil = none can be made. See [WithPaths].
	Path Path
}

// Kinds of links.
const (
	KindWiFi     = "wifi"
	KindEthernet = "ethernet"
	KindCellular = "cellular"
	KindTunnel   = "tunnel"
	KindPPP      = "ppp"
	KindLoopback = "loopback"
	KindBridge   = "bridge"
	KindVLAN     = "vlan"
	KindVirtual  = "virtual"
	KindSOCKS5   = "socks5" // not an interface, like all kinds that are protocols of an Upstream
)

// Permitted returns the links that a request may use, in the order in which it tries them. All links are up, and in the
// system's order of preference. late, if not nil, reports whether another link overtook the named one recently.
func Permitted(r policy.Request, all []Link, late func(name string) bool) (may []Link) {
	known := make([]policy.Link, len(all))
	for i := range all {
		l := &all[i]
		known[i] = policy.Link{
			Name:   l.Name,
			Terms:  l.Terms,
			State:  health.Up,
			Metric: i,
			Late:   late != nil && late(l.Name),
		}
	}
	for _, i := range policy.For(r, known).Order {
		may = append(may, all[i])
	}
	return may
}

// Unranked is the Metric of a link without a default route in the main table, which the system itself would not use.
const Unranked = math.MaxInt32

// Addr returns the first source address of a family (IPv6 if six) and whether there is one.
func (l Link) Addr(six bool) (netip.Addr, bool) {
	for _, a := range l.Addrs {
		if a.Is6() == six {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// Near reports whether an address may be reached without the link's provider: an address of a private, link-local or
// the link's own network. A router's page responds even while its uplink is dead.
func (l Link) Near(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsPrivate() || a.IsLinkLocalUnicast() || within(l.Prefixes, a)
}

// Equal reports whether both are the same link in the same state.
func (l Link) Equal(o Link) bool {
	return l.Name == o.Name && l.Same(o) && l.Kind == o.Kind && l.Terms == o.Terms && l.Metric == o.Metric &&
		l.NAT64 == o.NAT64 && l.SourceRouted == o.SourceRouted && l.VPN == o.VPN && l.Beneath == o.Beneath &&
		l.Confined == o.Confined && l.Odd == o.Odd && l.Network == o.Network && l.Path == o.Path &&
		slices.Equal(l.Addrs, o.Addrs) && slices.Equal(l.Prefixes, o.Prefixes) && slices.Equal(l.DNS, o.DNS)
}

// Same reports whether two links of one name are the same interface, the same network of the host, or lead through the
// same upstream proxy.
func (l Link) Same(o Link) bool { return l.Index == o.Index && l.Handle == o.Handle && l.Via == o.Via }

// Equal reports whether both are the same links in the same state.
func Equal(a, b []Link) bool { return slices.EqualFunc(a, b, Link.Equal) }
