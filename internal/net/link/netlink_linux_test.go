package link

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// testTime bounds the wait for a kernel event; TestWatch checks the exact times in virtual time.
const testTime = 10 * time.Second

// until reads snapshots until one is as wanted, and returns how long that took.
func until(t *testing.T, ch <-chan []Link, what string, ok func([]Link) bool) time.Duration {
	t.Helper()
	start := time.Now()
	var last []Link
	for {
		select {
		case last = <-ch:
			if ok(last) {
				took := time.Since(start)
				t.Logf("%s: seen after %v", what, took.Round(100*time.Microsecond))
				return took
			}
		case <-time.After(testTime):
			t.Fatalf("%s: not seen, last are %+v", what, last)
		}
	}
}

// have accepts exactly these links, as "name addr,addr".
func have(want ...string) func([]Link) bool {
	return func(ls []Link) bool {
		var got []string
		for _, l := range ls {
			var as []string
			for _, a := range l.Addrs {
				as = append(as, a.String())
			}
			got = append(got, l.Name+" "+strings.Join(as, ","))
		}
		return slices.Equal(got, want)
	}
}

func TestNetlinkWatch(t *testing.T) {
	if !inside(t) {
		return
	}
	f := twoLinks(t)
	ctx, cancel := context.WithCancel(t.Context())
	ch, err := (&Netlink{Options: Options{Names: []string{"a0", "b0", "c0"}}}).Watch(ctx)
	must(t, err)
	const a, b, c = "a0 10.1.0.1", "b0 10.2.0.1", "c0 10.3.0.1"
	until(t, ch, "at once", have(a, b))

	down(t, "b0")
	until(t, ch, "interface down", have(a))
	up(t, "b0")
	must(t, netlink.RouteAdd(defaultRoute(t, "b0", "10.2.0.2", 200, 0))) // the kernel dropped it
	until(t, ch, "interface up", have(a, b))

	delAddr(t, "b0", "10.2.0.1/24")
	until(t, ch, "address gone", have(a))
	addAddr(t, "b0", "10.2.0.9/24")
	must(t, netlink.RouteAdd(defaultRoute(t, "b0", "10.2.0.2", 200, 0)))
	until(t, ch, "another address", have(a, "b0 10.2.0.9"))

	addAddr(t, "a0", "10.1.0.7/24")
	until(t, ch, "second address", have("a0 10.1.0.1,10.1.0.7", "b0 10.2.0.9"))
	delAddr(t, "a0", "10.1.0.7/24")
	until(t, ch, "second address gone", have(a, "b0 10.2.0.9"))

	f.join(t, "c", "10.3.0.1/24", "10.3.0.2/24")
	must(t, netlink.RouteAdd(defaultRoute(t, "c0", "", 300, 0))) // no gateway
	until(t, ch, "interface appears", have(a, "b0 10.2.0.9", c))
	must(t, netlink.LinkDel(dev(t, "c0")))
	until(t, ch, "interface vanishes", have(a, "b0 10.2.0.9"))

	cancel()
	for range ch {
	}
}

func TestNetlinkCarrierAndRoute(t *testing.T) {
	if !inside(t) {
		return
	}
	f := twoLinks(t)
	ctx, cancel := context.WithCancel(t.Context())
	ch, err := (&Netlink{Options: Options{Names: []string{"a0", "b0"}}}).Watch(ctx)
	must(t, err)
	const a, b = "a0 10.1.0.1", "b0 10.2.0.1"
	until(t, ch, "at once", have(a, b))
	f.do(func() { down(t, "b1") })
	until(t, ch, "carrier lost", have(a))
	f.do(func() { up(t, "b1") })
	until(t, ch, "carrier back", have(a, b))

	// A change of metric reverses the order.
	must(t, netlink.RouteDel(defaultRoute(t, "b0", "10.2.0.2", 200, 0)))
	must(t, netlink.RouteAdd(defaultRoute(t, "b0", "10.2.0.2", 50, 0)))
	until(t, ch, "preferred", have(b, a))
	cancel()
	for range ch {
	}
}

func TestNetlinkList(t *testing.T) {
	if !inside(t) {
		return
	}
	twoLinks(t)
	want := map[string]string{"lo": KindLoopback, "a0": KindVirtual, "b0": KindVirtual}
	at := func(name string) netlink.LinkAttrs { return netlink.LinkAttrs{Name: name} }
	for _, d := range []struct {
		link netlink.Link
		kind string
	}{
		{&netlink.Tuntap{LinkAttrs: at("t0"), Mode: netlink.TUNTAP_MODE_TUN}, KindTunnel},
		{&netlink.Tuntap{LinkAttrs: at("t1"), Mode: netlink.TUNTAP_MODE_TAP}, KindTunnel},
		{&netlink.Ifb{LinkAttrs: at("i0")}, KindVirtual},
		{&netlink.Dummy{LinkAttrs: at("d0")}, KindVirtual},
		{&netlink.Bridge{LinkAttrs: at("br0")}, KindBridge},
		{&netlink.Wireguard{LinkAttrs: at("wg0")}, KindTunnel},
		{&netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "a0.7", ParentIndex: dev(t, "a0").Attrs().Index}, VlanId: 7}, KindVLAN},
	} {
		if err := netlink.LinkAdd(d.link); err != nil {
			t.Logf("without %s: this kernel cannot make it: %v", d.link.Attrs().Name, err)
			continue
		}
		want[d.link.Attrs().Name] = d.kind
	}
	cs, err := (&Netlink{}).List()
	must(t, err)
	for name, kind := range want {
		i := slices.IndexFunc(cs, func(c Candidate) bool { return c.Link.Name == name })
		if i < 0 {
			t.Errorf("%s is missing", name)
			continue
		}
		if c := cs[i]; c.Use != (name == "a0") || c.Link.Kind != kind || c.Reason == "" {
			t.Errorf("%+v, want %s", c, kind)
		}
	}
	for _, c := range cs {
		t.Logf("%-6s %-9s %v", c.Link.Name, c.Link.Kind, c.Reason)
	}
}

// Anybody can list and observe the interfaces of this machine.
func TestNetlinkHere(t *testing.T) {
	n := &Netlink{}
	cs, err := n.List()
	must(t, err)
	for _, c := range cs {
		t.Logf("%-6s %-9s %v %v %v", c.Link.Name, c.Link.Kind, c.Use, c.Link.Addrs, c.Reason)
		if c.Reason == "" || c.Use && len(c.Link.Addrs) == 0 {
			t.Errorf("candidate %+v", c)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ch, err := n.Watch(ctx)
	must(t, err)
	if _, ok := <-ch; !ok {
		t.Error("nothing sent at once")
	}
	cancel()
	for range ch {
	}
}
