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

// Kernel is the Router that asks the kernel's routing rules and tables. It answers for the network namespace of the process.
type Kernel struct {
	Mark func() uint32 // mark of the sockets in question; nil or 0 = none

	mu    sync.Mutex
	idle  *kernel     // kept for the next question; opening one costs more than asking
	timer *time.Timer // closes idle
}

// idleTime is how long a netlink socket is kept for the next question. Requests come in bursts.
const idleTime = time.Second

// ask asks a question over a netlink socket that no other question uses.
func (r *Kernel) ask(question func(*kernel) error) error {
	r.mu.Lock()
	k := r.idle
	r.idle = nil
	r.mu.Unlock()
	if k == nil {
		var err error
		if k, err = openKernel(nil); err != nil {
			return err
		}
	}
	err := question(k)
	answered := err == nil || errors.Is(err, unix.ENETUNREACH) || errors.Is(err, unix.EHOSTUNREACH)
	if !answered || !r.keep(k) {
		k.close()
	}
	return err
}

// keep keeps a socket whose answers have all been read, and reports whether it did.
func (r *Kernel) keep(k *kernel) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle != nil {
		return false
	}
	r.idle = k
	if r.timer == nil {
		r.timer = time.AfterFunc(idleTime, r.closeIdle)
	} else {
		r.timer.Reset(idleTime)
	}
	return true
}

func (r *Kernel) closeIdle() {
	r.mu.Lock()
	k := r.idle
	r.idle = nil
	r.mu.Unlock()
	if k != nil {
		k.close()
	}
}

// NextHop implements [Router].
func (r *Kernel) NextHop(a netip.Addr) (NextHop, error) {
	options := netlink.RouteGetOptions{FIBMatch: true}
	if r.Mark != nil {
		options.Mark = r.Mark()
	}
	var routes []netlink.Route
	err := r.ask(func(k *kernel) (err error) {
		routes, err = k.h.RouteGetWithOptions(a.AsSlice(), &options)
		return err
	})
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
func (r *Kernel) Device(index int) (Link, error) {
	var d netlink.Link
	err := r.ask(func(k *kernel) (err error) {
		d, err = k.h.LinkByIndex(index)
		return err
	})
	if err != nil {
		return Link{}, fmt.Errorf("look for interface %d: %w", index, err)
	}
	i := newInterface(d)
	kind, _ := i.kind()
	return Link{Name: i.Name, Index: i.Index, Kind: kind}, nil
}
