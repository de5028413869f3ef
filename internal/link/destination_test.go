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
		if err := d.Check(Link{Name: "w0"}, netip.AddrPortFrom(netip.MustParseAddr(addr), 80)); !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", addr, err, want)
		}
	}
	t.Run("R183 denied", func(t *testing.T) {
		for _, a := range []string{
			"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "255.255.255.255", "224.0.0.1", "239.255.255.250",
			"169.254.1.1", "169.254.169.254", "100.100.100.200", "::", "::1", "fe80::1", "fe80::1%eth0", "febf::1", "ff02::1",
			"ff0e::1", "fd00:ec2::254",
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
			"64:ff9b::c000:201", "2002:c000:201::1", "2001:0:c000:201::3fff:fdfe", "100.100.100.201", "100.64.0.1", "223.255.255.255",
		} {
			check(d, a, nil)
		}
	})
	t.Run("R15 own listeners, exceptions or not", func(t *testing.T) {
		all := &Destinations{Own: d.Own, Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}}
		for _, addr := range []string{"192.0.2.1", "::ffff:192.0.2.1"} {
			if err := all.Check(Link{}, netip.AddrPortFrom(netip.MustParseAddr(addr), 8080)); !errors.Is(err, ErrDenied) {
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
		for _, a := range []string{"10.0.0.1", "172.31.0.1", "192.168.0.1", "fc00::1", "fd12::1", "fec0::1", "64:ff9b::a00:1", "2002:c0a8:1::1"} {
			check(closed, a, ErrDenied)
		}
		for _, a := range []string{"192.0.2.1", "172.32.0.1", "2001:db8::1"} {
			check(closed, a, nil)
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

// The spellings that name the same addresses end before a socket is made, whatever families the link has.
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
			_, err := d.DialContext(t.Context(), l, "tcp", host+":80")
			if de, ok := errors.AsType[*DialError](err); !ok || de.Op != OpRefuse || !errors.Is(err, ErrDenied) {
				t.Errorf("R183 %s over %s: %v", host, l.Name, err)
			}
		}
	}
	t.Run("R183 a name that changes between lookups", func(t *testing.T) {
		l := lnk("four", 1, "10.0.0.1")
		if _, err := d.DialContext(t.Context(), l, "tcp", "rebind.test:80"); !errors.Is(err, errRefused) || dialed != 1 {
			t.Errorf("%v, %d dialed", err, dialed)
		}
		answers = []string{"127.0.0.1", "169.254.169.254"}
		if _, err := d.DialContext(t.Context(), l, "tcp", "rebind.test:80"); !errors.Is(err, ErrDenied) || dialed != 1 {
			t.Errorf("%v, %d dialed", err, dialed)
		}
	})
}
