package link

import "net/netip"

func ips(ss ...string) (as []netip.Addr) {
	for _, s := range ss {
		as = append(as, netip.MustParseAddr(s))
	}
	return as
}

func lnk(name string, index int, addrs ...string) Link {
	return Link{Name: name, Index: index, Addrs: ips(addrs...)}
}
