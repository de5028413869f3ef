package transfer

import (
	"math"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/parallel"
	"github.com/tributary-http/tributary/internal/core/schedule"
)

const (
	endless = time.Duration(math.MaxInt64)

	pauseAfterFailure = time.Second

	// maxSwallowed is how many lost requests end pipelining where it seemed to work: over a long round trip, a
	// pipelined request may reach the server when the answer before it is already on its way, and so prove nothing.
	// Servers that drop a connection on a second request do so with a delay, so some answers still arrive.
	maxSwallowed = 2

	maxFailures = 6 // in a row without a byte: then the link leaves the transfer
)

// link is a link as one transfer sees it.
type link struct {
	allowed   bool // by policy, now or earlier
	withheld  bool // by policy, for now
	spare     bool // withheld until another link leaves
	metered   bool
	optional  bool
	radio     *energy.Radio
	lastByte  time.Time       // zero = none yet
	spared    schedule.Spared // the goal does without it
	unreached bool            // no connection while the size was unknown
	forbidden bool            // the origin's address may not be dialed over it
	resort    bool            // it waits until no other link can serve
	sole      bool            // it serves alone while memory is scarce
	excluded  bool            // it does not serve this object (Unwanted, NoRange, Changed, ...)
	refused   bool            // excluded by a refusal, which may be temporary
	state     health.State
	silent    bool      // bytes are overdue
	paused    time.Time // no new requests before this time
	resting   time.Time // nor before this time: the origin asked for it (Retry-After)
	crowded   time.Time // when the origin refused a request beside a reserve, zero = it did not
	busy      bool      // bytes are requested and may be read
	full      bool      // the host has the maximum number of connections over it
	failures  int       // in a row, without a byte in between

	spot     spot
	got      int64         // bytes received
	carried  time.Duration // time spent receiving bodies
	rest     time.Duration // longest silence in mid-body meanwhile, not counting outages
	cost     float64       // bytes that other links could have delivered while it held them up
	stands   bool          // it has nothing to do, although it is usable
	heldUp   time.Time     // when another link last held it up
	rate     estimate.Rate
	connect  estimate.RTT  // TCP handshakes
	response estimate.RTT  // requests on idle connections
	setup    time.Duration // conn.setup per answer of a connection that the origin closes, 0 = it closes none
	// of the latest request on a busy connection, 0 = unknown; no average, since queues change faster
	delay time.Duration

	multiplexed bool // its connections speak HTTP/2
	pipelining  estimate.Pipelining
	worked      bool                // pipelining seemed to work before it was doubted
	swallowed   int                 // pipelined requests that were lost with their connection
	seeded      estimate.Pipelining // findings of an earlier transfer
	maxConns    int8
	limited     bool    // maxConns was found in this transfer
	learned     int8    // connections that paid off in an earlier transfer, 0 = unknown
	each        float64 // to which the origin limited each of them then, in bytes per second; 0 = it did not
	parallel    parallel.Controller
	single      bool // one connection is enough for the client
	yielding    yielding
}

func (l *link) init(i int, c LinkConfig) {
	l.spot.group, l.spot.differs = int8(i), -1
	if c.Proven {
		l.spot.trust = proven
	}
	l.state, l.metered, l.resort, l.sole = c.State, c.Metered, c.Resort, c.Sole
	l.withheld, l.spare = c.Spare, c.Spare
	l.optional, l.radio, l.lastByte = c.Optional, c.Radio, c.LastByte
	l.pipelining, l.seeded = c.Learned.Pipelining, c.Learned.Pipelining
	l.maxConns, l.learned, l.each = c.Learned.MaxConns, c.Learned.Conns, c.Learned.Each
	l.connect.Seed(c.Learned.RTT)
	l.rate.Seed(c.Learned.Rate)
}

// usable reports whether new ranges may be requested over the link.
func (l *link) usable(now time.Time) bool {
	return l.mayServe() && !l.withheld && l.state == health.Up && !l.silent && !now.Before(l.paused) &&
		!now.Before(l.resting)
}

// quiet returns how long ago the last byte arrived over the link, a day if none has.
func (l *link) quiet(now time.Time) time.Duration {
	if l.lastByte.IsZero() {
		return 24 * time.Hour
	}
	return now.Sub(l.lastByte)
}

// rtt returns the round-trip time without load, 0 if unknown.
func (l *link) rtt() time.Duration {
	if r := l.connect.Least(); r > 0 {
		return r
	}
	return l.response.Least()
}

// depth returns how many requests may be outstanding on one connection.
func (l *link) depth() int {
	switch l.pipelining {
	case estimate.Works:
		return 8
	case estimate.Broken:
		return 1
	default:
		return 2
	}
}

// disablePipelining ends pipelining on the link for this transfer. A link on which it seemed to work is not remembered
// as broken: an outage between two answers looks like a swallowed request, and a refusal like an answer to another one.
func (l *link) disablePipelining() {
	l.worked = l.worked || l.pipelining == estimate.Works
	l.pipelining = estimate.Broken
}

