package discover

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/internal/net/link"
)

// Kernel is the Router that asks the kernel's routing rules and tables. It answers for the network namespace of the
// process.
//
// One goroutine asks for all callers. The library reads each answer into 64 KiB of stack, and the stack of a goroutine
// that waits for its connection's next request would keep that size.
type Kernel struct {
	Mark func() uint32 // mark of the sockets in question; nil or 0 = none

	mu        sync.Mutex
	questions chan inquiry // to the goroutine that asks, nil = there is none
	waiting   int          // questions that it has not taken yet
}

type inquiry struct {
	ask    func(*kernel) error
	answer chan<- error
}

// idleTime is how long the goroutine and its netlink socket are kept for the next question. Requests come in bursts.
const idleTime = time.Second

// answerTime is how long a question may take, the wait for others included. The kernel answers within microseconds.
const answerTime = 5 * time.Second

var errSilent = errors.New("the kernel does not answer")

// ask asks a question over a netlink socket that no other question uses at the time. A question that failed may still
// be asked, and its answer must not be used.
func (r *Kernel) ask(ask func(*kernel) error) error {
	answer := make(chan error, 1)
	r.mu.Lock()
	if r.questions == nil {
		r.questions = make(chan inquiry)
		go r.serve(r.questions)
	}
	r.waiting++
	to := r.questions
	r.mu.Unlock()
	late := time.NewTimer(answerTime)
	defer late.Stop()
	select {
	case to <- inquiry{ask, answer}:
	case <-late.C:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.waiting--
		return errSilent
	}
	select {
	case err := <-answer:
		return err
	case <-late.C:
		return errSilent
	}
}

// serve asks questions until there has been none for idleTime.
func (r *Kernel) serve(questions <-chan inquiry) {
	var k *kernel
	defer func() {
		if k != nil {
			k.close()
		}
	}()
	idle := time.NewTimer(idleTime)
	defer idle.Stop()
	for {
		select {
		case q := <-questions:
			r.mu.Lock()
			r.waiting--
			r.mu.Unlock()
			var err error
			if k == nil {
				k, err = openKernel(nil)
			}
			if err == nil {
				err = q.ask(k)
				// a part of the answer may be left
				if err != nil && !errors.Is(err, unix.ENETUNREACH) && !errors.Is(err, unix.EHOSTUNREACH) {
					k.close()
					k = nil
				}
			}
			q.answer <- err
			idle.Reset(idleTime)
		case <-idle.C:
			if r.leave() {
				return
			}
			idle.Reset(idleTime)
		}
	}
}

// leave ends the goroutine that asks, unless a question is on its way to it.
func (r *Kernel) leave() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting > 0 {
		return false
	}
	r.questions = nil
	return true
}

// NextHop implements [Router].
func (r *Kernel) NextHop(a netip.Addr) (link.NextHop, error) {
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
		return link.NextHop{}, nil
	case errors.Is(err, unix.EHOSTUNREACH), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EACCES):
		return link.NextHop{Blocked: true}, nil // routes of type unreachable, blackhole and prohibit
	case err != nil:
		return link.NextHop{}, fmt.Errorf("look for a route: %w", err)
	case len(routes) == 0:
		return link.NextHop{}, nil
	}
	return nextHopOf(routes[0]), nil
}

func nextHopOf(r netlink.Route) link.NextHop {
	w := link.NextHop{Index: r.LinkIndex, Default: true}
	if w.Index == 0 && len(r.MultiPath) > 0 {
		w.Index = r.MultiPath[0].LinkIndex
	}
	if r.Dst != nil {
		to, _ := netip.AddrFromSlice(r.Dst.IP)
		bits, _ := r.Dst.Mask.Size()
		w.Default = link.Worldwide(netip.PrefixFrom(to.Unmap(), bits))
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
func (r *Kernel) Device(index int) (link.Link, error) {
	var d netlink.Link
	err := r.ask(func(k *kernel) (err error) {
		d, err = k.h.LinkByIndex(index)
		return err
	})
	if err != nil {
		return link.Link{}, fmt.Errorf("look for interface %d: %w", index, err)
	}
	i := newInterface(d)
	kind, _ := i.kind()
	return link.Link{Name: i.Name, Index: i.Index, Kind: kind}, nil
}
