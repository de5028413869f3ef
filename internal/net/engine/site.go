package engine

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

const (
	maxIdle = 64 // sites without a transfer: their findings about a link help their next transfer
	maxNets = 8  // networks known of one site
)

// site is an origin that transfers use or used recently.
type site struct {
	addr  string           // "host:port"
	host  string           // of addr
	board *health.Board    // state of the links for transfers from here
	nets  []netip.Prefix   // known networks of its addresses
	last  map[int8]address // by link: its address on the last connection
	runs  []*run           // its transfers
}

// address is the address of an origin, and when it was last known to be valid.
type address struct {
	addr netip.Addr
	at   time.Time
}

// addressLife is how long the address of an origin is assumed to stay valid, like an answer of a DNS server.
const addressLife = 30 * time.Second

// join adds a transfer and returns the state of every link for its origin, in the order of their numbers.
func (f *fleet) join(r *run) []transfer.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.site = f.site(r.req.Target.Addr)
	r.site.runs = append(r.site.runs, r)
	f.runs = append(f.runs, r)
	var e []transfer.Event
	for i := range f.all {
		s, _ := r.site.board.State(int8(i))
		e = append(e, transfer.Event{Kind: transfer.LinkState, Link: int8(i), State: s})
	}
	return e
}

// site returns the site of an address and makes it the last one in the list. The lock is held.
func (f *fleet) site(addr string) *site {
	var s *site
	if i := slices.IndexFunc(f.sites, func(s *site) bool { return s.addr == addr }); i >= 0 {
		s = f.sites[i]
		f.sites = slices.Delete(f.sites, i, i+1)
	} else {
		s = &site{addr: addr, host: hostOf(addr), board: f.boards.Join(), last: map[int8]address{}}
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
		s.forgive(r)
		s.lastRun.CompareAndSwap(r, nil)
	}
	r.site.runs = slices.DeleteFunc(r.site.runs, func(o *run) bool { return o == r })
	oldest, idle := 0, 0
	for i, s := range slices.Backward(f.sites) {
		if len(s.runs) == 0 {
			oldest = i
			idle++
		}
	}
	if idle > maxIdle {
		f.boards.Leave(f.sites[oldest].board)
		f.sites = slices.Delete(f.sites, oldest, oldest+1)
	}
}

// allow records that a transfer may use links. A link whose ban has expired is probed now that there is an origin to
// probe.
func (f *fleet) allow(r *run, links ...int8) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range links {
		r.used[i] = r.used[i] || false
	}
	f.nudge()
}

// forbid records that a transfer may no longer use a link.
func (f *fleet) forbid(r *run, i int8) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(r.used, i)
}

// uses records that a transfer uses a link.
func (f *fleet) uses(r *run, i int8) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.used[i] = true
}

// demand reports whether a running transfer may use a link, and whether one has used it. The fleet's lock is held.
func (s *site) demand(i int8) (may, has bool) {
	for _, r := range s.runs {
		used, allowed := r.used[i]
		may, has = may || allowed, has || used
	}
	return may, has
}

// found records the address of an origin that a connection of one of its transfers reached.
func (f *fleet) found(s *site, i int8, remote string) {
	to, err := netip.ParseAddrPort(remote)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.last[i] = address{to.Addr(), time.Now()}
	n := f.network(f.all[i].link, to.Addr())
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
