package link

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
)

func TestDestinations(t *testing.T) {
	own := netip.MustParseAddrPort("192.0.2.1:8080")
	d := &Destinations{Own: func(a netip.AddrPort) bool { return a == own }}
	check := func(d *Destinations, addr string, want error) {
		t.Helper()
		if _, err := d.Check(Link{Name: "w0"}, "", netip.AddrPortFrom(netip.MustParseAddr(addr), 80)); !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", addr, err, want)
		}
	}
	t.Run("R183 denied", func(t *testing.T) {
		for _, a := range []string{
			"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "255.255.255.255", "224.0.0.1", "239.255.255.250",
			"169.254.1.1", "169.254.169.254", "100.100.100.200", "::", "::1", "fe80::1", "fe80::1%eth0", "febf::1", "ff02::1",
			"ff0e::1", "fd00:ec2::254", "fd00:ec2::23", "fd00:ec2::253", "fd20:ce::254", "168.63.129.16", "fd00:c1::a9fe:a9fe", "192.0.0.192",
			"fd00:42::42", "::ffff:168.63.129.16", "64:ff9b::a83f:8110",
			// v4-mapped and -compatible
			"::ffff:127.0.0.1", "::ffff:0.0.0.0", "::ffff:169.254.169.254", "::ffff:7f00:1", "::127.0.0.1", "::a9fe:a9fe",
			// NAT64, 6to4, Teredo: as server, and as client with its bits inverted
			"64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::6464:64c8", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1",
			"2002:0:0::1", "2001:0:7f00:1::", "2001:0:c000:201::80ff:fffe",
		} {
			check(d, a, ErrDenied)
		}
	})
	t.Run("R183 allowed", func(t *testing.T) {
		for _, a := range []string{
			"192.0.2.1", "1.1.1.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "fd00::1", "2001:db8::1", "::ffff:192.0.2.1",
			"64:ff9b::c000:201", "2002:c000:201::1", "2001:0:c000:201::3fff:fdfe", "100.100.100.201", "100.64.0.1", "223.255.255.255", "168.63.129.15",
			"fd20:ce::253", "fd00:ec3::254",
		} {
			check(d, a, nil)
		}
	})
	t.Run("R15 own listeners, exceptions or not", func(t *testing.T) {
		all := &Destinations{Own: d.Own, Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}
		for _, addr := range []string{"192.0.2.1", "::ffff:192.0.2.1"} {
			if _, err := all.Check(Link{}, "", netip.AddrPortFrom(netip.MustParseAddr(addr), 8080)); !errors.Is(err, ErrDenied) {
				t.Errorf("%s: %v", addr, err)
			}
		}
	})
	t.Run("R183 exceptions", func(t *testing.T) {
		some := &Destinations{DenyPrivate: true, Allow: []netip.Prefix{
			netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fe80::/10"),
		}}
		for _, a := range []string{"127.0.0.1", "::ffff:127.0.0.1", "10.1.2.3", "fe80::1", "64:ff9b::7f00:1"} {
			check(some, a, nil)
		}
		for _, a := range []string{"::1", "10.2.0.1", "169.254.169.254"} {
			check(some, a, ErrDenied)
		}
	})
	t.Run("R184 deny_private", func(t *testing.T) {
		closed := &Destinations{DenyPrivate: true}
		for _, a := range []string{"10.0.0.1", "172.31.0.1", "192.168.0.1", "100.64.0.1", "fc00::1", "fd12::1", "fec0::1", "64:ff9b::a00:1", "2002:c0a8:1::1"} {
			check(closed, a, ErrDenied)
		}
		for _, a := range []string{"172.32.0.1", "93.184.215.14", "2606:4700::1"} {
			check(closed, a, nil)
		}
	})
	t.Run("R183 the networks of documentation, which are nobody's inside", func(t *testing.T) {
		closed := &Destinations{DenyPrivate: true}
		for _, a := range []string{"192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1"} {
			check(closed, a, ErrDenied)
			if _, err := d.Check(Link{}, "www.example.com", netip.AddrPortFrom(netip.MustParseAddr(a), 80)); err != nil {
				t.Errorf("%s: %v", a, err)
			}
			if !Public(a) {
				t.Errorf("%s is not public", a)
			}
		}
	})
	t.Run("R183 IANA's special-purpose networks, except what is globally reachable", func(t *testing.T) {
		closed := &Destinations{DenyPrivate: true}
		for _, a := range []string{
			"192.0.0.1", "192.0.0.8", "192.0.0.170", "192.88.99.1", "198.18.0.1", "198.19.255.254", "240.0.0.1", "254.1.2.3",
			"100::1", "100:0:0:1::1", "2001:2::1", "2001:10::1", "5f00::1",
			"::ffff:198.18.0.1", "64:ff9b::c612:1", "2002:c612:1::1", "2001:1::4",
		} {
			check(closed, a, ErrDenied)
			if _, err := d.Check(Link{}, "www.example.com", netip.AddrPortFrom(netip.MustParseAddr(a), 80)); !errors.Is(err, ErrRebound) {
				t.Errorf("a public name may lead to %s: %v", a, err)
			}
			if Public(a) {
				t.Errorf("%s is public", a)
			}
			check(d, a, nil)
		}
		for _, a := range []string{
			"192.0.0.9", "192.0.0.10", "192.31.196.1", "192.52.193.1", "192.175.48.1", "198.17.255.255", "198.20.0.1", "223.255.255.255",
			"2001:1::1", "2001:1::2", "2001:3::1", "2001:4:112::1", "2001:20::1", "2001:30::1", "2001:200::1", "2620:4f:8000::1",
			"2001:0:5db8:d70e::a247:28f1", "64:ff9b::5db8:d70e", "64:ff9b:1::5db8:d70e", "2002:5db8:d70e::1",
		} {
			check(closed, a, nil)
			if _, err := d.Check(Link{}, "www.example.com", netip.AddrPortFrom(netip.MustParseAddr(a), 80)); err != nil {
				t.Errorf("%s: %v", a, err)
			}
			if !Public(a) {
				t.Errorf("%s is not public", a)
			}
		}
	})
	t.Run("R184 what is on a link is reached over that link", func(t *testing.T) {
		home := &Destinations{}
		prefix := func(s string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(s)} }
		home.SetLinks([]Link{
			{Name: "eth0", Prefixes: prefix("192.168.1.0/24")},
			{Name: "w0", Prefixes: append(prefix("192.168.1.0/24"), prefix("192.168.2.0/24")...)},
			{Name: "x0", Prefixes: append(prefix("203.0.113.0/24"), prefix("fd77:1::/64")...)},
		})
		check(home, "192.168.1.9", ErrOffLink) // the better one of two
		check(home, "192.168.2.9", nil)
		check(home, "192.168.3.9", nil)
		check(home, "203.0.113.9", nil) // not private
		check(home, "fd77:1::9", ErrOffLink)
		check(home, "::ffff:192.168.1.9", ErrOffLink)
	})
}

