package engine

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/net/link"
)

// An origin that starves its connections over one link, or accepts none there, makes the link look dead, and any origin
// can do that. So its verdict counts for its own transfers only. It counts for everybody, including tunnels and
// transfers from other origins, if a trial confirms it: nothing has arrived over the link recently, its DNS servers do
// not answer, and other origins that were reached over it before are no longer reached.

const (
	testimonyTimeout = 2 * time.Second

	// trialEvery spaces the trials of a link. An origin may accuse it as often as it likes, and each trial connects to
	// origins that have nothing to do with that.
	trialEvery = 5 * time.Second

	// meteredEvery replaces trialEvery after a trial that connected to other hosts over a metered link, since no DNS
	// server answered.
	meteredEvery = time.Minute

	maxReached   = 8                // of each link
	maxWitnesses = 3                // asked at once
	maxAsked     = 2 * maxWitnesses // in a trial
	recent       = 10 * time.Minute
)

// reached is a host that a connection over a link reached.
type reached struct {
	addr string // "host:port"
	host string
	net  netip.Prefix
	at   time.Time
}

// reach notes that a connection over a link was made. Only web servers are asked later: a mail server may count
// connections without a word against the user. Routers and other neighbors are not asked either: they answer even while
// the uplink is dead. Each host and each network is listed once, so that no origin fills the list.
func (f *fleet) reach(l link.Link, addr string, to netip.Addr) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port != "80" && port != "443" || l.Near(to) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := slices.IndexFunc(f.all, func(s *fleetLink) bool { return s.name == l.Name })
	if n < 0 {
		return
	}
	s, w := f.all[n], reached{addr, host, f.network(l, to), time.Now()}
	s.reached = slices.DeleteFunc(s.reached, func(o reached) bool {
		return o.host == w.host || w.net.IsValid() &&
			o.net == w.net
	})
	if len(s.reached) == maxReached {
		s.reached = slices.Delete(s.reached, 0, 1)
	}
	s.reached = append(s.reached, w)
}

// network returns the network of an address: whoever has one address in it may easily have others. Behind a NAT64, it
// is the network of the IPv4 address: the NAT64 prefix contains the whole IPv4 internet.
func (f *fleet) network(l link.Link, a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	if f.behind != nil {
		a = f.behind(l, a)
	}
	bits := 48
	if a.Is4() {
		bits = 24
	}
	p, _ := a.Prefix(bits) // fails for invalid addresses only, which have no network
	return p
}

// accusing reports whether the failure of an origin for this cause may mean that the link is dead.
func accusing(c health.Cause) bool { return c == health.Silence || c == health.DialFailed }

// accuser is an origin that finds a link dead.
type accuser struct {
	host string
	nets []netip.Prefix // of its addresses
}

// accusers returns the origins whose running transfers, or other connections, find a link dead, and why. The lock is
// held.
func (f *fleet) accusers(i int8) (all []accuser, cause health.Cause) {
	for _, s := range f.sites {
		state, c := s.board.State(i)
		if state != health.Up && accusing(c) && len(s.runs) > 0 {
			all, cause = append(all, accuser{s.host, s.nets}), c
		}
	}
	l := f.all[i]
	for _, o := range l.overdue {
		all, cause = append(all, accuser{hostOf(o.Addr), []netip.Prefix{f.network(l.link, o.To)}}), health.Silence
	}
	return all, cause
}

// witnesses returns the hosts that were recently reached over a link and do not accuse it, the latest first. The lock
// is held.
func (f *fleet) witnesses(i int8, accusers []accuser, most int) (addrs []string) {
	for _, w := range slices.Backward(f.all[i].reached) {
		accuses := func(a accuser) bool { return a.host == w.host || w.net.IsValid() && slices.Contains(a.nets, w.net) }
		if len(addrs) < most && time.Since(w.at) < recent && !slices.ContainsFunc(accusers, accuses) {
			addrs = append(addrs, w.addr)
		}
	}
	return addrs
}

