package engine

import (
	"net"
	"net/netip"
	"slices"

	"github.com/tributary-http/tributary/internal/health"
	"github.com/tributary-http/tributary/internal/transfer"
)

const (
	maxIdle = 64 // sites without a transfer: their findings about a link help their next transfer
	maxNets = 8  // networks known of one site
)

// site is an origin that transfers use or used lately.
type site struct {
	addr  string         // "host:port"
	host  string         // of addr
	board *health.Board  // the links as transfers from here find them
	nets  []netip.Prefix // networks of its addresses, as far as they are known
	runs  int            // transfers
}

// join adds a transfer and returns the state of every link for its origin, in the order of their numbers.
func (f *fleet) join(r *run) []transfer.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.site = f.site(r.req.Target.Addr)
	r.site.runs++
	f.runs = append(f.runs, r)
	var e []transfer.Event
	for i := range f.all {
		s, _ := r.site.board.State(int8(i))
		e = append(e, transfer.Event{Kind: transfer.LinkState, Link: int8(i), State: s})
	}
	f.nudge() // a ban whose time is over is probed now that there is an origin to probe
	return e
}

// site returns the site of an address and makes it the last one in the list. The lock is held.
func (f *fleet) site(addr string) *site {
	var s *site
	if i := slices.IndexFunc(f.sites, func(s *site) bool { return s.addr == addr }); i >= 0 {
		s = f.sites[i]
		f.sites = slices.Delete(f.sites, i, i+1)
	} else {
		s = &site{addr: addr, host: hostOf(addr), board: f.boards.Join()}
	}
	f.sites = append(f.sites, s)
	return s
}

func (f *fleet) leave(r *run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs = slices.DeleteFunc(f.runs, func(o *run) bool { return o == r })
	for _, s := range f.all {
		delete(s.rates, r)
	}
	r.site.runs--
	oldest, idle := 0, 0
	for i, s := range slices.Backward(f.sites) {
		if s.runs == 0 {
			oldest = i
			idle++
		}
	}
	if idle > maxIdle {
		f.boards.Leave(f.sites[oldest].board)
		f.sites = slices.Delete(f.sites, oldest, oldest+1)
	}
}

// found notes where an origin is, as a connection of one of its transfers has found it.
func (f *fleet) found(s *site, i int8, remote string) {
	to, err := netip.ParseAddrPort(remote)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := network(f.all[i].link, to.Addr())
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
