package discover

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/net/link"
)

func addr(s string) Address { return Address{Addr: netip.MustParseAddr(s)} }

// good is an Ethernet interface that is a link; each case spoils it.
func good() Interface {
	return Interface{
		Name: "eth0", Index: 2, Up: true, State: "up", Type: "device", Encap: "ether",
		Addrs:  []Address{addr("192.0.2.7"), addr("fe80::7"), addr("2001:db8::7")},
		Routes: []Route{{Metric: 200}, {Six: true, Metric: 1024}},
	}
}

// TestTaken: an interface whose name belongs to another kind of link is left alone, even if that name is to be used.
func TestTaken(t *testing.T) {
	tun := good()
	tun.Type, tun.Encap, tun.World4, tun.World6 = "tuntap", "none", true, true
	for name, i := range map[string]Interface{"ethernet": good(), "a VPN": tun} {
		for _, o := range []Options{{Taken: []string{"eth0", "office"}}, {Taken: []string{"eth0", "office"}, Names: []string{"eth0", "office"}}} {
			cs := candidates([]Interface{i}, o)
			if len(cs) != 1 || cs[0].Use || name == "ethernet" && !strings.Contains(cs[0].Reason, "(via)") {
				t.Errorf("%s: %+v", name, cs)
			}
		}
	}
}

