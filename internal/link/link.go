package link

import "net/netip"

// Link is one usable way out of the device: an interface with addresses, DNS servers and a cost. It is a value; a
// change of the interface makes a new one with the same Name.
type Link struct {
	Name    string           // interface name: the link's stable ID
	Index   int              // kernel interface index, 0 if the link is no kernel interface
	Kind    string           // "wifi", "ethernet", "cellular", "tunnel", ... as far as it is known
	Addrs   []netip.Addr     // usable source addresses, both families
	DNS     []netip.AddrPort // servers to ask over this link, best first; empty: see Resolver
	Metered bool             // bytes cost money: no handshake without payload (DESIGN.md, promise 6)
	Metric  int              // metric of its default route, lower is preferred by the system
}
