package netlab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Link is one emulated link of a Lab.
type Link struct {
	Name  string // of the client's interface
	Index int    // counted from 1: the i in the link's addresses

	lab      *Lab
	emulator *emulator
	down, up Shape // written in the emulator's goroutine only
}

const (
	clientHost   = 2
	serverHost   = 1
	baseMetric   = 100  // of the first link's default route; the others follow in steps of baseMetric
	baseTable    = 1000 // routing table of link i is baseTable+i
	serverPrefix = "s-"
)

// addr4 and addr6 return the link's addresses at one end.
func (l *Link) addr4(host byte) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 77, byte(l.Index), host})
}

func (l *Link) addr6(host byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 3: byte(l.Index), 15: host})
}

// Addr is the client's IPv4 address on the link, Addr6 its IPv6 address.
func (l *Link) Addr() netip.Addr { return l.addr4(clientHost) }

// Addr6 is the client's IPv6 address on the link.
func (l *Link) Addr6() netip.Addr { return l.addr6(clientHost) }

// serverName is the name of the server's interface.
func (l *Link) serverName() string { return serverPrefix + l.Name }

// Shape returns the shapes of the two directions: down is from the server to the client.
func (l *Link) Shape() (down, up Shape, err error) {
	err = l.emulator.do(func(time.Duration) { down, up = l.down, l.up })
	return down, up, err
}

// Update changes the shapes of the two directions. A shape that is not valid changes nothing.
func (l *Link) Update(change func(down, up *Shape)) error {
	var invalid error
	err := l.emulator.do(func(now time.Duration) {
		down, up := l.down, l.up
		change(&down, &up)
		if invalid = errors.Join(down.Validate(), up.Validate()); invalid != nil {
			return
		}
		l.down, l.up = down, up
		l.emulator.down.set(now, down)
		l.emulator.up.set(now, up)
	})
	return errors.Join(err, invalid)
}

// Blackhole makes every packet vanish, those on the way included, or ends that. The interface stays up.
func (l *Link) Blackhole(dark bool) error {
	return l.emulator.do(func(now time.Duration) {
		l.emulator.down.setDark(now, dark)
		l.emulator.up.setDark(now, dark)
	})
}

// ResetRamp puts the link into the state of an unused one: the ramp, or the trace, begins with the next packet of each
// direction.
func (l *Link) ResetRamp() error {
	return l.emulator.do(func(now time.Duration) {
		l.emulator.down.reset(now)
		l.emulator.up.reset(now)
	})
}

// Counters returns the traffic of the two directions.
func (l *Link) Counters() (down, up Counters, err error) {
	err = l.emulator.do(func(time.Duration) { down, up = l.emulator.down.counts, l.emulator.up.counts })
	return down, up, err
}

// Record starts new tapes of the bytes that the link delivers to the client and to the server.
func (l *Link) Record() error {
	return l.emulator.do(func(now time.Duration) {
		l.emulator.down.record, l.emulator.up.record = &recorder{began: now}, &recorder{began: now}
	})
}

// Tape returns the bytes that the link has delivered to the client since Record; the recording continues.
func (l *Link) Tape() (Tape, error) {
	return l.tape(func(e *emulator) *recorder { return e.down.record })
}

// TapeUp is Tape for the bytes delivered to the server.
func (l *Link) TapeUp() (Tape, error) {
	return l.tape(func(e *emulator) *recorder { return e.up.record })
}

func (l *Link) tape(of func(*emulator) *recorder) (t Tape, err error) {
	err = l.emulator.do(func(time.Duration) {
		if r := of(l.emulator); r != nil {
			t = r.tape(l.emulator.began)
		}
	})
	return t, err
}

// Down takes the client's interface down, as `ip link set down` does.
func (l *Link) Down() error {
	dev, err := l.device()
	if err == nil {
		err = l.lab.routes.LinkSetDown(dev)
	}
	return l.fail("down", err)
}

// Up takes the client's interface up and restores its addresses, routes and rules.
func (l *Link) Up() error {
	dev, err := l.device()
	if err == nil {
		err = l.lab.routes.LinkSetUp(dev)
	}
	if err == nil {
		err = l.configure(dev)
	}
	return l.fail("up", err)
}

// RemoveAddrs removes the client's addresses on the link; the kernel removes the routes that need them.
func (l *Link) RemoveAddrs() error {
	dev, err := l.device()
	if err != nil {
		return l.fail("remove addresses", err)
	}
	addrs, err := l.lab.routes.AddrList(dev, netlink.FAMILY_ALL)
	for i := range addrs {
		err = errors.Join(err, l.lab.routes.AddrDel(dev, &addrs[i]))
	}
	return l.fail("remove addresses", err)
}

// RestoreAddrs undoes RemoveAddrs.
func (l *Link) RestoreAddrs() error {
	dev, err := l.device()
	if err == nil {
		err = l.configure(dev)
	}
	return l.fail("restore addresses", err)
}

// DialContext dials from the client namespace over this link and no other (SO_BINDTODEVICE). The address must be a
// literal one: names are not looked up.
func (l *Link) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if _, err := netip.ParseAddrPort(address); err != nil {
		return nil, fmt.Errorf("dial over %s: %w", l.Name, err)
	}
	d := net.Dialer{Control: bindTo(l.Name)}
	var conn net.Conn
	err := l.lab.InClient(func() (err error) {
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

func (l *Link) device() (netlink.Link, error) { return l.lab.routes.LinkByName(l.Name) }

func (l *Link) fail(what string, err error) error {
	if err != nil {
		return fmt.Errorf("link %s: %s: %w", l.Name, what, err)
	}
	return nil
}

// configure adds the addresses, routes and rules that the client's interface lacks. The interface must be up.
func (l *Link) configure(dev netlink.Link) error {
	h := l.lab.routes
	table := baseTable + l.Index
	for _, end := range []struct {
		own, gateway netip.Addr
		bits, family int
	}{
		{l.addr4(clientHost), l.addr4(serverHost), 24, netlink.FAMILY_V4},
		{l.addr6(clientHost), l.addr6(serverHost), 64, netlink.FAMILY_V6},
	} {
		if err := h.AddrReplace(dev, address(end.own, end.bits)); err != nil {
			return fmt.Errorf("address %s: %w", end.own, err)
		}
		for _, r := range []netlink.Route{{Priority: baseMetric * l.Index}, {Table: table}} {
			r.LinkIndex, r.Gw, r.Family = dev.Attrs().Index, end.gateway.AsSlice(), end.family
			r.Dst = defaultRoute(end.family)
			if err := h.RouteReplace(&r); err != nil {
				return fmt.Errorf("default route via %s: %w", end.gateway, err)
			}
		}
		rule := netlink.NewRule()
		rule.Src, rule.Table, rule.Family, rule.Priority = prefix(end.own, end.own.BitLen()), table, end.family, table
		if err := h.RuleAdd(rule); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("rule from %s: %w", end.own, err)
		}
	}
	return nil
}

func address(a netip.Addr, bits int) *netlink.Addr {
	return &netlink.Addr{IPNet: prefix(a, bits), Flags: unix.IFA_F_NODAD}
}

func prefix(a netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}
}

func defaultRoute(family int) *net.IPNet {
	if family == netlink.FAMILY_V4 {
		return prefix(netip.IPv4Unspecified(), 0)
	}
	return prefix(netip.IPv6Unspecified(), 0)
}
