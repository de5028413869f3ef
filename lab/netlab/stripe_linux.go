package netlab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"

	"github.com/vishvananda/netlink"
)

const (
	stripeName = "stripe"
	stripePort = 8460
	stripeMTU  = 1400 // leaves room for the headers of UDP in the links' packets
)

var stripeClient, stripeServer = netip.MustParseAddr("10.99.0.2"), netip.MustParseAddr("10.99.0.1")

// Stripe is a device between client and server whose packets take the links in turn, as in a bundle of lines that knows
// nothing of connections (Evensen 2011 section 1.1).
type Stripe struct {
	devices []*os.File
	sockets []net.PacketConn
	parts   sync.WaitGroup
}

// StartStripe starts a Stripe. In each round a link takes as many packets as its weight, 0 = none.
func (l *Lab) StartStripe(ctx context.Context, weights []int) (_ *Stripe, err error) {
	s := &Stripe{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	ends := []struct {
		in   *namespace
		addr netip.Addr
	}{{l.client, stripeClient}, {l.server, stripeServer}}
	for i, e := range ends {
		fd, err := l.addDevice(e.in, stripeName)
		if err != nil {
			return nil, err
		}
		device := os.NewFile(uintptr(fd), stripeName)
		s.devices = append(s.devices, device)
		var sockets []net.PacketConn
		var peers []net.Addr
		err = e.in.enter(func() error {
			dev, err := netlink.LinkByName(stripeName)
			if err != nil {
				return err
			}
			if err := errors.Join(netlink.LinkSetMTU(dev, stripeMTU), netlink.LinkSetUp(dev),
				netlink.AddrReplace(dev, address(e.addr, 24))); err != nil {
				return err
			}
			for _, link := range l.links {
				name, own, peer := link.Name, link.addr4(clientHost), link.addr4(serverHost)
				if i == 1 {
					name, own, peer = link.serverName(), peer, own
				}
				c := net.ListenConfig{Control: bindTo(name)}
				socket, err := c.ListenPacket(ctx, "udp", netip.AddrPortFrom(own, stripePort).String())
				if err != nil {
					return err
				}
				s.sockets = append(s.sockets, socket)
				sockets = append(sockets, socket)
				peers = append(peers, net.UDPAddrFromAddrPort(netip.AddrPortFrom(peer, stripePort)))
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("stripe: %w", err)
		}
		s.parts.Go(func() { send(device, sockets, peers, turns(weights)) })
		for _, socket := range sockets {
			s.parts.Go(func() { receive(socket, device) })
		}
	}
	return s, nil
}

// Server is the address of the server's end.
func (s *Stripe) Server() netip.Addr { return stripeServer }

// Close removes the device.
func (s *Stripe) Close() {
	for _, d := range s.devices {
		d.Close()
	}
	for _, c := range s.sockets {
		c.Close()
	}
	s.parts.Wait()
}

// turns returns the links of a round in order; the turns of a link with a large weight are spread over the round.
func turns(weights []int) (order []int) {
	sum, due := 0, make([]int, len(weights))
	for _, w := range weights {
		sum += w
	}
	for range sum {
		next := 0
		for i, w := range weights {
			if due[i] += w; due[i] > due[next] {
				next = i
			}
		}
		due[next] -= sum
		order = append(order, next)
	}
	return order
}

// send sends the packets of a device over the sockets in turn, until the device is closed. Packets that a socket does
// not accept are lost.
func send(device *os.File, sockets []net.PacketConn, peers []net.Addr, order []int) {
	buf := make([]byte, 2*stripeMTU)
	for i := 0; ; i++ {
		n, err := device.Read(buf)
		if err != nil {
			return
		}
		to := order[i%len(order)]
		_, _ = sockets[to].WriteTo(buf[:n], peers[to])
	}
}

// receive passes the packets of a socket to the device until the socket is closed.
func receive(socket net.PacketConn, device *os.File) {
	buf := make([]byte, 2*stripeMTU)
	for {
		n, _, err := socket.ReadFrom(buf)
		if err != nil {
			return
		}
		if _, err := device.Write(buf[:n]); errors.Is(err, os.ErrClosed) {
			return
		}
	}
}