// remembered returns the findings about pipelining for later transfers, Untried if there are none: a limit that the
// transfer was told and kept to is not a new finding.
func (l *link) remembered() estimate.Pipelining {
	if l.pipelining == estimate.Broken && (l.seeded == estimate.Broken || l.worked || l.out()) {
		return estimate.Untried
	}
	return l.pipelining
}

// limit returns how many connections the origin allows according to this transfer, 0 if it found no limit.
func (l *link) limit() int8 {
	if l.limited {
		return l.maxConns
	}
	return 0
}

// mayServe reports whether the link may ever be asked for ranges.
func (l *link) mayServe() bool { return l.allowed && !l.out() }

// out reports whether the link takes no part in the transfer, at least for now.
func (l *link) out() bool { return l.excluded || l.forbidden || l.resort }

// conns returns how many connections the link may have: several if they bring more, or if one cannot be kept busy.
func (l *link) conns() int {
	if l.single {
		return 1
	}
	n := max(1, l.parallel.N)
	if l.pipelining == estimate.Broken {
		n = max(n, 3)
	}
	if l.maxConns > 0 {
		n = min(n, int(l.maxConns))
	}
	return n
}

// mayOpen reports whether the link may have another connection in addition to the n that it has.
func (l *link) mayOpen(n int) bool { return n < l.conns() && !l.full }

// permitted applies the policy to a link. A link that is withheld carries nothing more: its connections close, and it
// counts as one that may come back.
func (m *Machine) permitted(link int8, may, spare bool) {
	l := &m.links[link]
	l.withheld, l.spare = !may, spare
	switch {
	case may && !l.allowed:
		l.allowed = true
		m.cfg.Order = append(m.cfg.Order, link)
	case !may:
		for i := len(m.conns) - 1; i >= 0; i-- {
			if c := &m.conns[i]; c.link == link {
				m.giveUp(c.id)
			}
		}
		m.endReserves(link)
		m.expectNothing(link)
	}
}

// Out reports whether a link does not serve the object, whatever the policy and the state of the link.
func (m *Machine) Out(link int8) bool {
	return int(link) < len(m.links) && (m.links[link].excluded || m.links[link].forbidden)
}

// available returns the number of links that may serve now or soon.
func (m *Machine) available() (n int) {
	for i := range m.links {
		l := &m.links[i]
		if l.allowed && !l.withheld && !m.Out(int8(i)) && (l.state == health.Up || l.state == health.Suspect) {
			n++
		}
	}
	return n
}

// asks reports whether the number of links that may serve has changed while the policy spares others.
func (m *Machine) asks() bool {
	for i := range m.links {
		if m.links[i].spare {
			was := m.serving
			m.serving = m.available()
			return m.serving != was
		}
	}
	return false
}

// linkState applies the shared state of a link.
func (m *Machine) linkState(now time.Time, e Event) {
	if e.New != nil {
		allowed := e.Allowed || e.New.Spare
		m.links = append(m.links, link{allowed: allowed})
		m.links[len(m.links)-1].init(len(m.links)-1, *e.New)
		if allowed {
			m.cfg.Order = append(m.cfg.Order, e.Link)
		}
	}
	l := &m.links[e.Link]
	was := l.state
	l.state = e.State
	switch e.State {
	case health.Up:
		if was == health.Up {
			return
		}
		// A probe reached it: bytes that old connections still owe are requested again on a fresh one, and a handshake
		// whose packets were lost is repeated. But while no response has carried only a part of the object, the rest
		// may come only with the response that is still awaited.
		if l.silent && m.divided {
			m.dropSilent(now, e.Link, health.SuspectAfter)
		}
		for i := len(m.conns) - 1; i >= 0; i-- {
			if c := &m.conns[i]; c.link == e.Link && !c.open && now.Sub(c.progress) >= health.SuspectAfter+l.rtt() {
				m.giveUp(c.id)
			}
		}
		l.silent = l.silent && m.known && !m.divided && m.running(e.Link) > 0
		l.paused, l.failures = time.Time{}, 0
		l.forbidden = false // the system's routes change as links come and go
	case health.Down, health.Banned:
		if e.Cause == health.NoGain { // requested bytes still arrive
			return
		}
		for i := len(m.conns) - 1; i >= 0; i-- {
			if c := &m.conns[i]; c.link == e.Link && (e.State == health.Down ||
				m.tolerated(now, c) <= health.BanAfter) {
				m.giveUp(c.id)
			}
		}
		m.endReserves(e.Link)
		l.silent = false
	}
}

// silence finds links whose bytes are overdue. A link is silent when none of its connections that should deliver does.
func (m *Machine) silence(now time.Time) {
	for i := range m.links {
		l := &m.links[i]
		since, limit, waiting := m.waiting(now, int8(i))
		if l.busy = waiting; !waiting {
			l.rate.Idle()
			if l.silent { // and the shared verdict on the link may be pending
				l.paused = now.Add(pauseAfterFailure)
				m.expectNothing(int8(i))
			}
			l.delay = 0 // queues drain
			continue
		}
		keep := now.Sub(since) < health.BanAfter || now.Sub(since) < m.toleratedOver(now, int8(i))
		switch {
		case now.Sub(since) < limit:
		case !l.silent && keep:
			l.silent = true
			if m.known { // before the first head, a thinking origin looks the same: see learnSize
				m.act(Action{Kind: ReportSilent, Link: int8(i)})
			}
		case keep:
		default:
			m.checkPipelining(now, int8(i))
			m.dropSilent(now, int8(i), health.BanAfter)
			l.paused = now.Add(pauseAfterFailure)
			m.expectNothing(int8(i))
			l.failures++
		}
	}
}

