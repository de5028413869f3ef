package discover

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/tributary-http/tributary/internal/net/link"
)

// Options selects which interfaces become links, and holds facts about them that only the user knows.
type Options struct {
	// Names, if not empty, are the only interfaces to use, whatever their kind.
	Names []string
	// Include names interfaces to use whatever their kind, in addition to the others. A VPN among them that carries the
	// system's own traffic is followed like any other.
	Include []string
	// Exclude names interfaces that are not to be used.
	Exclude []string
	// Taken names links that are not interfaces: an interface with such a name is not used.
	Taken []string
	// DNS gives the servers of a link by its name; the others ask the servers of the system (see Resolver).
	DNS map[string][]netip.AddrPort
	// Metered overrides by name the default that only cellular links are metered.
	Metered map[string]bool
	// Of returns the user's setting for an interface, name patterns included; nil = only the fields above apply.
	Of func(name string) Setting
	// Around lets links go around a VPN that carries the system's own traffic. By default the VPN is the link, and the
	// links that it runs over rest.
	Around bool
}

// Setting holds what the user configured for one interface. Enabled acts like Options.Include if true, like
// Options.Exclude if false.
type Setting struct {
	DNS              []netip.AddrPort
	Metered, Enabled *bool // nil = not configured
}

// of returns the options with the setting of an interface merged in.
func (o Options) of(name string) Options {
	if o.Of == nil {
		return o
	}
	s := o.Of(name)
	if len(s.DNS) > 0 {
		o.DNS = map[string][]netip.AddrPort{name: s.DNS}
	}
	if s.Metered != nil {
		o.Metered = map[string]bool{name: *s.Metered}
	}
	if s.Enabled != nil && *s.Enabled {
		o.Include = append(slices.Clone(o.Include), name)
	} else if s.Enabled != nil {
		o.Exclude = append(slices.Clone(o.Exclude), name)
	}
	return o
}

// Interface is the kernel's description of one network interface, as plain data.
type Interface struct {
	Name  string
	Index int
	Up    bool   // administratively up (IFF_UP)
	State string // operational state of RFC 2863: "up", "unknown", "dormant", "down", "lower-layer-down", ...
	Type  string // device type of the driver (IFLA_INFO_KIND): "veth", "bridge", ...; "device" or "" if it names none
	Encap string // link layer: "ether", "loopback", "ppp", "none", ...

	// From sysfs.
	Wireless, WWAN, Tun bool

	// ParentReal reports whether a VLAN device sits on a device whose kind counts as a link.
	ParentReal bool

	Addrs  []Address
	Routes []Route

	// World4 and World6 report whether the system's own traffic to the internet leaves here, over IPv4 and IPv6.
	World4, World6 bool
}

// world reports whether the system's own traffic to the internet leaves here, over IPv6 if six.
func (i Interface) world(six bool) bool {
	if six {
		return i.World6
	}
	return i.World4
}

// Address is one address of an interface.
type Address struct {
	netip.Addr
	Bits       int  // length of its network's prefix
	Unproven   bool // duplicate address detection is running or has failed (RFC 4862 section 5.4)
	Deprecated bool // not to be used for new connections if there is another (RFC 4862 section 5.5.4)
}

// Route is a default route through an interface, in any routing table.
type Route struct {
	Six     bool
	Metric  int
	Gateway netip.Addr // address of the next hop; the zero Addr if the network itself is the way out
	// Own means that the route is not in the main table: its metric cannot be compared with those of other links.
	Own bool
	// SourceOnly means that a packet that names the interface but no source address does not find the route.
	SourceOnly bool
}

// Candidate is an interface and the decision about it.
type Candidate struct {
	Link link.Link // the link, as far as it is known; its Addrs are the usable ones
	Use  bool
	// the kernel alone may make it usable within seconds: it has yet to report a carrier, or to prove an address
	Soon     bool
	Reason   string // reason for the decision, for people to read
	State    string // operational state of RFC 2863, or "off" if it is switched off; "" if there is no such interface
	Gateways []netip.Addr
}

// kind returns the kind of i and, unless that kind counts as a link, the reason why not.
func (i Interface) kind() (kind, skip string) {
	switch typ := i.Type; {
	case i.Encap == "loopback":
		return link.KindLoopback, "loopback"
	case i.WWAN || typ == "wwan" || typ == "rmnet" || strings.HasPrefix(i.Name, "rmnet_data") ||
		strings.HasPrefix(i.Name, "ccmni"):
		return link.KindCellular, ""
	case i.Wireless:
		return link.KindWiFi, ""
	case typ == "ppp" || i.Encap == "ppp":
		return link.KindPPP, "a PPP device, which may be a modem or a VPN"
	case i.Tun || tunnelType(typ):
		return link.KindTunnel, "a tunnel or VPN"
	case typ == "bridge" || typ == "openvswitch":
		return link.KindBridge, "a bridge"
	case typ == "vlan":
		if i.ParentReal {
			return link.KindVLAN, ""
		}
		return link.KindVLAN, "a VLAN on a virtual device"
	case typ == "bond" || typ == "team":
		return link.KindEthernet, ""
	case typ == "" || typ == "device":
		if i.Encap == "none" {
			return link.KindTunnel, "a tunnel or VPN"
		}
		return link.KindEthernet, ""
	default: // veth, dummy, ifb, macvlan, ipvlan, vrf, netkit, ...
		return link.KindVirtual, "a virtual device (" + typ + ")"
	}
}

