package netlab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// NAT64Prefix is the prefix through which IPv6-only links reach IPv4 addresses; see StartNAT64 (RFC 6052).
var NAT64Prefix = netip.MustParsePrefix("2a0a:64::/96")

const (
	nat64Device = "nat64"
	hopLimit    = 64
	ip4Header   = 20
	ip6Header   = 40
)

// nat64 translates between a client with an IPv6 address and servers with IPv4 addresses, packet by packet (RFC 7915).
// Since there is only one client, its IPv6 address maps to a single IPv4 address, and the translator needs no state.
type nat64 struct {
	six, four netip.Addr // of the client
	prefix    [12]byte
}

// Global6 is the client's IPv6 address on an IPv6-only link; it is not private.
func (l *Link) Global6() netip.Addr { return l.global6(clientHost) }

func (l *Link) global6(host byte) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0x20, 1: 0x01, 2: 0x0d, 3: 0xb8, 4: 0, 5: 0x77, 7: byte(l.Index), 15: host})
}

// StartNAT64 removes the client's IPv4 address from a link, gives the link a global IPv6 address, and translates
// packets sent to NAT64Prefix. The name servers of d announce the prefix (ipv4only.arpa, RFC 7050). A lab may have one
// such link.
func (l *Lab) StartNAT64(link *Link, d *DNS) error {
	dev, err := link.device()
	if err == nil {
		err = l.routes.AddrDel(dev, address(link.Addr(), 24))
	}
	if err == nil {
		err = l.routes.AddrReplace(dev, address(link.Global6(), 64))
	}
	if err != nil {
		return link.fail("nat64", err)
	}
	n := &nat64{
		six: link.Global6(), four: netip.AddrFrom4([4]byte{192, 0, 2, byte(link.Index)}),
		prefix: [12]byte(NAT64Prefix.Addr().AsSlice()),
	}
	var tun *os.File
	err = l.server.enter(func() error {
		var err error
		tun, err = n.open(link)
		return err
	})
	if err != nil {
		return link.fail("nat64", err)
	}
	l.services.Go(func() { n.run(tun) })
	l.closers = append(l.closers, tun.Close)
	d.mu.Lock()
	d.nat64 = true
	d.mu.Unlock()
	return nil
}

// open creates the translator's device in the namespace of the calling thread, and the routes to it and back.
func (n *nat64) open(link *Link) (*os.File, error) {
	fd, err := openTUN(nat64Device)
	if err != nil {
		return nil, err
	}
	tun := os.NewFile(uintptr(fd), nat64Device)
	return tun, errors.Join(n.configure(link), os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0))
}

func (n *nat64) configure(link *Link) error {
	end, err := netlink.LinkByName(link.serverName())
	if err != nil {
		return err
	}
	if err := netlink.AddrReplace(end, address(link.global6(serverHost), 64)); err != nil {
		return err
	}
	dev, err := netlink.LinkByName(nat64Device)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(dev); err != nil {
		return err
	}
	for _, to := range []*net.IPNet{prefix(n.four, 32), prefix(NAT64Prefix.Addr(), NAT64Prefix.Bits())} {
		if err := netlink.RouteReplace(&netlink.Route{
			LinkIndex: dev.Attrs().Index, Dst: to, Scope: unix.RT_SCOPE_LINK,
		}); err != nil {
			return fmt.Errorf("route to %s: %w", to, err)
		}
	}
	return nil
}

// run translates until the device is closed.
func (n *nat64) run(tun *os.File) {
	in, out := make([]byte, 1<<16), make([]byte, 1<<16)
	for {
		size, err := tun.Read(in)
		if err != nil {
			return
		}
		if p := n.translate(in[:size], out); p != nil {
			_, _ = tun.Write(p) // a lost packet is retransmitted
		}
	}
}

// translate writes the translation of a packet to out and returns it. It returns nil if the packet is not one of the
// client's, or is neither TCP nor UDP.
func (n *nat64) translate(p, out []byte) []byte {
	switch {
	case len(p) >= ip6Header && p[0]>>4 == 6 && [16]byte(p[8:24]) == n.six.As16() && [12]byte(p[24:36]) == n.prefix:
		out = out[:len(p)-ip6Header+ip4Header]
		clear(out[:ip4Header])
		out[0] = 0x45
		binary.BigEndian.PutUint16(out[2:], uint16(len(out)))
		out[6] = 0x40 // do not fragment
		out[8], out[9] = p[7]-1, p[6]
		copy(out[12:16], n.four.AsSlice())
		copy(out[16:20], p[36:40])
		binary.BigEndian.PutUint16(out[10:], ^onesSum(out[:ip4Header]))
		copy(out[ip4Header:], p[ip6Header:])
		return corrected(out, p[6], ip4Header, p[8:40], out[12:20])
	case len(p) >= ip4Header && p[0] == 0x45 && [4]byte(p[16:20]) == n.four.As4() &&
		binary.BigEndian.Uint16(p[6:])&0x3fff == 0:
		out = out[:len(p)-ip4Header+ip6Header]
		clear(out[:ip6Header])
		out[0] = 0x60
		binary.BigEndian.PutUint16(out[4:], uint16(len(p)-ip4Header))
		out[6], out[7] = p[9], p[8]-1
		copy(out[8:20], n.prefix[:])
		copy(out[20:24], p[12:16])
		copy(out[24:40], n.six.AsSlice())
		copy(out[ip6Header:], p[ip4Header:])
		return corrected(out, p[9], ip6Header, p[12:20], out[8:40])
	}
	return nil
}

// corrected adjusts the checksum of the TCP segment or UDP datagram in a packet, which covers the addresses (RFC 1624),
// and returns the packet, or nil if it carries neither.
func corrected(p []byte, protocol byte, header int, was, is []byte) []byte {
	at := header
	switch protocol {
	case unix.IPPROTO_TCP:
		at += 16
	case unix.IPPROTO_UDP:
		at += 6
	default:
		return nil
	}
	if len(p) < at+2 {
		return nil
	}
	c := uint32(^binary.BigEndian.Uint16(p[at:])) + uint32(^onesSum(was)) + uint32(onesSum(is))
	for c > 0xffff {
		c = c>>16 + c&0xffff
	}
	binary.BigEndian.PutUint16(p[at:], ^uint16(c))
	return p
}

// onesSum returns the ones' complement sum (RFC 1071) of an even number of bytes.
func onesSum(b []byte) uint16 {
	c := uint32(0)
	for ; len(b) > 1; b = b[2:] {
		c += uint32(binary.BigEndian.Uint16(b))
	}
	for c > 0xffff {
		c = c>>16 + c&0xffff
	}
	return uint16(c)
}
