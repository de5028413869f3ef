package link

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
)

// NoDestinations returns the networks that Check denies to everybody, except private ones. Redirect rules leave them
// alone.
func NoDestinations() []netip.Prefix { return slices.Clone(deniedPrefixes) }

// PrivateNetworks returns the networks that [Destinations] treats as private.
func PrivateNetworks() []netip.Prefix { return slices.Clone(privatePrefixes) }

// private reports whether a belongs to a network that is a different one in each place where it is used.
func private(a netip.Addr) bool { return within(privatePrefixes, a) }

// inward reports whether a does not belong to the internet, but to a private network or to one with a special purpose,
// which some networks use inside.
func inward(a netip.Addr) bool {
	return private(a) || within(specialPrefixes, a) && !within(reachablePrefixes, a)
}

// denied reports whether requests of others must not go to a: the host itself, neighbours of its links by link-local
// address, multicast groups, and the addresses at which clouds give their machines credentials.
func denied(a netip.Addr) bool { return within(deniedPrefixes, a) }

func within(all []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(a) })
}

var privatePrefixes = prefixes(
	"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", // RFC 1918
	"100.64.0.0/10", // carriers' own (RFC 6598), and Tailscale's
	"fc00::/7",      // RFC 4193
	"fec0::/10",     // site-local, until it was deprecated (RFC 3879)
)

var deniedPrefixes = prefixes(
	"127.0.0.0/8", "::1/128", // loopback
	"169.254.0.0/16", "fe80::/10", // link-local; most clouds have their metadata at 169.254.169.254
	"224.0.0.0/4", "ff00::/8", // multicast
	"::/128",             // unspecified
	"0.0.0.0/8",          // this network (RFC 791): Linux treats 0.0.0.0 as itself
	"255.255.255.255/32", // broadcast

	// Metadata and credentials of clouds.
	"fd00:ec2::/32",          // Amazon: EC2, EKS, time and names
	"fd20:ce::254/128",       // Google
	"168.63.129.16/32",       // Azure
	"fd00:c1::a9fe:a9fe/128", // Oracle
	"192.0.0.192/32",         // Oracle, formerly
	"100.100.100.200/32",     // Alibaba
	"fd00:42::42/128",        // Scaleway
)

// specialPrefixes are the rest of IANA's registries of special-purpose addresses (RFC 6890) that is not globally
// reachable. Networks that carry IPv4 addresses are judged by those, see meanings.
var specialPrefixes = prefixes(
	"192.0.0.0/24",   // IETF protocols (RFC 6890)
	"192.88.99.0/24", // relays of 6to4, until they were deprecated (RFC 7526)
	"198.18.0.0/15",  // benchmarks (RFC 2544)
	"240.0.0.0/4",    // reserved (RFC 1112)

	"100::/64", "100:0:0:1::/64", // discarded (RFC 6666), dummy (RFC 9780)
	"2001::/23", // IETF protocols (RFC 2928)
	"5f00::/16", // segment routing (RFC 9602)
)

// documentationPrefixes are not part of the internet, but nobody's network inside either: operators filter them (RFC
// 5737 section 4). A public name that leads there reaches nothing of the user's. Networks of tests have their internet
// there.
var documentationPrefixes = prefixes(
	"192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", // RFC 5737
	"2001:db8::/32", "3fff::/20", // RFC 3849, RFC 9637
)

// reachablePrefixes are parts of specialPrefixes that are globally reachable.
var reachablePrefixes = prefixes(
	"192.0.0.9/32", "192.0.0.10/32", // anycast for port control and TURN (RFC 7723, RFC 8155)
	"2001:1::1/128", "2001:1::2/128", "2001:1::3/128", // the same, and service registration (RFC 9665)
	"2001:3::/32",                  // AMT (RFC 7450)
	"2001:4:112::/48",              // AS112 (RFC 7535)
	"2001:20::/28", "2001:30::/28", // ORCHIDv2 (RFC 7343), drones (RFC 9374)
	"2001::/32", // Teredo: judged by the addresses that it carries
)

func prefixes(all ...string) []netip.Prefix {
	ps := make([]netip.Prefix, len(all))
	for i, s := range all {
		ps[i] = netip.MustParsePrefix(s)
	}
	return ps
}

// localDomains are not delegated in the public DNS, so no stranger can own a name in them: special-use names (RFC 6761,
// 6762, 8375), the name that ICANN keeps for private use, and names that networks without a domain of their own use
// (RFC 6762 appendix G).
var localDomains = []string{
	"localhost", "local", "test", "home.arpa", "internal", "intranet", "private", "corp", "home", "lan",
}

// publicName reports whether anybody may own a host name. The owner of a public name can point it to an address in a
// network that only the user reaches (DNS rebinding).
func publicName(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !strings.Contains(host, ".") {
		return false
	}
	return !slices.ContainsFunc(localDomains, func(d string) bool { return strings.HasSuffix(host, "."+d) })
}

// Public reports whether a host, a name or an address, is on the public internet: a name that anybody may own, or an
// address that means the same everywhere.
func Public(host string) bool {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return publicName(host)
	}
	return !slices.ContainsFunc(meanings(a.Unmap(), netip.Prefix{}),
		func(a netip.Addr) bool { return denied(a) || inward(a) })
}

// Networks whose addresses carry an IPv4 address that a router unwraps.
var (
	compatible = netip.MustParsePrefix("::/96")          // IPv4-compatible (RFC 4291 section 2.5.5.1)
	nat64      = netip.MustParsePrefix("64:ff9b::/96")   // RFC 6052
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215; read as its /96 form
	sixToFour  = netip.MustParsePrefix("2002::/16")      // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32")      // RFC 4380
)

// meanings returns a and the IPv4 addresses that a stands for on a link with this NAT64 prefix.
func meanings(a netip.Addr, prefix netip.Prefix) []netip.Addr {
	all := []netip.Addr{a}
	if a.Is4() {
		return all
	}
	if prefix.IsValid() && prefix.Contains(a) {
		all = append(all, fromNAT64(prefix, a))
	}
	b := a.As16()
	v4 := func(at int, mask uint32) {
		var x [4]byte
		binary.BigEndian.PutUint32(x[:], binary.BigEndian.Uint32(b[at:])^mask)
		all = append(all, netip.AddrFrom4(x))
	}
	switch {
	case compatible.Contains(a), nat64.Contains(a), localNAT64.Contains(a):
		v4(12, 0)
	case sixToFour.Contains(a):
		v4(2, 0)
	case teredo.Contains(a):
		v4(4, 0) // the server
		v4(12, 0xffffffff)
	}
	return all
}