// TestSoon: what the kernel alone may make usable within seconds is told from what takes a hand.
func TestSoon(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Interface)
		soon   bool
	}{
		"a link":                      {func(*Interface) {}, false},
		"no carrier yet":              {func(i *Interface) { i.State = "lowerlayerdown" }, true},
		"no cable, so no address":     {func(i *Interface) { i.State, i.Addrs, i.Routes = "down", nil, nil }, false},
		"no carrier, and no route":    {func(i *Interface) { i.State, i.Routes = "down", nil }, false},
		"its address is not proven":   {func(i *Interface) { i.Addrs = []Address{{Addr: addr("2001:db8::7").Addr, Unproven: true}} }, true},
		"switched off":                {func(i *Interface) { i.Up, i.State = false, "down" }, false},
		"a bridge nobody routes over": {func(i *Interface) { i.Type, i.State = "bridge", "down" }, false},
	} {
		i := good()
		c.change(&i)
		if got := decide(i, Options{}); got.Soon != c.soon || got.Use != (name == "a link") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestDecide(t *testing.T) {
	typed := func(name, typ, encap string) func(*Interface) {
		return func(i *Interface) { i.Name, i.Type, i.Encap = name, typ, encap }
	}
	tests := []struct {
		name   string
		change func(*Interface)
		names  []string
		use    bool
		kind   string
		reason string // part of it
	}{
		{"ethernet", func(*Interface) {}, nil, true, link.KindEthernet, "default route"},
		{"state unknown", func(i *Interface) { i.State = "unknown" }, nil, true, link.KindEthernet, ""},
		{"wifi", func(i *Interface) { i.Wireless = true }, nil, true, link.KindWiFi, ""},
		{"modem without a link layer", func(i *Interface) { i.WWAN, i.Encap = true, "none" }, nil, true, link.KindCellular, ""},
		{"modem of a phone", typed("rmnet_data0", "rmnet", "unknown519"), nil, true, link.KindCellular, ""},
		{"bond", typed("bond0", "bond", "ether"), nil, true, link.KindEthernet, ""},
		{"vlan on hardware", func(i *Interface) { i.Type, i.ParentReal = "vlan", true }, nil, true, link.KindVLAN, ""},
		{"vlan on a veth", typed("v.7", "vlan", "ether"), nil, false, link.KindVLAN, "VLAN on a virtual device"},
		{"loopback", typed("lo", "device", "loopback"), nil, false, link.KindLoopback, "loopback"},
		{"tun", typed("tun0", "tuntap", "none"), nil, false, link.KindTunnel, "VPN"},
		{"tap seen in sysfs only", func(i *Interface) { i.Tun = true }, nil, false, link.KindTunnel, "VPN"},
		{"wireguard", typed("wg0", "wireguard", "none"), nil, false, link.KindTunnel, "--link wg0"},
		{"VPN driver that names no type", typed("x0", "device", "none"), nil, false, link.KindTunnel, "VPN"},
		{"ppp", typed("ppp0", "ppp", "ppp"), nil, false, link.KindPPP, "modem or a VPN"},
		{"docker0", typed("docker0", "bridge", "ether"), nil, false, link.KindBridge, "bridge"},
		{"veth", typed("veth1a2b", "veth", "ether"), nil, false, link.KindVirtual, "veth"},
		{"dummy", typed("dummy0", "dummy", "ether"), nil, false, link.KindVirtual, "dummy"},
		{"ifb", typed("ifb0", "ifb", "ether"), nil, false, link.KindVirtual, "ifb"},
		{"macvlan", typed("mv0", "macvlan", "ether"), nil, false, link.KindVirtual, "macvlan"},

		{"named tun", typed("tun0", "tuntap", "none"), []string{"tun0"}, true, link.KindTunnel, "named"},
		{"named veth", typed("v0", "veth", "ether"), []string{"x", "v0"}, true, link.KindVirtual, "named"},
		{"not named", func(*Interface) {}, []string{"wlan0"}, false, link.KindEthernet, "not one of the links"},
		{"named but down", func(i *Interface) { i.Up = false }, []string{"eth0"}, false, link.KindEthernet, "ip link set eth0 up"},
		{"named without a route", func(i *Interface) { i.Routes = nil }, []string{"eth0"}, true, link.KindEthernet, "own networks"},

		{"down; to enable", func(i *Interface) { i.Up, i.State = false, "down" }, nil, false, link.KindEthernet, "down; to enable"},
		{"no carrier", func(i *Interface) { i.State = "down" }, nil, false, link.KindEthernet, "no carrier"},
		{"not associated", func(i *Interface) { i.State = "dormant" }, nil, false, link.KindEthernet, "dormant"},
		{"no address", func(i *Interface) { i.Addrs = nil }, nil, false, link.KindEthernet, "no global address"},
		{"link-local only", func(i *Interface) { i.Addrs = []Address{addr("169.254.1.1"), addr("fe80::1")} }, nil, false, link.KindEthernet, "no global address"},
		{
			"address not proven yet", func(i *Interface) { i.Addrs = []Address{{Addr: netip.MustParseAddr("2001:db8::1"), Unproven: true}} },
			nil, false, link.KindEthernet, "duplicates",
		},
		{"no default route", func(i *Interface) { i.Routes = nil }, nil, false, link.KindEthernet, "no default route"},
		{
			"default route of the other family",
			func(i *Interface) { i.Addrs, i.Routes = []Address{addr("192.0.2.7")}, []Route{{Six: true}} },
			nil, false, link.KindEthernet, "family",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := good()
			tt.change(&i)
			c := decide(i, Options{Names: tt.names})
			if c.Use != tt.use || c.Link.Kind != tt.kind || !strings.Contains(c.Reason, tt.reason) || c.Reason == "" {
				t.Errorf("got %v %s (%s), want %v %s (%s)", c.Use, c.Link.Kind, c.Reason, tt.use, tt.kind, tt.reason)
			}
			if c.Use && (len(c.Link.Addrs) == 0 || c.Link.Name != i.Name || c.Link.Index != i.Index) {
				t.Errorf("used as %+v", c.Link)
			}
		})
	}
}

