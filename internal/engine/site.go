package engine

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/health"
	"github.com/tributary-http/tributary/internal/transfer"
)

const (
	maxSites = 64 // without a transfer; their verdicts hold for the next one
	maxNets  = 8  // of one origin
)

// site is an origin that transfers use or used lately.
type site struct {
	addr  string // "host:port"
	host  string
	board *health.Board  // its links as its own transfers find them
	nets  []netip.Prefix // that its addresses are in, as far as they are known
	left  time.Time      // when its last transfer ended
}

// join adds a transfer and returns the state of every link for its origin, in the order of their numbers.
func (f *fleet) join(r *run) []transfer.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.site = f.site(r.target.Addr)
	f.runs = append(f.runs, r)
	var e []transfer.Event
	for i := range f.slots {
		s, _ := r.site.board.State(int8(i))
		e = append(e, transfer.Event{Kind: transfer.LinkState, Link: int8(i), State: s})
	}
	f.nudge() // a ban whose time is over is probed now that there is an origin to probe
	return e
}

// site returns the origin at an address. The lock is held.
func (f *fleet) site(addr string) *site {
	for _, s := range f.sites {
		if s.addr == addr {
			return s
		}
	}
	s := &site{addr: addr, host: hostOf(addr), board: f.boards.Join()}
	f.sites = append(f.sites, s)
	return s
}

func (f *fleet) leave(r *run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs = slices.DeleteFunc(f.runs, func(o *run) bool { return o == r })
	for _, s := range f.slots {
		delete(s.rates, r)
	}
	r.site.left = time.Now()
	var idle []*site
	for _, s := range f.sites {
		if !f.running(s) {
			idle = append(idle, s)
		}
	}
	if len(idle) > maxSites {
		oldest := slices.MinFunc(idle, func(a, b *site) int { return a.left.Compare(b.left) })
		f.boards.Leave(oldest.board)
		f.sites = slices.DeleteFunc(f.sites, func(s *site) bool { return s == oldest })
	}
}

// running reports whether transfers from an origin run. The lock is held.
func (f *fleet) running(s *site) bool {
	return slices.ContainsFunc(f.runs, func(r *run) bool { return r.site == s })
}

// found notes where an origin is, as a connection of one of its transfers has found it.
func (f *fleet) found(s *site, i int8, remote string) {
	to, err := netip.ParseAddrPort(remote)
	if err != nil {
		return // a test's
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := network(f.slots[i].link, to.Addr())
	if slices.Contains(s.nets, n) {
		return
	}
	if len(s.nets) == maxNets {
		s.nets = slices.Delete(s.nets, 0, 1)
	}
	s.nets = append(s.nets, n)
}

// hostOf returns the host of "host:port".
func hostOf(addr string) string {
	if host, _, err := net.SplitHostPort(addr); err == nil {
		return host
	}
	return addr
}