// TestRebinding: a public name must not lead to a private network, unless that is allowed.
func TestRebinding(t *testing.T) {
	d := &Destinations{Allow: prefixes("192.168.7.0/24")}
	for _, c := range []struct {
		name, addr string
		want       error
	}{
		{"www.example.com", "192.168.1.1", ErrRebound},
		{"www.example.com.", "10.0.0.1", ErrRebound},
		{"example.com", "172.16.0.1", ErrRebound},
		{"example.com", "100.64.0.1", ErrRebound},
		{"example.com", "fd12::1", ErrRebound},
		{"example.com", "::ffff:192.168.1.1", ErrRebound},
		{"example.com", "64:ff9b::c0a8:101", ErrRebound},
		{"example.com", "127.0.0.1", ErrDenied},
		{"evil-local.example.com", "192.168.1.1", ErrRebound},
		{"notlocal", "192.168.1.1", nil},
		{"router", "192.168.1.1", nil},
		{"nas.local", "192.168.1.1", nil},
		{"NAS.LOCAL.", "192.168.1.1", nil},
		{"a.b.home.arpa", "192.168.1.1", nil},
		{"git.internal", "10.0.0.1", nil},
		{"router.lan", "192.168.1.1", nil},
		{"origin.test", "10.0.0.1", nil},
		{"", "192.168.1.1", nil}, // the address itself
		{"example.com", "192.168.7.1", nil},
		{"example.com", "93.184.215.14", nil},
		{"example.com", "2606:4700::1", nil},
	} {
		t.Run("R183 "+c.name+" at "+c.addr, func(t *testing.T) {
			_, err := d.Check(Link{Name: "w0"}, c.name, netip.AddrPortFrom(netip.MustParseAddr(c.addr), 80))
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) || errors.Is(err, ErrRebound) != errors.Is(c.want, ErrRebound) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

// system is a Router with a few routes; the first one that matches counts.
type system struct {
	routes  []systemRoute
	devices map[int]Link
}

type systemRoute struct {
	to string
	NextHop
}

func (s system) NextHop(a netip.Addr) (NextHop, error) {
	for _, r := range s.routes {
		if netip.MustParsePrefix(r.to).Contains(a) {
			return r.NextHop, nil
		}
	}
	return NextHop{}, nil
}

func (s system) Device(index int) (Link, error) {
	if l, ok := s.devices[index]; ok {
		return l, nil
	}
	return Link{}, errors.New("no such device")
}

// TestNextHops: traffic that the system would send over an interface that is not a link does not leave over any link.
func TestNextHops(t *testing.T) {
	const wlan, lte, eth, wg, bridge, corp, lo = 1, 2, 3, 4, 5, 6, 7
	s := system{
		devices: map[int]Link{
			eth: {Name: "eth0", Index: eth, Kind: KindEthernet}, wg: {Name: "wg0", Index: wg, Kind: KindTunnel},
			bridge: {Name: "docker0", Index: bridge, Kind: KindBridge}, lo: {Name: "lo", Index: lo, Kind: KindLoopback},
		},
		routes: []systemRoute{
			{"127.0.0.0/8", NextHop{Local: true, Index: lo}},
			{"192.168.1.7/32", NextHop{Local: true, Index: wlan}},
			{"203.0.113.7/32", NextHop{Local: true, Index: eth}},
			{"192.168.1.0/24", NextHop{Index: wlan}},
			{"198.18.0.0/24", NextHop{Index: wlan}},
			{"10.9.0.0/16", NextHop{Index: lte}},
			{"203.0.113.0/24", NextHop{Index: eth}},
			{"10.8.0.0/24", NextHop{Index: wg}},
			{"198.51.100.0/24", NextHop{Index: wg}},
			{"172.17.0.0/16", NextHop{Index: bridge}},
			{"10.66.0.0/16", NextHop{Blocked: true}},
			{"10.7.0.0/16", NextHop{Index: corp}},
			{"198.51.101.0/24", NextHop{Index: corp}},
			{"10.99.0.0/16", NextHop{}},
			{"0.0.0.0/0", NextHop{Index: wlan, Default: true}},
		},
	}
	links := []Link{
		{Name: "wlan0", Index: wlan, Kind: KindWiFi, Prefixes: prefixes("192.168.1.0/24")},
		{Name: "lte0", Index: lte, Kind: KindCellular},
		{Name: "corp", Index: corp, Kind: KindTunnel, Confined: true}, // named by the user; without a default route
		{Name: "office", Via: "socks5://127.0.0.1:1080"},
	}
	full := s
	full.routes = append([]systemRoute{
		{"127.0.0.0/8", NextHop{Local: true, Index: lo}}, {"192.168.1.0/24", NextHop{Index: wlan}}, {"0.0.0.0/0", NextHop{Index: wg, Default: true}},
	}, s.routes...)
	followed := []Link{{Name: "wg0", Index: wg, Kind: KindTunnel, VPN: true}, links[0], links[3]}
	enabled := []Link{{Name: "wg0", Index: wg, Kind: KindTunnel}, links[0]} // as it was before the VPN carried everything
	absent := s                                                             // the system prefers a link that is not used
	absent.routes = append([]systemRoute{{"0.0.0.0/0", NextHop{Index: eth, Default: true}}}, s.routes...)
	all := prefixes("0.0.0.0/0")
	for _, c := range []struct {
		name   string
		router Router
		links  []Link
		around bool
		named  string
		allow  []netip.Prefix
		over   int // of links
		addr   string
		want   error
		bound  string // "" = the link
	}{
		{name: "the world over wlan", router: s, over: 0, addr: "192.0.2.1"},
		{name: "the world over lte", router: s, over: 1, addr: "192.0.2.1"},
		{name: "R184 a private address of wlan's over wlan", router: s, over: 0, addr: "192.168.1.9"},
		{name: "R184 a private address of wlan's over lte", router: s, over: 1, addr: "192.168.1.9", want: ErrOffLink},
		{name: "a public address of wlan's over lte", router: s, over: 1, addr: "198.18.0.9"},
		{name: "R184 a VPN's private address", router: s, over: 0, addr: "10.8.0.5", want: ErrOffLink},
		{name: "R184 a VPN's public address", router: s, over: 1, addr: "198.51.100.5", want: ErrOffLink},
		{name: "R184 a bridge's address", router: s, over: 0, addr: "172.17.0.2", want: ErrOffLink},
		{name: "R184 an address of a link that is not used", router: s, over: 0, addr: "203.0.113.9", want: ErrOffLink},
		{name: "R184 an address that a route forbids", router: s, over: 0, addr: "10.66.0.1", want: ErrOffLink},
		{name: "R184 the private address of a named tunnel over wlan", router: s, over: 0, addr: "10.7.0.1", want: ErrOffLink},
		{name: "R184 the public address of a named tunnel over wlan", router: s, over: 0, addr: "198.51.101.1", want: ErrOffLink},
		{name: "its own over the named tunnel", router: s, over: 2, addr: "198.51.101.1"},
		{name: "the world over a tunnel that does not lead there", router: s, over: 2, addr: "192.0.2.1", want: ErrOffLink},
		{name: "no route at all", router: s, over: 1, addr: "10.99.0.1"},
		{name: "R183 an own address of a link", router: s, over: 0, addr: "192.168.1.7", want: ErrDenied},
		{name: "R183 an own address of another link", router: s, over: 1, addr: "192.168.1.7", want: ErrDenied},
		{name: "R183 an own address of what is no link", router: s, over: 0, addr: "203.0.113.7", want: ErrDenied},
		{name: "R183 an own address, mapped", router: s, over: 0, addr: "::ffff:203.0.113.7", want: ErrDenied},
		{name: "R183 an own address by NAT64", router: s, over: 0, addr: "64:ff9b::cb00:7107", want: ErrDenied},
		{name: "R183 an own address by 6to4", router: s, over: 0, addr: "2002:cb00:7107::1", want: ErrDenied},
		{name: "R199 an own address that is allowed", router: s, allow: all, over: 1, addr: "203.0.113.7", bound: "eth0"},
		{name: "R199 loopback that is allowed", router: s, allow: all, over: 0, addr: "127.0.0.1", bound: "lo"},
		{name: "R184 allowed, but a VPN's", router: s, allow: all, over: 0, addr: "10.8.0.5", want: ErrOffLink},
		{name: "R184 the world beneath a VPN that is followed", router: full, links: followed, over: 1, addr: "192.0.2.1", want: ErrOffLink},
		{name: "R184 the world over a VPN that is followed", router: full, links: followed, over: 0, addr: "192.0.2.1"},
		{name: "R184 the world beneath a VPN that nobody knows of yet", router: full, over: 0, addr: "192.0.2.1", want: ErrOffLink},
		{name: "R198 the world beneath an enabled VPN that has just come to carry everything", router: full, links: enabled, over: 1, addr: "192.0.2.1", want: ErrOffLink},
		{name: "the world over it", router: full, links: enabled, over: 0, addr: "192.0.2.1"},
		{name: "the world beside a VPN that is named", router: full, links: enabled, named: "wg0", over: 1, addr: "192.0.2.1"},
		{name: "the world beside a tunnel that is named and has lost its addresses", router: full, named: "wg0", over: 0, addr: "192.0.2.1"},
		{name: "R184 the world beneath a VPN, though another tunnel is named", router: full, named: "corp", over: 0, addr: "192.0.2.1", want: ErrOffLink},
		{name: "the world around an enabled VPN", router: full, links: enabled, around: true, over: 1, addr: "192.0.2.1"},
		{name: "R184 the home network beneath a VPN", router: full, links: followed, over: 1, addr: "192.168.1.9"},
		{name: "the world around a VPN", router: full, around: true, over: 0, addr: "192.0.2.1"},
		{name: "R184 what is private stays the VPN's", router: full, around: true, over: 0, addr: "10.64.0.1", want: ErrOffLink},
		{name: "the public addresses of a VPN, around it", router: s, around: true, over: 0, addr: "198.51.100.5"},
		{name: "the world through an upstream proxy", router: s, over: 3, addr: "192.0.2.1"},
		{name: "a private address behind an upstream proxy", router: s, over: 3, addr: "10.64.0.1"},
		{name: "the world through an upstream proxy, which a VPN leads to", router: full, links: followed, over: 2, addr: "192.0.2.1"},
		{name: "R184 a private address of wlan's through an upstream proxy", router: s, over: 3, addr: "192.168.1.9", want: ErrOffLink},
		{name: "R184 a VPN's address through an upstream proxy", router: s, over: 3, addr: "198.51.100.5", want: ErrOffLink},
		{name: "R184 a bridge's address through an upstream proxy", router: s, over: 3, addr: "172.17.0.2", want: ErrOffLink},
		{name: "R183 an own address through an upstream proxy", router: s, over: 3, addr: "203.0.113.7", want: ErrDenied},
		{name: "the world where the system prefers a link that is not used", router: absent, over: 1, addr: "192.0.2.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &Destinations{Router: c.router, Around: c.around, Allow: c.allow, Named: func(name string) bool { return name == c.named }}
			if c.links == nil {
				c.links = links
			}
			d.SetLinks(c.links)
			l := c.links[c.over]
			got, err := d.Check(l, "", netip.AddrPortFrom(netip.MustParseAddr(c.addr), 80))
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
				t.Fatalf("%v, want %v", err, c.want)
			}
			if c.bound == "" {
				c.bound = l.Name
			}
			if err == nil && got.Name != c.bound {
				t.Errorf("bound to %s, not %s", got.Name, c.bound)
			}
		})
	}
	t.Run("R183 own addresses where no routes are known", func(t *testing.T) {
		d := &Destinations{Local: func(a netip.Addr) bool { return a == netip.MustParseAddr("198.51.100.7") }}
		d.SetLinks([]Link{{Name: "wlan0", Addrs: ips("192.168.1.7", "2001:db8::7")}, {Name: "rmnet0", Addrs: ips("10.9.0.7")}})
		for _, l := range *d.links.Load() {
			for _, a := range []string{
				"192.168.1.7", "2001:db8::7", "10.9.0.7", "198.51.100.7", // addresses of links, and of another interface
				"::ffff:192.168.1.7", "64:ff9b::c0a8:107", "2002:c0a8:107::1", "::ffff:198.51.100.7",
			} {
				if _, err := d.Check(l, "", netip.AddrPortFrom(netip.MustParseAddr(a), 80)); !errors.Is(err, ErrDenied) {
					t.Errorf("%s over %s: %v", a, l.Name, err)
				}
			}
			for _, a := range []string{"192.168.1.8", "2001:db8::8", "198.51.100.8"} {
				if _, err := d.Check(l, "", netip.AddrPortFrom(netip.MustParseAddr(a), 80)); err != nil {
					t.Errorf("%s over %s: %v", a, l.Name, err)
				}
			}
		}
		d.Allow = prefixes("192.168.1.7/32")
		over, err := d.Check((*d.links.Load())[1], "", netip.MustParseAddrPort("192.168.1.7:80"))
		if err != nil || over.Name != loopback {
			t.Errorf("as an exception: over %s, %v", over.Name, err)
		}
	})
	t.Run("R198 servers", func(t *testing.T) {
		for _, c := range []struct {
			router Router
			links  []Link
			around bool
			names  bool // servers may be asked over interfaces that are not links
			over   int
			server string
			want   string // "" = not asked
		}{
			{router: s, over: 0, server: "192.0.2.53", want: "wlan0"},
			{router: s, over: 1, server: "192.0.2.53", want: "lte0"},
			{router: s, over: 1, server: "192.168.1.1", want: "wlan0"}, // wlan0's router, for lte0: over the link that leads there
			{router: s, over: 0, server: "10.8.0.1", names: true, want: "wg0"},
			{router: s, over: 0, server: "10.8.0.1"},
			{router: s, over: 1, server: "192.168.1.7", want: "wlan0"}, // this machine's own
			{router: s, over: 1, server: "10.66.0.1", names: true},
			{router: full, links: followed, over: 0, server: "192.0.2.53", want: "wg0"},
			{router: full, links: followed, over: 1, server: "192.0.2.53", want: "wg0"},
			{router: full, around: true, over: 0, server: "192.0.2.53", want: "wlan0"},
			{router: full, around: true, names: true, over: 0, server: "10.64.0.1", want: "wg0"},
		} {
			d := &Destinations{Router: c.router, Around: c.around}
			if c.names {
				d.Names = func(string) bool { return true }
			}
			if c.links == nil {
				c.links = links
			}
			d.SetLinks(c.links)
			got, local, err := d.Over(c.links[c.over], netip.MustParseAddr(c.server))
			if local != (c.server == "192.168.1.7") || (err == nil) != (c.want != "") || err == nil && got.Name != c.want || err != nil && !errors.Is(err, ErrOffLink) {
				t.Errorf("%s for %s: %s, %v; want %q", c.server, c.links[c.over].Name, got.Name, err, c.want)
			}
		}
	})
}

// Other spellings of the same addresses are refused before a socket is made, whatever families the link has.
func TestDeniedSpellings(t *testing.T) {
	dialed := 0
	answers := []string{"192.0.2.1"}
	d := &Dialer{
		Allow: new(Destinations).Check,
		lookup: func(_ context.Context, _ Link, f family, host string) ([]netip.Addr, error) {
			switch host {
			case "localhost", "a.localhost.", "rebind.test":
				return only(f, ips(answers...)...), nil
			}
			t.Errorf("%s was looked up", host)
			return nil, nil
		},
		connect: func(context.Context, Link, netip.AddrPort) (net.Conn, error) {
			dialed++
			return nil, errRefused
		},
	}
	for _, host := range []string{"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0", "[::]", "169.254.169.254", "[fe80::1]"} {
		for _, l := range []Link{lnk("four", 1, "10.0.0.1"), lnk("six", 1, "2001:db8::1")} {
			_, _, err := d.Dial(t.Context(), l, "tcp", host+":80")
			if de, ok := errors.AsType[*DialError](err); !ok || de.Op != OpRefuse || !errors.Is(err, ErrDenied) {
				t.Errorf("R183 %s over %s: %v", host, l.Name, err)
			}
		}
	}
	t.Run("R183 a name that changes between lookups", func(t *testing.T) {
		l := lnk("four", 1, "10.0.0.1")
		if _, _, err := d.Dial(t.Context(), l, "tcp", "rebind.test:80"); !errors.Is(err, errRefused) || dialed != 1 {
			t.Errorf("%v, %d dialed", err, dialed)
		}
		answers = []string{"127.0.0.1", "169.254.169.254"}
		if _, _, err := d.Dial(t.Context(), l, "tcp", "rebind.test:80"); !errors.Is(err, ErrDenied) || dialed != 1 {
			t.Errorf("%v, %d dialed", err, dialed)
		}
	})
}