func TestDecideFillsTheLink(t *testing.T) {
	t.Run("lowest metric of the default routes", func(t *testing.T) {
		i := good()
		i.Routes = []Route{{Metric: 600}, {Metric: 100}, {Six: true, Metric: 1024}}
		if got := decide(i, Options{}).Link.Metric; got != 100 {
			t.Errorf("metric %d", got)
		}
	})
	t.Run("metrics of a table of its own do not compare", func(t *testing.T) {
		i := good()
		i.Routes = []Route{{Metric: 600}, {Metric: 0, Own: true}, {Six: true, Metric: 1024}}
		if got := decide(i, Options{}).Link.Metric; got != 600 {
			t.Errorf("metric %d, want that of the main table", got)
		}
		i.Routes = []Route{{Metric: 0, Own: true}}
		if got := decide(i, Options{}).Link.Metric; got != link.Unranked {
			t.Errorf("metric %d of a link that the main table does not know, want the last place", got)
		}
		i.Routes = nil
		if got := decide(i, Options{Names: []string{"eth0"}}).Link.Metric; got != link.Unranked {
			t.Errorf("metric %d of a link without a default route, want the last place", got)
		}
	})
	t.Run("R148 a family without a default route is left out", func(t *testing.T) {
		i := good()
		i.Routes = []Route{{Metric: 1}}
		if got := decide(i, Options{}).Link.Addrs; !slices.Equal(got, []netip.Addr{netip.MustParseAddr("192.0.2.7")}) {
			t.Errorf("addresses %v", got)
		}
	})
	t.Run("R184 networks of the global addresses", func(t *testing.T) {
		i := good()
		i.Addrs = []Address{
			{Addr: netip.MustParseAddr("192.168.1.7"), Bits: 24},
			{Addr: netip.MustParseAddr("fe80::7"), Bits: 64},
			{Addr: netip.MustParseAddr("2001:db8::7"), Bits: 64},
			{Addr: netip.MustParseAddr("2001:db8::8"), Bits: 64, Deprecated: true},
		}
		want := []netip.Prefix{netip.MustParsePrefix("192.168.1.0/24"), netip.MustParsePrefix("2001:db8::/64")}
		if got := decide(i, Options{}).Link.Prefixes; !slices.Equal(got, want) {
			t.Errorf("networks %v", got)
		}
	})
	t.Run("deprecated addresses come last", func(t *testing.T) {
		i := good()
		i.Addrs = []Address{{Addr: netip.MustParseAddr("2001:db8::1"), Deprecated: true}, addr("2001:db8::2")}
		if got := decide(i, Options{}).Link.Addrs[0]; got != netip.MustParseAddr("2001:db8::2") {
			t.Errorf("first is %v", got)
		}
	})
	t.Run("source routing, only if a family has no other way", func(t *testing.T) {
		i := good()
		i.Routes = []Route{{SourceOnly: true}, {}, {Six: true}}
		if decide(i, Options{}).Link.SourceRouted {
			t.Error("source routed although a plain route exists")
		}
		i.Routes = []Route{{SourceOnly: true}, {Six: true}}
		if !decide(i, Options{}).Link.SourceRouted {
			t.Error("not source routed")
		}
	})
	t.Run("metered: cellular, unless told", func(t *testing.T) {
		i := good()
		i.WWAN = true
		if !decide(i, Options{}).Link.Terms.Metered || decide(i, Options{Metered: map[string]bool{"eth0": false}}).Link.Terms.Metered {
			t.Error("cellular")
		}
		if decide(good(), Options{}).Link.Terms.Metered || !decide(good(), Options{Metered: map[string]bool{"eth0": true}}).Link.Terms.Metered {
			t.Error("ethernet")
		}
	})
	t.Run("configured DNS servers", func(t *testing.T) {
		dns := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.53:53")}
		if got := decide(good(), Options{DNS: map[string][]netip.AddrPort{"eth0": dns}}).Link.DNS; !slices.Equal(got, dns) {
			t.Errorf("servers %v", got)
		}
	})
}

