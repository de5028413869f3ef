package discover

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/tributary-http/tributary/internal/net/link"
)

// Identify returns a text that distinguishes the network of a link from others, as far as that is possible without
// privileges. The text is the same when the link returns to that network: routers and IPv4 networks stay, while
// providers keep handing out new IPv6 networks, and mobile networks and tunnels new addresses of either family. dns are
// the servers that the network itself announced.
func Identify(l link.Link, gateways []netip.Addr, dns []netip.AddrPort) string {
	parts := []string{l.Kind}
	// Android renumbers a phone's modems: use its servers
	if l.Kind != link.KindCellular || l.Handle == 0 || len(dns) == 0 {
		parts = append(parts, l.Name)
	}
	switch l.Kind {
	case link.KindCellular, link.KindPPP, link.KindTunnel:
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

// neighborhood returns the IPv4 networks and routers, or the IPv6 routers if there are none.
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