func tunnelType(typ string) bool {
	switch typ {
	case "tuntap", "tun", "wireguard", "ipip", "sit", "gre", "gretap", "ip6gre", "ip6gretap", "ip6tnl", "vti", "vti6",
		"xfrm",
		"geneve", "vxlan", "erspan", "ip6erspan", "gtp", "ovpn", "amt":
		return true
	}
	return false
}

// decide decides whether i is used as a link, and why (not).
func decide(i Interface, o Options) Candidate {
	kind, skip := i.kind()
	o = o.of(i.Name)
	c := Candidate{Link: link.Link{Name: i.Name, Index: i.Index, Kind: kind, DNS: o.DNS[i.Name]}}
	c.Link.Terms.Metered = kind == link.KindCellular
	if m, ok := o.Metered[i.Name]; ok {
		c.Link.Terms.Metered = m
	}
	c.State = i.State
	if !i.Up {
		c.State = "off"
	}
	for _, r := range i.Routes {
		if r.Gateway.IsValid() && !slices.Contains(c.Gateways, r.Gateway) {
			c.Gateways = append(c.Gateways, r.Gateway)
		}
	}
	named := slices.Contains(o.Names, i.Name) || slices.Contains(o.Include, i.Name)
	addrs := usable(i.Addrs)
	c.Link.Addrs = addrs
	c.Link.Prefixes = networks(i.Addrs)
	c.Link.Network = Identify(c.Link, c.Gateways, nil)
	switch {
	case slices.Contains(o.Exclude, i.Name):
		c.Reason = fmt.Sprintf("[link.%s] of the configuration says enabled = false", i.Name)
	case slices.Contains(o.Taken, i.Name):
		c.Reason = fmt.Sprintf("[link.%s] of the configuration uses its name for an upstream proxy (via)", i.Name)
	case len(o.Names) > 0 && !slices.Contains(o.Names, i.Name):
		c.Reason = "not one of the links that were named"
	case kind == link.KindLoopback:
		c.Reason = "loopback"
	// what the system itself uses is a link
	case skip != "" && !named && (link.CarriesVPN(kind) || !i.World4 && !i.World6):
		c.Reason = fmt.Sprintf("%s; --link %s uses it anyway", skip, i.Name)
	case !i.Up:
		c.Reason = fmt.Sprintf("down; to enable it, run `ip link set %s up`", i.Name)
	case i.State != "up" && i.State != "unknown":
		c.Reason = "no carrier (state " + i.State + ")"
		c.Soon = len(addrs) > 0 && len(i.Routes) > 0
	case len(addrs) == 0 && slices.ContainsFunc(i.Addrs, func(a Address) bool { return a.Unproven && global(a.Addr) }):
		c.Reason = "its address is still being checked for duplicates"
		c.Soon = len(i.Routes) > 0
	case len(addrs) == 0:
		c.Reason = "no global address"
	default:
		route(&c, i.Routes, named)
		if c.Use && skip != "" && !named {
			c.Link.Odd = skip
			c.Reason = skip + ", used since the system's own traffic leaves there"
		}
	}
	return c
}

// route decides on an interface that is up and has addresses.
func route(c *Candidate, routes []Route, named bool) {
	c.Link.Metric = link.Unranked
	if len(routes) == 0 && named {
		c.Use, c.Reason = true, "named; without a default route, it reaches only its own networks"
		c.Link.Confined = true
		return
	}
	// A family without a way out is not offered: its connection attempts could only fail (RFC 8305 section 7).
	out := slices.DeleteFunc(slices.Clone(c.Link.Addrs), func(a netip.Addr) bool {
		return !slices.ContainsFunc(routes, func(r Route) bool { return r.Six == a.Is6() })
	})
	if len(out) == 0 {
		c.Reason = "no default route leads through it"
		if len(routes) > 0 {
			c.Reason = "its default route is for a family in which it has no global address"
		}
		return
	}
	c.Link.Addrs = out
	for _, r := range routes {
		if !r.Own {
			c.Link.Metric = min(c.Link.Metric, r.Metric)
		}
	}
	for _, six := range []bool{false, true} {
		of := slices.DeleteFunc(slices.Clone(routes), func(r Route) bool { return r.Six != six })
		if len(of) > 0 && !slices.ContainsFunc(of, func(r Route) bool { return !r.SourceOnly }) {
			c.Link.SourceRouted = true
		}
	}
	c.Use, c.Reason = true, "up, with an address and a default route"
	if named {
		c.Reason = "named, up, with an address and a default route"
	}
}

