package engine

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/health"
	"github.com/tributary-http/tributary/internal/link"
)

// An origin that starves the connections over one link, or takes none, makes the link look dead, and any origin can do so.
// Its verdict counts for its own transfers only. It counts for everybody, which turns tunnels and the transfers of other
// origins away from the link, if nothing at all comes over the link and others confirm that: origins that were reached
// over it lately, or else its DNS servers, or else a second origin that has come to the same verdict.

const (
	probeTimeout = 2 * time.Second

	// lifetime is how long ago a link may have brought something, from whomever, for it to be alive: as long as a suspect
	// is waited for before it is banned (package health).
	lifetime = 3 * time.Second

	maxReached   = 8 // of each link
	maxWitnesses = 3 // asked at a time
)

// reached is whom a connection over a link has led to.
type reached struct {
	addr string // "host:port"
	host string
	net  netip.Prefix
}

// reach notes that a connection over a link was made. Only web servers are asked later: others may hold a connection
// without a word against the user. Each host and each network is there once, so that no origin fills the list.
func (f *fleet) reach(l link.Link, addr string, to netip.Addr) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != "80" && port != "443" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := slices.IndexFunc(f.slots, func(s *slot) bool { return s.name == l.Name })
	if n < 0 {
		return
	}
	s, w := f.slots[n], reached{addr, host, network(l, to)}
	s.reached = slices.DeleteFunc(s.reached, func(o reached) bool { return o.host == w.host || o.net == w.net })
	if len(s.reached) == maxReached {
		s.reached = slices.Delete(s.reached, 0, 1)
	}
	s.reached = append(s.reached, w)
}

// network returns the network that an address is in: whoever has one address there may easily have others.
func network(l link.Link, a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := 48
	switch {
	case a.Is4():
		bits = 24
	case l.NAT64.IsValid() && l.NAT64.Contains(a): // the IPv4 address is within
		bits = 128
	}
	p, _ := a.Prefix(bits) // fails for invalid addresses only, which have no network
	return p
}

// accusing reports whether an origin that fails for a cause may show that the link does. One that is slow does not.
func accusing(c health.Cause) bool { return c == health.Silence || c == health.DialFailed }

// accusers returns the origins whose running transfers find a link dead, and why. The lock is held.
func (f *fleet) accusers(i int8) (all []*site, cause health.Cause) {
	for _, s := range f.sites {
		state, c := s.board.State(i)
		if state != health.Up && accusing(c) && f.running(s) {
			all, cause = append(all, s), c
		}
	}
	return all, cause
}

// independent reports whether two origins have neither host nor network in common.
func independent(a, b *site) bool {
	return a.host != b.host && len(a.nets) > 0 && len(b.nets) > 0 &&
		!slices.ContainsFunc(a.nets, func(n netip.Prefix) bool { return slices.Contains(b.nets, n) })
}

// witnesses returns who was reached over a link lately, the last one first, but for origins that accuse it. The lock is
// held.
func (f *fleet) witnesses(i int8, accusers []*site) (addrs []string) {
	for _, w := range slices.Backward(f.slots[i].reached) {
		accuses := func(s *site) bool { return s.host == w.host || slices.Contains(s.nets, w.net) }
		if len(addrs) < maxWitnesses && !slices.ContainsFunc(accusers, accuses) {
			addrs = append(addrs, w.addr)
		}
	}
	return addrs
}

// try finds out whether a link that an origin has banned is to be banned for everybody.
func (f *fleet) try(ctx context.Context, i int8) {
	f.mu.Lock()
	l := f.slots[i].link
	state, _ := f.boards.State(i)
	accusers, _ := f.accusers(i)
	witnesses := f.witnesses(i, accusers)
	f.mu.Unlock()
	guilty := false
	if state == health.Up && len(accusers) > 0 && !f.lives(i, l, lifetime) {
		works, known := f.testify(ctx, l, witnesses)
		if !known && !agree(accusers) {
			works, known = f.resolves(ctx, l)
			works = works || !known
		}
		guilty = !works && ctx.Err() == nil && !f.lives(i, l, lifetime)
	}
	f.change(func(now time.Time) {
		f.slots[i].onTrial = false
		if still, cause := f.accusers(i); guilty && len(still) > 0 {
			f.boards.Failed(now, i, cause)
		}
	})
	f.nudge()
}

