package link

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Kernel is the Router that asks the kernel's routing rules and tables. It knows the network namespace of the process.
type Kernel struct {
	Mark func() uint32 // of the sockets in question; nil or 0 = none
}

// NextHop implements [Router].
func (r Kernel) NextHop(a netip.Addr) (NextHop, error) {
	k, err := openKernel(r.Mark)
	if err != nil {
		return NextHop{}, err
	}
	defer k.close()
	routes, err := k.h.RouteGetWithOptions(a.AsSlice(), &netlink.RouteGetOptions{FIBMatch: true, Mark: k.mark})
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
func (Kernel) Device(index int) (Link, error) {
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
