package link

import (
	"context"
	"net/netip"
	"slices"
)

// nat64Name is a name that has only the two IPv4 addresses below. An IPv6 address for it comes from the network's
// DNS64, and shows the prefix of its NAT64 (RFC 7050 section 3).
const nat64Name = "ipv4only.arpa"

var nat64Addrs = [...]netip.Addr{netip.AddrFrom4([4]byte{192, 0, 0, 170}), netip.AddrFrom4([4]byte{192, 0, 0, 171})}

var globalUnicast = netip.MustParsePrefix("2000::/3") // RFC 4291 section 2.4

// findNAT64 returns the first acceptable prefix that the IPv6 addresses of nat64Name show, the zero Prefix if there is
// none.
func findNAT64(addrs []netip.Addr, onLink []netip.Prefix) netip.Prefix {
	for _, a := range addrs {
		var shown []netip.Prefix
		for _, bits := range nat64Lengths {
			if p := netip.PrefixFrom(a, bits).Masked(); hasUnused(a) &&
				slices.Contains(nat64Addrs[:], fromNAT64(p, a)) {
				shown = append(shown, p)
			}
		}
		// An address that can be read in two ways shows nothing.
		if len(shown) == 1 && acceptable(shown[0]) && !slices.ContainsFunc(onLink, shown[0].Overlaps) {
			return shown[0]
		}
	}
	return netip.Prefix{}
}

// hasUnused reports whether the byte that RFC 6052 section 2.2 reserves is zero.
func hasUnused(a netip.Addr) bool { return a.Is6() && a.As16()[unused] == 0 }

// acceptable reports whether a prefix that the network announces may be used: the well-known one (RFC 6052), one for
// local use in the only form that [meanings] reads, or global unicast addresses that mean nothing else.
func acceptable(p netip.Prefix) bool {
	switch {
	case p == nat64, p.Bits() == 96 && localNAT64.Contains(p.Addr()):
		return true
	case !globalUnicast.Contains(p.Addr()), p.Overlaps(sixToFour), p.Overlaps(teredo):
		return false
	}
	return !slices.ContainsFunc(slices.Concat(deniedPrefixes, privatePrefixes), p.Overlaps)
}

// needsNAT64 reports whether a link leads to the internet by IPv6 alone.
func needsNAT64(l Link) bool {
	_, four := l.Addr(false)
	return !four && (l.NAT64.IsValid() || slices.ContainsFunc(l.Addrs,
		func(a netip.Addr) bool { return a.IsGlobalUnicast() && !private(a) }))
}

// mayHide reports whether an address would stand for an IPv4 address that requests must not go to if a NAT64 had the
// right prefix. IPv4 addresses that begin with zero do not count: most addresses contain zeros.
func mayHide(a netip.Addr) bool {
	return hasUnused(a) && slices.ContainsFunc(nat64Lengths, func(bits int) bool {
		v4 := fromNAT64(netip.PrefixFrom(a, bits), a)
		return v4.As4()[0] != 0 && (denied(v4) || inward(v4))
	})
}

// prefixQuestion is the key under which the answer for nat64Name is remembered. No caller can ask for an empty name.
var prefixQuestion = question{"", v6}

// nat64 returns the prefix by which l reaches IPv4 addresses, the zero Prefix if it has none or needs none. It asks
// only servers over l itself: others report the prefix of their own network (RFC 8880 section 7.1). An answer is kept
// for the same time as others, see [Resolver].
func (r *Resolver) nat64(ctx context.Context, l Link) (netip.Prefix, error) {
	if l.NAT64.IsValid() || r == nil || r.Names != nil || !needsNAT64(l) {
		return l.NAT64, nil
	}
	from, err := r.ownServers(l)
	if err != nil || len(from.Addrs) == 0 {
		return netip.Prefix{}, nil //nolint:nilerr // nobody to ask, so that no prefix is known
	}
	m := r.memory(l)
	addrs, err := m.lookup(ctx, prefixQuestion, func(ctx context.Context) ([]netip.Addr, error) {
		return r.askServers(ctx, l, from, m, v6, nat64Name)
	})
	return findNAT64(addrs, l.Prefixes), err
}

// knownNAT64 returns the prefix of l if it is known already, without asking a server.
func (r *Resolver) knownNAT64(l Link) netip.Prefix {
	if l.NAT64.IsValid() || r == nil || !needsNAT64(l) {
		return l.NAT64
	}
	m := r.memory(l)
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.names[prefixQuestion.host]; a != nil {
		return findNAT64(a.addrs[v6], l.Prefixes)
	}
	return netip.Prefix{}
}

// Behind returns the IPv4 address that a stands for if l reaches IPv4 addresses by NAT64 with a known prefix; otherwise
// a itself. It does not ask any server.
func (d *Dialer) Behind(l Link, a netip.Addr) netip.Addr {
	if p := d.Resolver.knownNAT64(l); p.IsValid() && p.Contains(a) {
		return fromNAT64(p, a)
	}
	return a
}

// resolve64 returns the IPv6 addresses of host on a link, those by NAT64 if host has only IPv4 addresses. The prefix is
// that of the link if one of the addresses may stand for an IPv4 address that must not be reached; such addresses are
// left out if the prefix cannot be determined.
func (d *Dialer) resolve64(ctx context.Context, l Link, host string) ([]netip.Addr, netip.Prefix, error) {
	addrs, err := d.resolve(ctx, l, v6, host)
	if err != nil || !needsNAT64(l) {
		return addrs, l.NAT64, err
	}
	if len(addrs) > 0 {
		if !slices.ContainsFunc(addrs, mayHide) {
			return addrs, l.NAT64, nil
		}
		prefix, err := d.Resolver.nat64(ctx, l)
		if err != nil {
			addrs = slices.DeleteFunc(addrs, mayHide)
		}
		return addrs, prefix, err
	}
	addrs, err = d.resolve(ctx, l, v4, host)
	if err != nil || len(addrs) == 0 {
		return nil, l.NAT64, err
	}
	prefix, err := d.Resolver.nat64(ctx, l)
	if !prefix.IsValid() {
		return nil, prefix, err
	}
	for i, a := range addrs {
		addrs[i] = toNAT64(prefix, a)
	}
	return addrs, prefix, nil
}