// Overdue is a connection outside of transfers, such as a tunnel, whose other end owes an acknowledgment and is silent.
type Overdue struct {
	Addr string     // "host:port" as it was dialed
	To   netip.Addr // address that it reached
}

// overdue records the connections outside of transfers that are overdue on a link, which may be dead.
func (f *fleet) overdue(name string, of []Overdue) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.all, func(s *fleetLink) bool { return s.name == name })
	if i < 0 {
		return
	}
	f.all[i].overdue = of
	if state, _ := f.boards.State(int8(i)); len(of) > 0 && state == health.Up {
		f.all[i].accused = true
		f.nudge()
	}
}

// trialAt returns when a link may be tried again. The lock is held.
func (s *fleetLink) trialAt() time.Time {
	if s.dialed { // witnesses cost money
		return s.tried.Add(meteredEvery)
	}
	return s.tried.Add(trialEvery)
}

// try finds out whether a link that an origin has banned should be banned for everybody.
func (f *fleet) try(ctx context.Context, i int8) {
	f.mu.Lock()
	l := f.all[i].link
	state, _ := f.boards.State(i)
	accusers, _ := f.accusers(i)
	most := maxAsked
	if l.Terms.Last() {
		most = maxWitnesses
	}
	witnesses := f.witnesses(i, accusers, most)
	f.mu.Unlock()
	dead, dialed := false, false
	if state == health.Up && len(accusers) > 0 && !f.lives(i, l, health.BanAfter) {
		dead, dialed = f.fails(ctx, l, witnesses)
		dead = dead && !f.lives(i, l, health.BanAfter)
	}
	f.change(func(now time.Time) {
		f.all[i].tried, f.all[i].onTrial, f.all[i].dialed = now, false, dialed && l.Terms.Last()
		if still, cause := f.accusers(i); dead && len(still) > 0 && ctx.Err() == nil {
			f.boards.Failed(now, i, cause)
		}
	})
	f.nudge()
}

// lives reports whether anything arrived over a link within the last d, for transfers or others.
func (f *fleet) lives(i int8, l link.Link, d time.Duration) bool {
	return f.clock(time.Now())-f.linkAt(i).lastByte.Load() < int64(d) || f.heard != nil && f.heard(l.Name, d)
}

// fails reports whether a link is dead: none of the hosts that it asks is reached over the link. It asks the link's DNS
// servers and the witnesses; an origin may have planted the last few of these. If there is nobody to ask, the link does
// not count as dead. Connections over a metered link cost money: witnesses are asked one at a time, and only if no DNS
// server answers. dialed reports whether any were.
func (f *fleet) fails(ctx context.Context, l link.Link, witnesses []string) (dead, dialed bool) {
	rounds, size := [][]asking{{probe}}, maxWitnesses
	if l.Terms.Last() {
		size = 1
	}
	for some := range slices.Chunk(witnesses, size) {
		var round []asking
		for _, addr := range some {
			round = append(round, func(ctx context.Context, l link.Link) testimony { return f.ask(ctx, l, addr) })
		}
		rounds = append(rounds, round)
	}
	if !l.Terms.Last() && len(rounds) > 1 { // DNS servers and the first witnesses at the same time
		rounds[1] = append(rounds[1], rounds[0]...)
		rounds = rounds[1:]
	}
	said := nothing
	for i, round := range rounds {
		dialed = i > 0 || !l.Terms.Last()
		if said = max(said, testify(ctx, l, round)); said == reachable {
			break
		}
	}
	return said == unreachable, dialed
}

// testimony is the evidence about a link from an attempt to reach a host: the greatest one counts.
type testimony uint8

const (
	nothing testimony = iota
	full              // the maximum number of connections is already open
	unreachable
	reachable
)

// asking is one attempt to reach a host over a link.
type asking func(ctx context.Context, l link.Link) testimony

