package discover

import (
	"slices"
	"testing"

	. "github.com/tributary-http/tributary/internal/net/link/linktest"

	"github.com/vishvananda/netlink"
)

// TestWorld: an interface leads to the internet if most of it is reached through that interface, whatever the routes to some hosts
// are.
func TestWorld(t *testing.T) {
	if !Inside(t) {
		return
	}
	TwoLinks(t)
	k, err := openKernel(nil)
	Must(t, err)
	defer k.close()
	via := func(name string, networks ...string) {
		t.Helper()
		for _, n := range networks {
			Must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: Dev(t, name).Attrs().Index, Dst: ParseCIDR(t, n).IPNet}))
		}
	}
	leads := func(t *testing.T, want ...string) {
		t.Helper()
		all, err := k.interfaces()
		Must(t, err)
		var got []string
		for _, i := range all {
			if i.World4 {
				got = append(got, i.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the world is reached through %v, want %v", got, want)
		}
	}
	t.Run("R198 hosts of a split VPN", func(t *testing.T) {
		leads(t, "a0")
		via("b0", "8.8.8.8/32", "1.1.1.1/32", "9.9.9.0/24")
		leads(t, "a0")
	})
	t.Run("R198 a VPN with everything but private networks, and a host beside it", func(t *testing.T) {
		Must(t, netlink.RouteDel(&netlink.Route{LinkIndex: Dev(t, "b0").Attrs().Index, Dst: ParseCIDR(t, "8.8.8.8/32").IPNet}))
		via("a0", "8.8.8.8/32")
		via("b0", "0.0.0.0/5", "8.0.0.0/7", "11.0.0.0/8", "12.0.0.0/6", "16.0.0.0/4", "32.0.0.0/3", "64.0.0.0/2", "128.0.0.0/3",
			"160.0.0.0/5", "168.0.0.0/6", "172.0.0.0/12", "172.32.0.0/11", "172.64.0.0/10", "172.128.0.0/9", "173.0.0.0/8", "174.0.0.0/7",
			"176.0.0.0/4", "192.0.0.0/9", "192.128.0.0/11", "192.160.0.0/13", "192.169.0.0/16", "192.170.0.0/15", "192.172.0.0/14",
			"192.176.0.0/12", "192.192.0.0/10", "193.0.0.0/8", "194.0.0.0/7", "196.0.0.0/6", "200.0.0.0/5", "208.0.0.0/4")
		leads(t, "b0")
	})
}
