package relay

import (
	"net"
	"net/netip"
	"sync"
)

// doorway bounds the connections that have not authenticated yet: maxHalfOpen from all addresses, and maxOfAddress from
// one. It is safe for concurrent use.
type doorway struct {
	mu  sync.Mutex
	all int
	of  map[netip.Prefix]int
}

// enter admits a connection unless there are too many. leave must be called if the connection was admitted.
func (d *doorway) enter(c net.Conn) (leave func(), ok bool) {
	from := network(c.RemoteAddr())
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all >= maxHalfOpen || d.of[from] >= maxOfAddress {
		return nil, false
	}
	if d.of == nil {
		d.of = map[netip.Prefix]int{}
	}
	d.all++
	d.of[from]++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.all--
		if d.of[from]--; d.of[from] == 0 {
			delete(d.of, from)
		}
	}, true
}

// network returns the network that counts as one address: for IPv6 a /64, which every host has.
func network(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	addr := tcp.AddrPort().Addr().Unmap()
	if addr.Is4() {
		return netip.PrefixFrom(addr, 32)
	}
	p, _ := addr.WithZone("").Prefix(64)
	return p
}
