package link

import (
	"net/netip"
	"slices"
)

// nat64Lengths are the lengths that a NAT64 prefix may have (RFC 6052 section 2.2).
var nat64Lengths = []int{32, 40, 48, 56, 64, 96}

// IsNAT64 reports whether p can be the prefix by which an IPv6 network reaches IPv4 addresses.
func IsNAT64(p netip.Prefix) bool {
	return p.IsValid() && p.Addr().Is6() && !p.Addr().Is4In6() && slices.Contains(nat64Lengths, p.Bits())
}

// unused is the index of the byte of an address that RFC 6052 keeps zero.
const unused = 8

// toNAT64 returns the IPv6 address that stands for an IPv4 address in a network with this prefix.
func toNAT64(p netip.Prefix, a netip.Addr) netip.Addr {
	b, v4 := p.Masked().Addr().As16(), a.As4()
	at := p.Bits() / 8
	for _, x := range v4 {
		if at == unused {
			at++
		}
		b[at] = x
		at++
	}
	return netip.AddrFrom16(b)
}

// fromNAT64 returns the IPv4 address that an address of the prefix stands for.
func fromNAT64(p netip.Prefix, a netip.Addr) netip.Addr {
	b := a.As16()
	var v4 [4]byte
	at := p.Bits() / 8
	for i := range v4 {
		if at == unused {
			at++
		}
		v4[i] = b[at]
		at++
	}
	return netip.AddrFrom4(v4)
}
