package discover

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/tributary-http/tributary/internal/net/link"
	. "github.com/tributary-http/tributary/internal/net/link/linktest"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TestDestinationsInside dials through a filter in a network namespace: the kernel's view of networks decides.
func TestDestinationsInside(t *testing.T) {
	if !Inside(t) {
		return
	}
	f := TwoLinks(t)
	f.Greeter(t, "10.2.0.2:80") // the far end of b
	ls := current(t, "a0", "b0")
	d := &link.Destinations{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Router: &Kernel{}}
	d.SetLinks(ls)
	dialer := &link.Dialer{Binder: link.Device{}, Resolver: &link.Resolver{Binder: link.Device{}}, Allow: d.Check}
	dial := func(l link.Link, addr string) (from string, err error) {
		t.Helper()
		c, _, err := dialer.Dial(t.Context(), l, "tcp", addr)
		if err != nil {
			return "", err
		}
		defer c.Close()
		b, err := io.ReadAll(c)
		return string(b), err
	}
	t.Run("R184 a private address on b is reached over b", func(t *testing.T) {
		if from, err := dial(ls[1], "10.2.0.2:80"); from != "10.2.0.1" || err != nil {
			t.Errorf("came from %q, %v", from, err)
		}
	})
	t.Run("R184 and not over a, though a router there would know the way", func(t *testing.T) {
		before := Sent(t, "a0")
		if from, err := dial(ls[0], "10.2.0.2:80"); !errors.Is(err, link.ErrOffLink) {
			t.Errorf("came from %q, %v", from, err)
		}
		if n := Sent(t, "a0"); n != before {
			t.Errorf("%d packets over a", n-before)
		}
	})
	t.Run("R199 R183 loopback, as an exception, is reached over the loopback device", func(t *testing.T) {
		Up(t, "lo")
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		Must(t, err)
		defer ln.Close()
		before := Sent(t, "a0")
		c, _, err := dialer.Dial(t.Context(), ls[0], "tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if n := Sent(t, "a0"); n != before {
			t.Errorf("%d packets over a", n-before)
		}
	})
	t.Run("R183 R199 an own address is denied by literal and name, and reached where it is, as an exception", func(t *testing.T) {
		ln, err := net.Listen("tcp4", "0.0.0.0:0")
		Must(t, err)
		defer ln.Close()
		port := ln.Addr().(*net.TCPAddr).Port
		server := ServeDNS(t, "127.0.0.1:0", Always(Said{Addrs: ips("10.2.0.1")}))
		asked := &link.Resolver{Binder: unbound{}, AllLinksAllowed: true, Over: d.Over}
		for _, l := range ls {
			l.DNS = []netip.AddrPort{server.Addr}
			for _, host := range []string{"10.1.0.1", "10.2.0.1", "[::ffff:10.2.0.1]", "own.test"} {
				dialer := &link.Dialer{Binder: link.Device{}, Resolver: asked, Allow: d.Check}
				c, _, err := dialer.Dial(t.Context(), l, "tcp", fmt.Sprintf("%s:%d", host, port))
				if err == nil {
					c.Close()
				}
				if !errors.Is(err, link.ErrDenied) {
					t.Errorf("%s over %s: %v", host, l.Name, err)
				}
			}
		}
		all := &link.Destinations{Allow: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}, Router: &Kernel{}}
		all.SetLinks(ls)
		dialer := &link.Dialer{Binder: link.Device{}, Resolver: asked, Allow: all.Check}
		for _, host := range []string{"10.1.0.1", "10.2.0.1", "127.0.0.1"} {
			c, _, err := dialer.Dial(t.Context(), ls[0], "tcp", fmt.Sprintf("%s:%d", host, port))
			if err != nil {
				t.Errorf("%s as an exception: %v", host, err)
				continue
			}
			c.Close()
		}
	})
	t.Run("R184 what belongs to an interface that is no link leaves by none", func(t *testing.T) {
		bridge(t, "br0", "172.17.0.1/16")
		Must(t, netlink.RouteAdd(&netlink.Route{LinkIndex: Dev(t, "br0").Attrs().Index, Dst: ParseCIDR(t, "198.51.100.0/24").IPNet}))
		Must(t, netlink.RouteAdd(&netlink.Route{Dst: ParseCIDR(t, "198.51.101.0/24").IPNet, Type: unix.RTN_BLACKHOLE}))
		before := Sent(t, "a0") + Sent(t, "b0")
		for _, l := range ls {
			for _, host := range []string{"172.17.0.2", "198.51.100.1", "198.51.101.1"} {
				if _, err := dial(l, host+":80"); !errors.Is(err, link.ErrOffLink) {
					t.Errorf("%s over %s: %v", host, l.Name, err)
				}
			}
		}
		if n := Sent(t, "a0") + Sent(t, "b0"); n != before {
			t.Errorf("%d packets over the links", n-before)
		}
	})
}

// bridge adds a bridge with an address.
func bridge(t *testing.T, name, cidr string) {
	t.Helper()
	Must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}))
	Up(t, name)
	AddAddr(t, name, cidr)
}

// unbound is a Binder that leaves sockets as they are.
type unbound struct{}

func (unbound) Control(link.Link) func(string, string, syscall.RawConn) error {
	return func(string, string, syscall.RawConn) error { return nil }
}

// current returns the links with these names as the kernel has them.
func current(t *testing.T, names ...string) (all []link.Link) {
	t.Helper()
	cs, err := (&Netlink{Options: Options{Names: names}}).List()
	Must(t, err)
	for _, n := range names {
		for _, c := range cs {
			if c.Link.Name == n && c.Use {
				all = append(all, c.Link)
			}
		}
	}
	if len(all) != len(names) {
		t.Fatalf("want links %v, have %+v", names, cs)
	}
	return all
}
