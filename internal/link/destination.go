package link

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"
)

var (
	// ErrDenied says that no request may go to an address, over no link.
	ErrDenied = errors.New("the address is not allowed as a destination")
	// ErrOffLink says that an address lies in the own network of another link: only that one leads there.
	ErrOffLink = errors.New("the address belongs to the network of another link")
)

// Destinations says which addresses may be dialed, and over which link. A proxy reaches what its clients may not, and a web
// page can make a browser ask it: so the address that a name resolved to is checked, each time before it is dialed (R183).
// The zero value denies what is not meant to be reached through a proxy and allows the rest.
type Destinations struct {
	Allow       []netip.Prefix            // exceptions from what is denied, own listeners apart
	DenyPrivate bool                      // also deny private networks (RFC 1918, RFC 4193)
	Own         func(netip.AddrPort) bool // reports the proxy's own listeners, which are always denied; may be nil

	links atomic.Pointer[[]Link]
}

// SetLinks tells which links there are, best first.
func (d *Destinations) SetLinks(links []Link) {
	links = slices.Clone(links)
	d.links.Store(&links)
}

// Check returns nil, [ErrDenied] or [ErrOffLink]. It is a [Dialer]'s Allow.
func (d *Destinations) Check(l Link, to netip.AddrPort) error {
	addr := to.Addr().Unmap().WithZone("")
	if d.Own != nil && d.Own(netip.AddrPortFrom(addr, to.Port())) {
		return ErrDenied
	}
	if !d.excepted(addr) {
		for _, a := range meanings(addr, l.NAT64) {
			if !d.excepted(a) && (denied(a) || d.DenyPrivate && private(a)) {
				return ErrDenied
			}
		}
	}
	if !private(addr) {
		return nil
	}
	if name := d.owner(addr); name != "" && name != l.Name {
		return ErrOffLink
	}
	return nil
}

func (d *Destinations) excepted(a netip.Addr) bool {
	return slices.ContainsFunc(d.Allow, func(p netip.Prefix) bool { return p.Contains(a) })
}

// owner returns the link in whose network a lies, "" if in none. Home networks look alike: of two links with the same
// network the better one leads there, as the system's own routing would have it (R184).
func (d *Destinations) owner(a netip.Addr) string {
	links := d.links.Load()
	if links == nil {
		return ""
	}
	for _, l := range *links {
		for _, p := range l.Prefixes {
			if p.Contains(a) {
				return l.Name
			}
		}
	}
	return ""
}

// private reports whether a is of a private network: RFC 1918, RFC 4193, and site-local as long as it was (RFC 3879).
func private(a netip.Addr) bool { return a.IsPrivate() || siteLocal.Contains(a) }

var siteLocal = netip.MustParsePrefix("fec0::/10")

// NoDestinations returns the networks that Check denies to everybody, private ones apart: what redirects connections leaves
// these alone.
func NoDestinations() []netip.Prefix {
	return slices.Clone(deniedPrefixes[:])
}

// denied reports whether a is no destination for requests of others: the host itself, its links' neighbours by link-local
// address, groups, and the addresses at which clouds give their machines credentials.
func denied(a netip.Addr) bool {
	return slices.ContainsFunc(deniedPrefixes[:], func(p netip.Prefix) bool { return p.Contains(a) })
}

var deniedPrefixes = [...]netip.Prefix{
	netip.MustParsePrefix("127.0.0.0/8"),        // loopback
	netip.MustParsePrefix("::1/128"),            //
	netip.MustParsePrefix("169.254.0.0/16"),     // link-local
	netip.MustParsePrefix("fe80::/10"),          //
	netip.MustParsePrefix("224.0.0.0/4"),        // multicast
	netip.MustParsePrefix("ff00::/8"),           //
	netip.MustParsePrefix("::/128"),             // unspecified
	netip.MustParsePrefix("0.0.0.0/8"),          // this network (RFC 791): Linux takes 0.0.0.0 for itself
	netip.MustParsePrefix("255.255.255.255/32"), // broadcast
	netip.MustParsePrefix("fd00:ec2::254/128"),  // metadata of Amazon EC2; 169.254.169.254 is link-local
	netip.MustParsePrefix("100.100.100.200/32"), // metadata of Alibaba Cloud
}

// Networks whose addresses carry an IPv4 address that a router unwraps.
var (
	compatible = netip.MustParsePrefix("::/96")          // IPv4-compatible (RFC 4291 section 2.5.5.1)
	nat64      = netip.MustParsePrefix("64:ff9b::/96")   // RFC 6052
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48") // RFC 8215; read as its /96 form
	sixToFour  = netip.MustParsePrefix("2002::/16")      // RFC 3056
	teredo     = netip.MustParsePrefix("2001::/32")      // RFC 4380
)

// meanings returns a and the IPv4 addresses that it stands for, on a link with this NAT64 prefix.
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
