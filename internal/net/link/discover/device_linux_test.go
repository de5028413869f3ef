package discover

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/net/link"
	. "github.com/tributary-http/tributary/internal/net/link/linktest"
)

// asking returns the links with a DNS server.
func asking(all []link.Link, s *DNSServer) []link.Link {
	for i := range all {
		all[i].DNS = []netip.AddrPort{s.Addr}
	}
	return all
}

// greeted dials over l and returns the source address that the origin saw.
func greeted(t *testing.T, l link.Link, addr string) string {
	t.Helper()
	d := &link.Dialer{Binder: link.Device{}, Resolver: &link.Resolver{Binder: link.Device{}}}
	c, _, err := d.Dial(t.Context(), l, "tcp", addr)
	Must(t, err)
	return Greeting(t, c, l.Name)
}

func TestDeviceIPv6(t *testing.T) {
	if !Inside(t) {
		return
	}
	f := NewFar(t)
	f.Join(t, "a", "2001:db8:a::1/64", "2001:db8:a::2/64")
	f.Join(t, "b", "2001:db8:b::1/64", "2001:db8:b::2/64")
	f.Do(func() { AddAddr(t, "lo", Origin6+"/128") })
	Must(t, netlink.RouteAdd(DefaultRoute(t, "a0", "2001:db8:a::2", 100, 0)))
	Must(t, netlink.RouteAdd(DefaultRoute(t, "b0", "2001:db8:b::2", 200, 0)))
	f.Greeter(t, "["+Origin6+"]:80")
	dns := FarDNS(t, f, "["+Origin6+"]:53")
	for i, l := range asking(current(t, "a0", "b0"), dns) {
		want := []string{"2001:db8:a::1", "2001:db8:b::1"}[i]
		if got := greeted(t, l, "o.test:80"); got != want {
			t.Errorf("over %s it came from %s", l.Name, got)
		}
		if l.Metric != 100*(i+1) {
			t.Errorf("%s has metric %d", l.Name, l.Metric)
		}
	}
	for _, a := range dns.Asks() {
		if a.Type != dnsmessage.TypeAAAA {
			t.Errorf("R148 asked for %v", a)
		}
	}
}

// The second link's default route is in a table of its own that only its source address selects, as multi-homing guides do.
func TestDeviceSourceRouted(t *testing.T) {
	if !Inside(t) {
		return
	}
	f := NewFar(t)
	NoIPv6(t, f)
	f.Join(t, "a", "10.1.0.1/24", "10.1.0.2/24")
	f.Join(t, "b", "10.2.0.1/24", "10.2.0.2/24")
	f.Do(func() { AddAddr(t, "lo", Origin4+"/32") })
	Must(t, netlink.RouteAdd(DefaultRoute(t, "a0", "10.1.0.2", 100, 0)))
	Must(t, netlink.RouteAdd(DefaultRoute(t, "b0", "10.2.0.2", 0, 42)))
	f.Greeter(t, Origin4+":80")
	dns := FarDNS(t, f, Origin4+":53")

	rule := func(change func(*netlink.Rule)) *netlink.Rule {
		r := netlink.NewRule()
		r.Table, r.Priority = 42, 1000
		change(r)
		err := netlink.RuleAdd(r)
		if errors.Is(err, unix.EOPNOTSUPP) && UnderQEMU {
			t.Skip("qemu-user does not pass rules on")
		}
		Must(t, err)
		return r
	}
	bySource := rule(func(r *netlink.Rule) { r.Src = ParseCIDR(t, "10.2.0.1/32").IPNet })
	ls := asking(current(t, "a0", "b0"), dns)
	if ls[0].SourceRouted || !ls[1].SourceRouted {
		t.Errorf("source routed: a %v, b %v", ls[0].SourceRouted, ls[1].SourceRouted)
	}
	if got := greeted(t, ls[1], "o.test:80"); got != "10.2.0.1" {
		t.Errorf("came from %s", got)
	}
	if n := Sent(t, "a0"); n != 0 {
		t.Errorf("%d packets over a", n)
	}

	// The same with a rule on the interface, as on phones: the device binding is enough.
	Must(t, netlink.RuleDel(bySource))
	rule(func(r *netlink.Rule) { r.OifName = "b0" })
	ls = asking(current(t, "a0", "b0"), dns)
	if ls[1].SourceRouted {
		t.Error("source routed although a rule on the interface exists")
	}
	if got := greeted(t, ls[1], "o.test:80"); got != "10.2.0.1" {
		t.Errorf("came from %s", got)
	}
}