// expectNothing ends the silence of a link from which nothing more is expected. Unlike a byte (see alive), this proves
// nothing.
func (m *Machine) expectNothing(link int8) {
	if l := &m.links[link]; l.silent {
		l.silent = false
		m.act(Action{Kind: ReportNothingDue, Link: link})
	}
}

// alarm returns when the bytes of a link will be overdue, or its connections given up; zero if nothing is expected of
// it.
func (m *Machine) alarm(now time.Time, i int8) time.Time {
	since, limit, waiting := m.waiting(now, i)
	if !waiting {
		return time.Time{}
	}
	if m.links[i].silent || now.Sub(since) >= limit {
		limit = m.toleratedOver(now, i)
	}
	if limit == endless {
		return time.Time{}
	}
	return since.Add(limit)
}

// waiting returns since when a link is expected to deliver, and how long that may take; false if nothing is expected.
func (m *Machine) waiting(now time.Time, i int8) (since time.Time, limit time.Duration, ok bool) {
	l := &m.links[i]
	for j := range m.conns {
		c := &m.conns[j]
		if c.link != i || !m.expects(c) {
			continue
		}
		w := health.SuspectAfter + 4*l.response.Variation()
		switch {
		case !c.open:
			w += health.ThinkingTime + l.rtt()
		case c.answering: // bytes of a body, or of the answer after it
			w = min(w, max(l.pause(), 2*l.rtt()))
		case !m.known:
			w = health.BanAfter // a thinking origin is not asked twice at once
		case l.response.Smoothed() > 0:
			w += l.response.Smoothed()
		default:
			w += health.ThinkingTime + 2*l.rtt()
		}
		if !ok || c.progress.After(since) {
			since, limit, ok = c.progress, w, true
		}
	}
	return since, limit, ok
}

// pause returns the bound on silence in mid-body. A link that rests now and then, as LTE does, gets more time than one
// that never has.
func (l *link) pause() time.Duration {
	if l.carried < health.SteadyAfter {
		return health.BodyPause
	}
	return min(health.BodyPause, max(health.SteadyPause, 4*l.rest))
}

// expects reports whether a connection should deliver something: a handshake, a head, bytes that may be read, or the
// end of an answer.
func (m *Machine) expects(c *conn) bool {
	if len(c.queue) == 0 {
		return false
	}
	a := m.attempt(c.queue[0])
	if a.ahead && c.open && !m.known { // its response may have arrived, but counts only after the first one
		return false
	}
	return !c.open || !a.hasHead || a.prefix > 0 || a.cursor < a.credit || a.cursor >= a.answer.End
}

// dropSilent gives up the connections of a link that have waited for longer than d.
func (m *Machine) dropSilent(now time.Time, i int8, d time.Duration) {
	for j := len(m.conns) - 1; j >= 0; j-- {
		if c := &m.conns[j]; m.overdue(now, c, i, d) {
			m.giveUp(c.id)
		}
	}
}

// overdue reports whether c is a connection of the link that is to be given up after waiting for d.
func (m *Machine) overdue(now time.Time, c *conn, link int8, d time.Duration) bool {
	if p := m.tolerated(now, c); p > health.BanAfter {
		d = p
	}
	return c.link == link && m.expects(c) && now.Sub(c.progress) >= d
}

// checkPipelining ends pipelining on a link whose connection is about to be given up between two answers: the origin
// may have swallowed the second request. A link that was away and is back is not evidence of that.
func (m *Machine) checkPipelining(now time.Time, i int8) {
	for j := range m.conns {
		c := &m.conns[j]
		if m.overdue(now, c, i, health.BanAfter) && c.open && c.answers > 0 {
			if a := m.attempt(c.queue[0]); !a.hasHead && !a.alone {
				m.links[i].disablePipelining()
			}
		}
	}
}

// tolerated returns how long a connection may be silent before it is given up. It has no end, within WaitForLink, until
// one link has delivered a head: some origins think for a long time before their first byte, and silence does not show
// that a link is at fault. Nor has it for a response that no other could replace.
func (m *Machine) tolerated(now time.Time, c *conn) time.Duration {
	switch {
	case !c.open || len(c.queue) == 0:
	case !m.known, m.irreplaceable(now, c):
		return endless
	case m.precious(now, c):
		return health.LastChance
	}
	return health.BanAfter
}

// toleratedOver returns the longest silence that is tolerated of a connection of a link.
func (m *Machine) toleratedOver(now time.Time, link int8) time.Duration {
	most := health.BanAfter
	for i := range m.conns {
		if c := &m.conns[i]; c.link == link {
			most = max(most, m.tolerated(now, c))
		}
	}
	return most
}