// testify makes attempts at the same time. One that succeeds is enough.
func testify(ctx context.Context, l link.Link, round []asking) (all testimony) {
	ctx, cancel := context.WithTimeout(ctx, testimonyTimeout)
	defer cancel()
	said := make(chan testimony)
	for _, ask := range round {
		go func() { said <- ask(ctx, l) }()
	}
	for range round {
		if all = max(all, <-said); all == reachable {
			cancel() // the others need not answer
		}
	}
	return all
}

// probe asks the link's own hosts: its DNS servers, or its upstream.
func probe(ctx context.Context, l link.Link) testimony {
	switch err := l.Probe(ctx); {
	case err == nil:
		return reachable
	case errors.Is(err, link.ErrNothingToProbe):
		return nothing
	}
	return unreachable
}

// ask connects to an origin and closes the connection.
func (f *fleet) ask(ctx context.Context, l link.Link, addr string) testimony {
	c, _, said := connect(link.Once(ctx, netip.Addr{}), l, addr)
	if c != nil {
		c.Close()
	}
	return said
}

// connect connects to an origin and sends nothing. It returns a connection only if the origin is reachable, and not
// always then.
func connect(ctx context.Context, l link.Link, addr string) (net.Conn, link.Info, testimony) {
	c, info, err := l.Dial(ctx, "tcp", addr)
	switch {
	case err == nil:
		return c, info, reachable
	case refusedByOrigin(err): // an answer, if not a welcome one
		return nil, info, reachable
	case errors.As(err, new(*link.NoSlotError)):
		return nil, info, full
	case errors.Is(err, link.ErrDenied), errors.Is(err, link.ErrOffLink), errors.Is(err, link.ErrUpstreamRefused):
		return nil, info, nothing
	}
	return nil, info, unreachable
}

// probe connects to an origin whose transfers find a link silent or have banned it. A transfer that continues over the
// link uses this connection first.
func (f *fleet) probe(ctx context.Context, s *site, p health.Probe) {
	ctx, cancel := context.WithTimeout(ctx, p.For)
	defer cancel()
	f.mu.Lock()
	l, to := f.all[p.Link].link, netip.Addr{}
	// needs one packet and no DNS server; others have their turn later
	if last := s.last[p.Link]; p.Quick() && p.At.Sub(last.at) < addressLife {
		to = last.addr
	}
	f.mu.Unlock()
	c, info, said := connect(link.Once(ctx, to), l, s.addr)
	a := health.NoAnswer
	switch said {
	case reachable:
		a = health.Answered
	case full: // transfers find out when they may connect
		a = health.NotSent
	}
	if c != nil {
		f.warm(l, s.addr, c, info)
	}
	f.change(func(now time.Time) {
		f.boards.Probed(now, s.board, p, a)
		// an origin's last link is never banned, but may be dead, too
		if a == health.NoAnswer && s.board.Lasting(now, p.Link) {
			f.all[p.Link].accused = true
		}
	})
	f.nudge()
}

// probeForAll finds out whether a link that is banned for everybody works again.
func (f *fleet) probeForAll(ctx context.Context, p health.Probe) {
	i := p.Link
	f.mu.Lock()
	l := f.all[i].link
	_, cause := f.boards.State(i)
	most := maxWitnesses
	if l.Terms.Last() {
		most = 1
	}
	witnesses := f.witnesses(i, nil, most)
	if s := f.misses(i); len(witnesses) == 0 && s != nil {
		if !slices.ContainsFunc(s.nets, func(p netip.Prefix) bool { return l.Near(p.Addr()) }) {
			witnesses = append(witnesses, s.addr)
		}
	}
	f.mu.Unlock()
	a := health.Answered
	if !accusing(cause) || !f.lives(i, l, health.SuspectAfter) {
		if dead, _ := f.fails(ctx, l, witnesses); dead {
			a = health.NoAnswer
		}
	}
	f.change(func(now time.Time) { f.boards.Tried(now, p, a) })
	f.nudge()
}