func TestCandidates(t *testing.T) {
	lo, slow, fast := good(), good(), good()
	lo.Name, lo.Encap = "lo", "loopback"
	slow.Name, slow.Routes = "a", []Route{{Metric: 600}}
	fast.Name, fast.Routes = "b", []Route{{Metric: 100}}
	all := []Interface{lo, slow, fast}
	names := func(o Options) (s []string) {
		for _, c := range candidates(all, o) {
			s = append(s, c.Link.Name)
		}
		return s
	}
	if got := names(Options{}); !slices.Equal(got, []string{"b", "a", "lo"}) {
		t.Errorf("links first, the preferred one before: %v", got)
	}
	if got := names(Options{Names: []string{"a", "gone"}}); !slices.Equal(got, []string{"a", "b", "lo", "gone"}) {
		t.Errorf("a missing name is listed: %v", got)
	}
	if got := links(all, Options{Names: []string{"a", "gone"}}); len(got) != 1 || got[0].Name != "a" {
		t.Errorf("links %v", got)
	}
}

type vpnCase struct {
	name string
	all  []Interface
	o    Options
	want map[string]string // name of a link -> its addresses
}

// follows reports whether a tunnel among the links carries the system's traffic, and is followed.
func (c vpnCase) follows() bool {
	carries := slices.ContainsFunc(c.all, func(i Interface) bool { return i.Name != "eth0" && (i.World4 || i.World6) })
	return carries && len(c.o.Names) == 0 && !c.o.Around
}

// TestSystemsOwn: the interface through which the system's own traffic leaves is a link whatever its kind: a container's veth, the bridge
// of a host of virtual machines, a lone TUN. Others of these kinds are links only if they are named.
func TestSystemsOwn(t *testing.T) {
	for typ, odd := range map[string]string{
		"veth": "a virtual device (veth)", "bridge": "a bridge", "macvlan": "a virtual device (macvlan)", "": "",
	} {
		i := good()
		i.Type, i.State, i.World4 = typ, "unknown", true
		other := i
		other.Name, other.World4 = "other0", false
		ls := links([]Interface{i, other}, Options{})
		if want := 1; typ != "" && len(ls) != want || ls[0].Name != "eth0" || ls[0].Odd != odd {
			t.Errorf("%s: %+v", typ, ls)
		}
		if named := links([]Interface{i, other}, Options{Names: []string{"eth0", "other0"}}); len(named) != 2 || named[0].Odd+named[1].Odd != "" {
			t.Errorf("%s, named: %+v", typ, named)
		}
		if off := links([]Interface{i}, Options{Exclude: []string{"eth0"}}); len(off) != 0 {
			t.Errorf("%s, excluded: %+v", typ, off)
		}
	}
	tun := good()
	tun.Type, tun.Encap, tun.World4 = "tun", "none", true
	if ls := links([]Interface{tun}, Options{}); len(ls) != 1 || !ls[0].VPN {
		t.Errorf("a lone TUN: %+v", ls)
	}
}

