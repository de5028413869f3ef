package link

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Kernel is the Router that asks the kernel's routing rules and tables. It knows the network namespace of the process.
type Kernel struct {
	Mark func() uint32 // of the sockets in question; nil or 0 = none

	mu   sync.Mutex
	idle *netlink.Handle // of the last question; opening one costs more than asking
}

// idleHandle is how long a netlink socket is kept for the next question. Requests come in bursts.
const idleHandle = time.Second

// take returns a netlink socket.
func (r *Kernel) take() (*netlink.Handle, error) {
	r.mu.Lock()
	h := r.idle
	r.idle = nil
	r.mu.Unlock()
	if h != nil {
		return h, nil
	}
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	return h, nil
}

// keep keeps a netlink socket that every answer was read from.
func (r *Kernel) keep(h *netlink.Handle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle != nil {
		h.Close()
		return
	}
	r.idle = h
	time.AfterFunc(idleHandle, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.idle == h {
			r.idle = nil
			h.Close()
		}
	})
}

// NextHop implements [Router].
func (r *Kernel) NextHop(a netip.Addr) (NextHop, error) {
	h, err := r.take()
	if err != nil {
		return NextHop{}, err
	}
	options := netlink.RouteGetOptions{FIBMatch: true}
	if r.Mark != nil {
		options.Mark = r.Mark()
	}
	routes, err := h.RouteGetWithOptions(a.AsSlice(), &options)
	if err == nil || errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH) { // the kernel has answered
		r.keep(h)
	} else {
		h.Close()
	}
	switch {
	case errors.Is(err, unix.ENETUNREACH), unsupported(err):
		return NextHop{}, nil
	case errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EACCES):
		return NextHop{Blocked: true}, nil // routes of type unreachable, blackhole and prohibit
	case err != nil:
		return NextHop{}, fmt.Errorf("look for a route: %w", err)
	case len(routes) == 0:
		return NextHop{}, nil
	}
	return nextHopOf(routes[0]), nil
}

func nextHopOf(r netlink.Route) NextHop {
	w := NextHop{Index: r.LinkIndex, Default: true}
	if w.Index == 0 && len(r.MultiPath) > 0 {
		w.Index = r.MultiPath[0].LinkIndex
	}
	if r.Dst != nil {
		to, _ := netip.AddrFromSlice(r.Dst.IP)
		bits, _ := r.Dst.Mask.Size()
		w.Default = worldwide(netip.PrefixFrom(to.Unmap(), bits))
	}
	switch r.Type {
	case unix.RTN_UNICAST:
	case unix.RTN_LOCAL, unix.RTN_ANYCAST:
		w.Local = true
	default: // broadcast, multicast
		w.Blocked = true
	}
	return w
}

// Device implements [Router].
func (*Kernel) Device(index int) (Link, error) {
	k, err := openKernel(nil)
	if err != nil {
		return Link{}, err
	}
	defer k.close()
	d, err := k.h.LinkByIndex(index)
	if err != nil {
		return Link{}, fmt.Errorf("look for interface %d: %w", index, err)
	}
	i := newInterface(d)
	kind, _ := i.kind()
	return Link{Name: i.Name, Index: i.Index, Kind: kind}, nil
}
