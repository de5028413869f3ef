package discover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/net/link"
)

// Netlink is the Source that asks the Linux kernel. It observes the network namespace of the thread that calls Watch.
type Netlink struct {
	Options Options       // initial options, see SetOptions
	Mark    func() uint32 // mark of the sockets that will use the links; nil or 0 = none

	mu      sync.Mutex
	later   *Options
	changed chan<- struct{} // makes Watch look again
}

// SetOptions replaces the options; a running Watch looks again at once.
func (n *Netlink) SetOptions(o Options) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.later = &o
	if n.changed != nil {
		give(n.changed)
	}
}

func (n *Netlink) options() Options {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.later != nil {
		return *n.later
	}
	return n.Options
}

// List returns every interface with the decision on it, links first, for people to read.
func (n *Netlink) List() ([]Candidate, error) {
	k, err := openKernel(n.Mark)
	if err != nil {
		return nil, err
	}
	defer k.close()
	all, err := k.interfaces()
	if err != nil {
		return nil, err
	}
	return candidates(all, n.options()), nil
}

// VPNs returns the names of the VPNs that carry the system's own traffic now, followed or not.
func (n *Netlink) VPNs() (names []string) {
	k, err := openKernel(n.Mark)
	if err != nil {
		return nil
	}
	defer k.close()
	all, err := k.interfaces()
	if err != nil {
		return nil
	}
	for _, i := range all {
		if i.vpn(n.options()) {
			names = append(names, i.Name)
		}
	}
	return names
}

// Watch implements [Source]. It sends a loss (interface down or gone, address or route removed) at once, a link that
// returned unchanged at most 10 ms after its last event, and anything else 100 ms after its first event.
func (n *Netlink) Watch(ctx context.Context) (<-chan []link.Link, error) {
	// Subscribed before the first look, so that no change falls between the two.
	sock, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR,
		unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE)
	if err != nil {
		return nil, fmt.Errorf("subscribe to link events: %w", err)
	}
	k, err := openKernel(n.Mark)
	if err != nil {
		sock.Close()
		return nil, err
	}
	look := func() ([]link.Link, error) {
		all, err := k.interfaces()
		return links(all, n.options()), err
	}
	first, err := look()
	if err != nil {
		k.close()
		sock.Close()
		return nil, err
	}
	out := make(chan []link.Link)
	h := newHints()
	n.mu.Lock()
	n.changed = h.set
	n.mu.Unlock()
	give(h.set) // the options may have been set since the first look
	go serve(ctx, sock, k, h, first, look, out)
	return out, nil
}

// serve owns the two sockets and the reader of events.
func serve(ctx context.Context, sock *nl.NetlinkSocket, k *kernel, h hints, first []link.Link,
	look func() ([]link.Link, error), out chan []link.Link,
) {
	defer close(out)
	defer k.close()
	go readEvents(sock, h)
	watch(ctx, h, first, look, out)
	sock.Close()
	<-h.dead
}

// readEvents turns kernel events into hints until the socket is closed or fails.
func readEvents(sock *nl.NetlinkSocket, h hints) {
	defer close(h.dead)
	for {
		msgs, _, err := sock.Receive()
		switch {
		case errors.Is(err, unix.ENOBUFS): // events were dropped: anything may have happened
			give(h.lost)
			continue
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return
		}
		for _, m := range msgs {
			switch m.Header.Type {
			// An interface that goes down is announced as new, with other flags; an address that turned out to be a
			// duplicate too.
			case unix.RTM_NEWLINK, unix.RTM_DELLINK, unix.RTM_DELADDR, unix.RTM_DELROUTE, unix.RTM_DELRULE:
				give(h.lost)
			default:
				give(h.gained)
			}
		}
	}
}

// sysfs adds what netlink does not report: the driver class of an interface.
func sysfs(i *Interface) {
	dir := "/sys/class/net/" + i.Name + "/"
	// In a network namespace made by hand, sysfs may still show the interfaces of another one.
	if b, err := os.ReadFile(dir + "ifindex"); err != nil || string(b) != fmt.Sprintf("%d\n", i.Index) {
		return
	}
	exists := func(name string) bool { _, err := os.Stat(dir + name); return err == nil }
	i.Wireless = exists("wireless") || exists("phy80211")
	i.Tun = exists("tun_flags")
	if b, err := os.ReadFile(dir + "uevent"); err == nil {
		lines := splitLines(string(b))
		i.WWAN = slices.Contains(lines, "DEVTYPE=wwan")
		i.Wireless = i.Wireless || slices.Contains(lines, "DEVTYPE=wlan")
	}
}