// usable returns the addresses that connections may come from, deprecated ones last.
func usable(addrs []Address) []netip.Addr {
	var fresh, old []netip.Addr
	for _, a := range addrs {
		switch {
		case a.Unproven || !global(a.Addr):
		case a.Deprecated:
			old = append(old, a.Addr)
		default:
			fresh = append(fresh, a.Addr)
		}
	}
	return append(fresh, old...)
}

// networks returns the networks of the global addresses, each once.
func networks(addrs []Address) []netip.Prefix {
	var all []netip.Prefix
	for _, a := range addrs {
		if p, err := a.Prefix(a.Bits); err == nil && global(a.Addr) && a.Bits > 0 && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// global reports whether a has more than link scope. Private and unique local addresses do: routers translate them.
func global(a netip.Addr) bool { return a.IsGlobalUnicast() }

// candidates decides on every interface; named interfaces that do not exist come last.
func candidates(all []Interface, o Options) []Candidate {
	var cs []Candidate
	vpns := vpnsOf(all, o)
	for _, i := range all {
		switch {
		case i.vpn(o) && !o.Around:
			cs = append(cs, follow(i, o))
		case i.vpn(o):
			c := decide(i, o)
			if !c.Use {
				c.Reason = "a VPN that carries the system's traffic, which Tributary bypasses: vpn = \"around\""
			}
			cs = append(cs, c)
		case o.Around:
			c := decide(i, o)
			c.Link.Beneath = cmp.Or(vpns[0], vpns[1])
			cs = append(cs, c)
		default:
			cs = append(cs, beneath(decide(i, o), vpns))
		}
	}
	slices.SortStableFunc(cs, func(a, b Candidate) int {
		return cmp.Or(order(b.Use)-order(a.Use), cmp.Compare(a.Link.Metric, b.Link.Metric),
			cmp.Compare(a.Link.Name, b.Link.Name))
	})
	for _, name := range o.Names {
		if !slices.Contains(o.Taken, name) && !slices.ContainsFunc(cs,
			func(c Candidate) bool { return c.Link.Name == name }) {
			cs = append(cs, Candidate{Link: link.Link{Name: name}, Reason: "there is no interface with this name"})
		}
	}
	return cs
}

// vpn reports whether i is a VPN that carries the system's own traffic: its kind may be that of a VPN, and the user did
// not choose it by Names. Include does not change that: it lets a VPN carry its own networks, and the links under it
// must still rest once it carries everything.
func (i Interface) vpn(o Options) bool {
	kind, _ := i.kind()
	return (i.World4 || i.World6) && link.CarriesVPN(kind) &&
		(slices.Contains(o.Taken, i.Name) || !slices.Contains(o.Names, i.Name))
}

// vpnsOf returns the names of the VPNs by family: IPv4, IPv6; "" if there is none.
func vpnsOf(all []Interface, o Options) (names [2]string) {
	for _, i := range all {
		for f, six := range []bool{false, true} {
			if i.vpn(o) && i.world(six) {
				names[f] = i.Name
			}
		}
	}
	return names
}

// follow decides on a VPN that is followed: it is used in the address families in which the system uses it.
func follow(i Interface, o Options) Candidate {
	named := o
	named.Include = append(slices.Clone(o.Include), i.Name)
	for _, six := range []bool{false, true} {
		has := slices.ContainsFunc(i.Routes, func(r Route) bool { return r.Six == six })
		if i.world(six) && !has { // routed by two halves of the address space
			i.Routes = append(slices.Clone(i.Routes), Route{Six: six, Own: true})
		}
	}
	c := decide(i, named)
	c.Link.VPN = true
	if c.Use {
		c.Link.Addrs = slices.DeleteFunc(c.Link.Addrs, func(a netip.Addr) bool { return !i.world(a.Is6()) })
		c.Reason = "a VPN that carries the system's traffic; vpn = \"around\" bypasses it"
	}
	return c
}

// beneath removes from a link the address families that a VPN carries.
func beneath(c Candidate, vpns [2]string) Candidate {
	if !c.Use || vpns == [2]string{} {
		return c
	}
	resting := vpns[0]
	c.Link.Addrs = slices.DeleteFunc(slices.Clone(c.Link.Addrs), func(a netip.Addr) bool {
		name := vpns[0]
		if a.Is6() {
			name = vpns[1]
		}
		if name != "" {
			resting = name
		}
		return name != ""
	})
	if len(c.Link.Addrs) == 0 {
		c.Use = false
		c.Reason = fmt.Sprintf("not used, since the VPN %s carries the system's traffic; vpn = \"around\" uses it anyway",
			resting)
	}
	return c
}

func order(use bool) int {
	if use {
		return 1
	}
	return 0
}

// links returns the interfaces that are used, the one that the system prefers first.
func links(all []Interface, o Options) []link.Link {
	ls := []link.Link{}
	for _, c := range candidates(all, o) {
		if c.Use {
			ls = append(ls, c.Link)
		}
	}
	return ls
}
