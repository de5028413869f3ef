package link

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
)

// The table of RFC 6052 section 2.4.
func TestNAT64(t *testing.T) {
	a := netip.MustParseAddr("192.0.2.33")
	for prefix, want := range map[string]string{
		"2001:db8::/32":            "2001:db8:c000:221::",
		"2001:db8:100::/40":        "2001:db8:1c0:2:21::",
		"2001:db8:122::/48":        "2001:db8:122:c000:2:2100::",
		"2001:db8:122:300::/56":    "2001:db8:122:3c0:0:221::",
		"2001:db8:122:344::/64":    "2001:db8:122:344:c0:2:2100::",
		"2001:db8:122:344::/96":    "2001:db8:122:344::192.0.2.33",
		"2001:db8:122:344::7:0/96": "2001:db8:122:344::192.0.2.33", // bits after the length do not count
		"64:ff9b::/96":             "64:ff9b::192.0.2.33",
	} {
		p := netip.MustParsePrefix(prefix)
		got := toNAT64(p, a)
		if !IsNAT64(p) || got != netip.MustParseAddr(want) || fromNAT64(p, got) != a {
			t.Errorf("%s: %s, want %s; back: %s", prefix, got, want, fromNAT64(p, got))
		}
	}
	for _, prefix := range []string{"64:ff9b::/95", "64:ff9b::/128", "::/0", "10.0.0.0/32", "::ffff:0:0/96"} {
		if IsNAT64(netip.MustParsePrefix(prefix)) {
			t.Errorf("%s is taken for one", prefix)
		}
	}
	if IsNAT64(netip.Prefix{}) {
		t.Error("none is taken for one")
	}
}

func TestDialNAT64(t *testing.T) {
	six := netip.MustParseAddr("2001:db8::5")
	four := netip.MustParseAddr("10.0.0.5")
	prefix := netip.MustParsePrefix("2001:db8:64::/96")
	for name, tt := range map[string]struct {
		link       Link
		host, want string
	}{
		"IPv6 only":       {Link{Addrs: []netip.Addr{six}, NAT64: prefix}, "93.184.215.14", "[2001:db8:64::5db8:d70e]:80"},
		"both families":   {Link{Addrs: []netip.Addr{six, four}, NAT64: prefix}, "93.184.215.14", "93.184.215.14:80"},
		"an IPv6 address": {Link{Addrs: []netip.Addr{six}, NAT64: prefix}, "[2001:db8::9]", "[2001:db8::9]:80"},
		"no prefix":       {Link{Addrs: []netip.Addr{six}}, "93.184.215.14", ""},
		"denied":          {Link{Addrs: []netip.Addr{six}, NAT64: prefix}, "169.254.169.254", ""},
		"private":         {Link{Addrs: []netip.Addr{six}, NAT64: prefix}, "10.1.2.3", ""},
		"private, hidden": {Link{Addrs: []netip.Addr{six}, NAT64: prefix}, "[2001:db8:64::a01:203]", ""},
		"denied, hidden":  {Link{Addrs: []netip.Addr{six}, NAT64: prefix}, "[2001:db8:64::a9fe:a9fe]", ""},
	} {
		dialed := ""
		var d Destinations
		dialer := &Dialer{
			Resolver: &Resolver{files: []string{}}, Allow: d.Check,
			connect: func(_ context.Context, _ Link, to netip.AddrPort) (net.Conn, error) {
				dialed = to.String()
				return nil, errors.New("far")
			},
		}
		host, _, _ := net.SplitHostPort(tt.host + ":80")
		_, _, err := dialer.Dial(t.Context(), tt.link, "tcp", net.JoinHostPort(host, "80"))
		if dialed != tt.want || err == nil {
			t.Errorf("%s: dialed %q, want %q (%v)", name, dialed, tt.want, err)
		}
	}
}