// TestVPN: a VPN that carries the system's traffic is the link, and the links that it runs over rest, family by family, unless they
// are to go around it.
func TestVPN(t *testing.T) {
	eth := good()
	vpn := Interface{
		Name: "wg0", Index: 9, Up: true, State: "unknown", Type: "wireguard", Encap: "none",
		Addrs:  []Address{addr("10.2.0.2"), addr("fd02::2")},
		Routes: []Route{{Own: true}, {Six: true, Own: true}}, World4: true, World6: true,
	}
	four := vpn // carries IPv4 only; IPv6 leaves as before
	four.World6, four.Routes = false, []Route{{Own: true}}
	ethSix := good()
	ethSix.World6 = true
	halves := vpn // 0.0.0.0/1 and 128.0.0.0/1 in place of a default route
	halves.Routes = nil
	split := vpn // for its own networks only
	split.World4, split.World6, split.Routes = false, false, nil
	ppp := vpn
	ppp.Name, ppp.Type, ppp.Encap = "ppp0", "ppp", "ppp"
	bridge := vpn
	bridge.Name, bridge.Type, bridge.Encap = "br0", "bridge", "ether"
	for _, c := range []vpnCase{
		{"followed", []Interface{eth, vpn}, Options{}, map[string]string{"wg0": "[10.2.0.2 fd02::2]"}},
		{"followed, without default routes", []Interface{eth, halves}, Options{}, map[string]string{"wg0": "[10.2.0.2 fd02::2]"}},
		{"around", []Interface{eth, vpn}, Options{Around: true}, map[string]string{"eth0": "[192.0.2.7 2001:db8::7]"}},
		{"IPv4 only", []Interface{ethSix, four}, Options{}, map[string]string{"wg0": "[10.2.0.2]", "eth0": "[2001:db8::7]"}},
		{"split", []Interface{eth, split}, Options{}, map[string]string{"eth0": "[192.0.2.7 2001:db8::7]"}},
		{"a PPP device", []Interface{eth, ppp}, Options{}, map[string]string{"ppp0": "[10.2.0.2 fd02::2]"}},
		{"a bridge is none, but a link", []Interface{eth, bridge}, Options{}, map[string]string{"br0": "[10.2.0.2 fd02::2]", "eth0": "[192.0.2.7 2001:db8::7]"}},
		{"the link beneath is named", []Interface{eth, vpn}, Options{Names: []string{"eth0"}}, nil},
		{"the link beneath is enabled", []Interface{eth, vpn}, Options{Include: []string{"eth0"}}, map[string]string{"wg0": "[10.2.0.2 fd02::2]"}},
		{"the VPN is enabled", []Interface{eth, vpn}, Options{Include: []string{"wg0"}}, map[string]string{"wg0": "[10.2.0.2 fd02::2]"}},
		{"the VPN and the link beneath are enabled", []Interface{eth, vpn}, Options{Include: []string{"wg0", "eth0"}}, map[string]string{"wg0": "[10.2.0.2 fd02::2]"}},
		{"an enabled VPN that is split", []Interface{eth, split}, Options{Include: []string{"wg0"}}, map[string]string{"wg0": "[10.2.0.2 fd02::2]", "eth0": "[192.0.2.7 2001:db8::7]"}},
		{
			"the VPN is enabled, around",
			[]Interface{eth, vpn},
			Options{Include: []string{"wg0"}, Around: true},
			map[string]string{"wg0": "[10.2.0.2 fd02::2]", "eth0": "[192.0.2.7 2001:db8::7]"},
		},
		{"the VPN is disabled", []Interface{eth, vpn}, Options{Exclude: []string{"wg0"}}, nil},
		{"the VPN is disabled, around", []Interface{eth, vpn}, Options{Exclude: []string{"wg0"}, Around: true}, map[string]string{"eth0": "[192.0.2.7 2001:db8::7]"}},
		{
			"both are named",
			[]Interface{eth, vpn},
			Options{Names: []string{"eth0", "wg0"}},
			map[string]string{"wg0": "[10.2.0.2 fd02::2]", "eth0": "[192.0.2.7 2001:db8::7]"},
		},
	} {
		t.Run("R198 "+c.name, func(t *testing.T) {
			got := map[string]string{}
			for _, l := range links(c.all, c.o) {
				got[l.Name] = fmt.Sprint(l.Addrs)
				if followed := l.Name == "wg0" || l.Name == "ppp0"; l.VPN != (followed && c.follows()) {
					t.Errorf("%s: VPN %v", l.Name, l.VPN)
				}
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
			for _, k := range candidates(c.all, c.o) {
				if k.Reason == "" {
					t.Errorf("%s: no reason", k.Link.Name)
				}
			}
		})
	}
}

// TestDecideSetting: a setting for a pattern of interface names applies like one for the name itself.
func TestDecideSetting(t *testing.T) {
	yes, no := true, false
	say := func(s Setting) Candidate { return decide(good(), Options{Of: func(string) Setting { return s }}) }
	if c := say(Setting{}); !c.Use || c.Link.Terms.Metered {
		t.Errorf("nothing is said: %+v", c)
	}
	if c := say(Setting{Enabled: &no}); c.Use {
		t.Errorf("disabled: %+v", c)
	}
	dns := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.53:53")}
	if c := say(Setting{Enabled: &yes, Metered: &yes, DNS: dns}); !c.Use || !c.Link.Terms.Metered || !slices.Equal(c.Link.DNS, dns) {
		t.Errorf("metered, with servers: %+v", c)
	}
}
