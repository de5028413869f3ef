package link

import (
	"net/netip"
	"slices"
	"strings"
)

// Identify returns a text that tells the network of a link from others, as far as that can be known without privileges. It is
// the same when the link comes back to that network: routers and IPv4 networks stay, while providers give out other IPv6
// networks again and again, and mobile networks and tunnels other addresses of either family. dns are the servers that the
// network itself has named.
func Identify(l Link, gateways []netip.Addr, dns []netip.AddrPort) string {
	parts := []string{l.Kind}
	if l.Kind != KindCellular || l.Handle == 0 || len(dns) == 0 { // Android renumbers a phone's modems: its servers tell more
		parts = append(parts, l.Name)
	}
	switch l.Kind {
	case KindCellular, KindPPP, KindTunnel:
	default:
		parts = append(parts, neighborhood(l.Prefixes, gateways)...)
	}
	var servers []string
	for _, s := range dns {
		servers = append(servers, s.Addr().WithZone("").String())
	}
	slices.Sort(servers)
	return strings.Join(append(parts, servers...), " ")
}

// neighborhood names the routers and the IPv4 networks; where there are none of these, the routers of IPv6.
func neighborhood(nets []netip.Prefix, gateways []netip.Addr) (four []string) {
	var six []string
	for _, p := range nets {
		if p.Addr().Is4() {
			four = append(four, p.String())
		}
	}
	for _, g := range gateways {
		if g.Is4() {
			four = append(four, g.String())
		} else {
			six = append(six, g.WithZone("").String())
		}
	}
	if len(four) == 0 {
		four = six
	}
	slices.Sort(four)
	return four
}
