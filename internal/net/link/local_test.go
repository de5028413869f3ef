package link

import (
	"net"
	"net/netip"
	"testing"
)

func TestLocal(t *testing.T) {
	own := []string{"127.0.0.1", "::ffff:127.0.0.1"}
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() { // link-local addresses mean nothing without their interface
			own = append(own, n.IP.String())
		}
	}
	for name, local := range map[string]func(netip.Addr) bool{"listed": Local, "bound": bound} {
		t.Run("R183 "+name, func(t *testing.T) {
			for _, a := range own {
				if !local(netip.MustParseAddr(a).Unmap()) {
					t.Errorf("%s is taken for another machine's", a)
				}
			}
			for _, a := range []string{"192.0.2.1", "203.0.113.254", "2001:db8:ffff::1"} {
				if local(netip.MustParseAddr(a)) {
					t.Errorf("%s is taken for this machine's", a)
				}
			}
		})
	}
}
