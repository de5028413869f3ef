package link

import (
	"math"
	"net/netip"
	"slices"

	"github.com/tributary-http/tributary/internal/core/energy"
)

// Link is one usable link of the device: an interface with addresses, DNS servers and a cost. It is a value: a change of the
// interface produces a new Link with the same Name.
type Link struct {
	Name   string       // interface name: the link's stable ID
	Index  int          // kernel interface index, 0 if the link is not a kernel interface
	Handle uint64       // the app's number for the network (package appbridge), 0 without an app
	Kind   string       // "wifi", "ethernet", "cellular", "tunnel", ... as far as it is known
	Addrs  []netip.Addr // usable source addresses, both families
	// Prefixes are the networks of its addresses, which are reached without a router.
	Prefixes []netip.Prefix
	NAT64    netip.Prefix     // prefix for reaching IPv4 from an IPv6 network, as reported by the app; zero = the Resolver asks
	DNS      []netip.AddrPort // servers to ask over this link, best first; empty: see Resolver
	Metered  bool             // bytes cost money: the link joins after the others and is tested rarely
	// Untrusted means that the operator of the network must not see credentials, see opening.Exposes.
	Untrusted bool
	// Frugal means that downloads may leave the link unused where its Radio costs more joules than it saves. Radio is nil if it is
	// unknown.
	Frugal bool
	// Cheapest means that downloads may leave the link unused, if it is Metered, where one percent of their speed costs more than
	// PerPercent bytes over it; see Cheapest in package schedule. A request may ask for the same, so PerPercent is always set.
	Cheapest   bool
	PerPercent int64
	Radio      *energy.Radio
	// Presumed stands in for an unknown Radio when a request asks for the goal frugal; nil = nothing does.
	Presumed *energy.Radio
	Account  string // account that its bytes count against, as reported by the app; "" = its Name
	Metric   int    // metric of its default route in the main table, lower is preferred by the system; or Unranked

	// VPN means that the link is a VPN that carries the system's own traffic to the internet.
	VPN bool
	// Beneath names the VPN that the link goes around, "" for none.
	Beneath string
	// Confined means that the link reaches only its own networks, since no default route leads through it.
	Confined bool

	// Odd says what the interface is if its kind does not count as a link, and it is used because the system's own traffic leaves there;
	// "" = its kind counts, or it was named.
	Odd string

	// SourceRouted means that only packets with one of the link's addresses find its default route (an `ip rule from ADDR`):
	// sockets are bound to the first of Addrs too.
	SourceRouted bool

	// Via names the upstream proxy that its connections go through and that resolves their names, "" for none.
	Via string

	// Network identifies the network behind the link, see [Identify]; "" = nothing is known but the Name.
	Network string

	// Path makes connections over the link; nil = none can be made. See [WithPaths].
	Path Path
}

// costlyWake is the least energy for waking a radio, in joules, at which its link joins after the others: more than Wi-Fi's 0.04,
// less than LTE's 2.
const costlyWake = 0.5

// Costly reports whether bytes on the link cost money, or waking it costs joules.
func (l Link) Costly() bool {
	return l.Metered || l.Radio != nil && l.Radio.WakeJoules(math.MaxInt64) >= costlyWake
}

// Priced reports whether downloads may leave the link unused if its data costs more than its speed is worth.
func (l Link) Priced() bool { return l.Metered && l.Cheapest }

// Last reports whether the link joins after the others and is tested rarely.
func (l Link) Last() bool { return l.Metered || l.Frugal && l.Costly() }

// Affordable returns the links that are not a last resort, or all links if there are no others. It is for uses that cannot
// choose a link for each request.
func Affordable(all []Link) []Link {
	if use := slices.DeleteFunc(slices.Clone(all), Link.Last); len(use) > 0 {
		return use
	}
	return all
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

// Near reports whether an address may be reached without the link's provider: an address of a private, link-local or the link's
// own network. A router's page responds even while its uplink is dead.
func (l Link) Near(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsPrivate() || a.IsLinkLocalUnicast() || within(l.Prefixes, a)
}

// Equal reports whether both are the same link in the same state.
func (l Link) Equal(o Link) bool {
	return l.Name == o.Name && l.Same(o) && l.Kind == o.Kind && l.Metered == o.Metered && l.Untrusted == o.Untrusted && l.Frugal == o.Frugal && l.Cheapest == o.Cheapest && l.PerPercent == o.PerPercent && l.Radio == o.Radio && l.Presumed == o.Presumed && l.Account == o.Account &&
		l.Metric == o.Metric && l.NAT64 == o.NAT64 && l.SourceRouted == o.SourceRouted && l.VPN == o.VPN && l.Beneath == o.Beneath && l.Confined == o.Confined && l.Network == o.Network && slices.Equal(l.Addrs, o.Addrs) && slices.Equal(l.Prefixes, o.Prefixes) &&
		slices.Equal(l.DNS, o.DNS) && l.Path == o.Path
}

// Same reports whether two links of one name are the same interface, the same network of the host, or lead through the same
// upstream proxy.
func (l Link) Same(o Link) bool { return l.Index == o.Index && l.Handle == o.Handle && l.Via == o.Via }

func equalLinks(a, b []Link) bool { return slices.EqualFunc(a, b, Link.Equal) }
