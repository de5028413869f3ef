package discover

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/tributary-http/tributary/internal/net/link/linktest"

	"github.com/vishvananda/netlink"

	"github.com/tributary-http/tributary/internal/net/link"
)

// testTime bounds the wait for a kernel event; TestWatch checks the exact times in virtual time.
const testTime = 10 * time.Second

// until reads snapshots until one is as wanted, and returns how long that took.
func until(t *testing.T, ch <-chan []link.Link, what string, ok func([]link.Link) bool) time.Duration {
	t.Helper()
	start := time.Now()
	var last []link.Link
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
func have(want ...string) func([]link.Link) bool {
	return func(ls []link.Link) bool {
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
	if !Inside(t) {
		return
	}
	f := TwoLinks(t)
	ctx, cancel := context.WithCancel(t.Context())
	ch, err := (&Netlink{Options: Options{Names: []string{"a0", "b0", "c0"}}}).Watch(ctx)
	Must(t, err)
	const a, b, c = "a0 10.1.0.1", "b0 10.2.0.1", "c0 10.3.0.1"
	until(t, ch, "at once", have(a, b))

	Down(t, "b0")
	until(t, ch, "interface down", have(a))
	Up(t, "b0")
	Must(t, netlink.RouteAdd(DefaultRoute(t, "b0", "10.2.0.2", 200, 0))) // the kernel dropped it
	until(t, ch, "interface up", have(a, b))

	DelAddr(t, "b0", "10.2.0.1/24")
	until(t, ch, "address gone", have(a))
	AddAddr(t, "b0", "10.2.0.9/24")
	Must(t, netlink.RouteAdd(DefaultRoute(t, "b0", "10.2.0.2", 200, 0)))
	until(t, ch, "another address", have(a, "b0 10.2.0.9"))

	AddAddr(t, "a0", "10.1.0.7/24")
	until(t, ch, "second address", have("a0 10.1.0.1,10.1.0.7", "b0 10.2.0.9"))
	DelAddr(t, "a0", "10.1.0.7/24")
	until(t, ch, "second address gone", have(a, "b0 10.2.0.9"))

	f.Join(t, "c", "10.3.0.1/24", "10.3.0.2/24")
	Must(t, netlink.RouteAdd(DefaultRoute(t, "c0", "", 300, 0))) // no gateway
	until(t, ch, "interface appears", have(a, "b0 10.2.0.9", c))
	Must(t, netlink.LinkDel(Dev(t, "c0")))
	until(t, ch, "interface vanishes", have(a, "b0 10.2.0.9"))

	cancel()
	for range ch {
	}
}

func TestNetlinkCarrierAndRoute(t *testing.T) {
	if !Inside(t) {
		return
	}
	f := TwoLinks(t)
	ctx, cancel := context.WithCancel(t.Context())
	ch, err := (&Netlink{Options: Options{Names: []string{"a0", "b0"}}}).Watch(ctx)
	Must(t, err)
	const a, b = "a0 10.1.0.1", "b0 10.2.0.1"
	until(t, ch, "at once", have(a, b))
	f.Do(func() { Down(t, "b1") })
	until(t, ch, "carrier lost", have(a))
	f.Do(func() { Up(t, "b1") })
	until(t, ch, "carrier back", have(a, b))

	// A change of metric reverses the order.
	Must(t, netlink.RouteDel(DefaultRoute(t, "b0", "10.2.0.2", 200, 0)))
	Must(t, netlink.RouteAdd(DefaultRoute(t, "b0", "10.2.0.2", 50, 0)))
	until(t, ch, "preferred", have(b, a))
	cancel()
	for range ch {
	}
}

func TestNetlinkList(t *testing.T) {
	if !Inside(t) {
		return
	}
	TwoLinks(t)
	want := map[string]string{"lo": link.KindLoopback, "a0": link.KindVirtual, "b0": link.KindVirtual}
	at := func(name string) netlink.LinkAttrs { return netlink.LinkAttrs{Name: name} }
	for _, d := range []struct {
		link netlink.Link
		kind string
	}{
		{&netlink.Tuntap{LinkAttrs: at("t0"), Mode: netlink.TUNTAP_MODE_TUN}, link.KindTunnel},
		{&netlink.Tuntap{LinkAttrs: at("t1"), Mode: netlink.TUNTAP_MODE_TAP}, link.KindTunnel},
		{&netlink.Ifb{LinkAttrs: at("i0")}, link.KindVirtual},
		{&netlink.Dummy{LinkAttrs: at("d0")}, link.KindVirtual},
		{&netlink.Bridge{LinkAttrs: at("br0")}, link.KindBridge},
		{&netlink.Wireguard{LinkAttrs: at("wg0")}, link.KindTunnel},
		{&netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "a0.7", ParentIndex: Dev(t, "a0").Attrs().Index}, VlanId: 7}, link.KindVLAN},
	} {
		if err := netlink.LinkAdd(d.link); err != nil {
			t.Logf("without %s: this kernel cannot make it: %v", d.link.Attrs().Name, err)
			continue
		}
		want[d.link.Attrs().Name] = d.kind
	}
	cs, err := (&Netlink{}).List()
	Must(t, err)
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
	Must(t, err)
	for _, c := range cs {
		t.Logf("%-6s %-9s %v %v %v", c.Link.Name, c.Link.Kind, c.Use, c.Link.Addrs, c.Reason)
		if c.Reason == "" || c.Use && len(c.Link.Addrs) == 0 {
			t.Errorf("candidate %+v", c)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ch, err := n.Watch(ctx)
	Must(t, err)
	if _, ok := <-ch; !ok {
		t.Error("nothing sent at once")
	}
	cancel()
	for range ch {
	}
}