// agree reports whether two of the accusers are independent.
func agree(accusers []*site) bool {
	for n, a := range accusers {
		if slices.ContainsFunc(accusers[n+1:], func(b *site) bool { return independent(a, b) }) {
			return true
		}
	}
	return false
}

// lives reports whether anything came over a link within the last d, for transfers or others.
func (f *fleet) lives(i int8, l link.Link, d time.Duration) bool {
	return f.clock(time.Now())-f.slot(i).lastByte.Load() < int64(d) || f.heard != nil && f.heard(l.Name, d)
}

// testify asks witnesses whether a link works: one that can be connected to shows that it does. Unless known is true none of
// them can tell.
func (f *fleet) testify(ctx context.Context, l link.Link, witnesses []string) (works, known bool) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	said := make(chan testimony)
	for _, addr := range witnesses {
		go func() { said <- f.ask(ctx, l, addr) }()
	}
	for range witnesses {
		switch <-said {
		case reachable:
			works, known = true, true
			cancel() // the others need not answer
		case unreachable:
			known = true
		}
	}
	return works, known
}

// resolves asks the DNS servers of a link whether it works. Unless known is true it has none that can tell.
func (f *fleet) resolves(ctx context.Context, l link.Link) (works, known bool) {
	if f.askDNS == nil {
		return false, false
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return f.askDNS(ctx, l)
}

// testimony is what an attempt to connect tells of a link.
type testimony uint8

const (
	nothing testimony = iota
	reachable
	unreachable
)

// ask connects to an origin and sends nothing.
func (f *fleet) ask(ctx context.Context, l link.Link, addr string) testimony {
	c, err := f.dial(ctx, l, "tcp", addr)
	switch {
	case err == nil:
		c.Close()
		return reachable
	case refusedByOrigin(err): // an answer, if not a welcome one
		return reachable
	case errors.Is(err, link.ErrDenied), errors.Is(err, link.ErrOffLink):
		return nothing
	}
	return unreachable
}

// probe connects to an origin that has banned a link, over which its transfers may go.
func (f *fleet) probe(ctx context.Context, s *site, i int8) {
	f.mu.Lock()
	l, may := f.slots[i].link, f.mayProbe(s, i)
	f.mu.Unlock()
	ok := false
	if may {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		ok = f.ask(ctx, l, s.addr) == reachable
	}
	f.change(func(now time.Time) {
		f.boards.Probed(now, s.board, i, ok)
		if may && !ok { // the last link of an origin is not banned, but may be dead as well
			f.slots[i].accused = true
		}
	})
	f.nudge()
}

// mayProbe reports whether a running transfer from an origin may use a link. The lock is held.
func (f *fleet) mayProbe(s *site, i int8) bool {
	return slices.ContainsFunc(f.runs, func(r *run) bool {
		return r.site == s && (r.req.Links == nil || slices.Contains(r.req.Links, f.slots[i].name))
	})
}

// probeForAll finds out whether a link that is banned for everybody works again. If nobody can tell, it may be tried.
func (f *fleet) probeForAll(ctx context.Context, i int8) {
	f.mu.Lock()
	l := f.slots[i].link
	_, cause := f.boards.State(i)
	ask := f.witnesses(i, nil)
	for _, s := range f.sites {
		if len(ask) == 0 && f.mayProbe(s, i) {
			ask = append(ask, s.addr)
		}
	}
	f.mu.Unlock()
	ok := accusing(cause) && f.lives(i, l, hearsay)
	if !ok {
		works, known := f.testify(ctx, l, ask)
		if !known {
			works, known = f.resolves(ctx, l)
		}
		ok = works || !known
	}
	f.change(func(now time.Time) { f.boards.Tried(now, i, ok) })
	f.nudge()
}
