package daemon

import (
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/tributary-http/tributary/internal/net/link"
)

// listeners records the proxy's own listening addresses: a request to one of them would loop (R15, R182).
type listeners struct {
	mu  sync.Mutex
	own []netip.AddrPort
}

func (l *listeners) add(a net.Addr) {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.own = append(l.own, t.AddrPort())
}

func (l *listeners) all() []netip.AddrPort {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.own)
}

// has reports whether a connection to the address would reach one of these listeners.
func (l *listeners) has(a netip.AddrPort) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	addr := a.Addr().Unmap()
	for _, o := range l.own {
		own := o.Addr().Unmap()
		switch {
		case o.Port() != a.Port():
		case own == addr, addr.IsUnspecified(), addr.IsLoopback() && own.IsLoopback(),
			own.IsUnspecified() && link.Local(addr):
			return true
		}
	}
	return false
}
