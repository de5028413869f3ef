package transfer

import (
	"math"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// Unknown is the end of a requested range whose object has no known size yet.
const Unknown = math.MaxInt64

// unbounded is a window that no object fills, small enough to be multiplied.
const unbounded = 1 << 50

// Config describes a transfer.
type Config struct {
	Requested segment.Range // range that the client wants; End = Unknown until the size is known
	// bytes requested first; 0 = the client's own GET, without a Range field (R77); Unknown = all
	Initial    int64
	Scheduler  schedule.Scheduler
	Goal       schedule.Goal // which links to do without; nil = none
	Background bool          // give way to other traffic; see yielding
	// the reorder window does not shrink to the need of a slow client: the goal is to stay ahead of it
	KeepWindow bool
	Links      []LinkConfig
	Order      []int8        // all links that the policy allows or spares, in order of preference for the first request
	Warm       bool          // connect over the unmetered links at once
	Ahead      segment.Range // requested over other unmetered links before the first response; empty = nothing
	AheadEach  int64         // bytes of Ahead for each of them
	Hint       int64         // probable size of the object, 0 = unknown
	Reserve    bool          // keep a response for the rest of the object in reserve
	// restart continuation: the bytes of a lost attempt are fetched again (Skjolden 2019, 8.2.4); for lab/sim only
	Restart     bool
	WaitForLink time.Duration
	Reorder     int64 // reorder window before the first Granted
	Scarce      bool  // memory is scarce: one link serves at first, see LinkConfig.Sole
	MostConns   int   // maximum connections over one link; 0 = 1. The machine decides whether to use more than one
}

// all reports whether the first request is for everything that the client wants.
func (c *Config) all() bool { return c.Initial == 0 || c.Initial == Unknown }

// LinkConfig holds known facts about a link.
type LinkConfig struct {
	State   health.State // at the start, so that the first request uses the preferred link of those that are up
	Metered bool
	Learned estimate.Entry

	Proven   bool          // its bytes are known to be right: no spot checks
	Resort   bool          // it serves only when no other link can
	Spare    bool          // the policy allows it once another link leaves: see Result.Ask
	Sole     bool          // it serves alone while memory is scarce
	Optional bool          // the goal may do without it: it is not connected before it is needed
	Radio    *energy.Radio // energy cost of its bytes; nil = unknown
	LastByte time.Time     // when its last byte arrived, for any transfer; zero = none
}

// Machine is one transfer. Make it with New.
type Machine struct {
	cfg      Config
	led      *segment.Ledger
	links    []link
	conns    []conn
	attempts []attempt
	view     schedule.View
	covered  []segment.Range
	do       []Action
	got      Received
	info     []LinkInfo

	lastID      uint32 // of connections and attempts
	known       bool   // size known: the scheduler decides
	divided     bool   // some response carried a part of the object
	started     bool
	received    bool // every byte arrived
	ended       bool // Done or Fail was emitted
	until       time.Time
	front       int64         // offset of the first missing byte
	stalled     time.Time     // since when front has stalled
	unusable    time.Time     // since when no link is usable; zero = one is
	lastOutcome fault.Outcome // of the last failure, for Fail
	lastLink    int8
	firstSent   int // requests sent before the size was known
	serving     int // links that may serve, as the policy last knew

	// The last failure by which a link left the transfer: if no link is left, it is the reason, not that an earlier
	// response over one of them ended later.
	excludedBy   fault.Outcome
	excludedLink int8

	wanted      int64     // memory that was asked for, for bytes beyond the next offset
	granted     int64     // of that
	scarce      bool      // the grant is not worth two links, see narrow
	soleUntil   time.Time // until then one link serves, too
	scattered   bool      // bytes do not wait for their turn: granted is unbounded
	multiplexed bool      // a link speaks HTTP/2
	client      consumption
	still       standstill
	stood       time.Duration // see State

	kept     kept
	reserve  *reserve  // its head is valid; nil = none
	coming   *reserve  // requested, to replace it
	lost     int       // reserves that ended early, in a row
	renewAt  time.Time // no request for a reserve before
	insureAt time.Time // when there is something to do for the reserve; zero = never

	begun     bool  // the first byte arrived: its link is the reference for spot checks
	checks    int   // spot checks under way
	spent     int64 // bytes requested in spot checks
	fruitless int64 // bytes of spot checks that were given up
	verified  int   // requests that verified links

	furthest     int64 // highest limit of the window so far: no credit lies beyond it
	total, waste int64
}

// New returns a machine for one transfer.
func New(cfg Config) *Machine {
	w := cfg.Requested
	if cfg.Initial > 0 && cfg.Initial < w.Len() {
		w.End = w.Start + cfg.Initial
	}
	m := &Machine{
		cfg: cfg, granted: max(cfg.Reorder, 1), links: make([]link, len(cfg.Links)), client: consumption{only: none},
	}
	m.led = segment.NewLedger(w, m.granted)
	for i := range m.links {
		m.links[i].init(i, cfg.Links[i])
	}
	for _, i := range cfg.Order {
		m.links[i].allowed = true
	}
	m.serving = m.available()
	return m
}

// Handle takes one event and returns its result. The first event, for example a Tick, starts the transfer.
func (m *Machine) Handle(now time.Time, e Event) Result {
	m.do, m.got = m.do[:0], Received{}
	if m.ended {
		return Result{}
	}
	if m.ofReserve(now, e) {
		e = Event{Kind: Tick}
	}
	switch e.Kind {
	case LinkState:
		m.linkState(now, e)
	case Permitted:
		m.permitted(e.Link, e.Allowed, e.Spare)
	case Opened:
		m.opened(now, e)
	case OpenFailed:
		m.openFailed(now, e)
	case HeadReceived:
		m.headReceived(now, e)
	case Read:
		m.read(now, e)
	case Ended:
		m.endedAttempt(now, e)
	case ConnClosed:
		if c := m.conn(e.Conn); c != nil {
			m.lasted(c)
		}
		m.dropConn(e.Conn)
	case Delivered:
		m.led.Deliver(e.N)
		m.client.delivered += e.N
		m.client.taken += e.N
	case Granted:
		if !m.scattered {
			m.granted = max(e.N, 1) // the next offset can always be read
			m.scarce = e.N < min(leastNeed, m.wanted)
			m.resize()
		}
	case Scatter:
		m.scattered, m.granted, m.scarce, m.client.need = true, unbounded, false, 0
		m.resize()
	case Sampled:
		m.sampled(now, e)
	case CrossTraffic:
		l := &m.links[e.Link]
		l.yielding.crossTraffic(now, e.N, l.rate.Peak())
	case SlotFreed:
		m.links[e.Link].full = false
	case Compared:
		m.compared(e)
	case Paused:
		for i := range m.conns {
			m.conns[i].progress = m.conns[i].progress.Add(e.For)
		}
	case Tick:
	}
	m.finish()
	ask := false
	if !m.ended {
		m.measureClient(now)
		m.silence(now)
		if e.Kind != Read { // else the result may follow
			m.dropTwice()
		}
		m.decide(now, e.Kind == Read)
		m.compareTwice()
		if ask = m.asks(); !ask && e.Kind != Permitted { // the answers of the policy are taken together
			m.endUnlessUsable(now)
		}
	}
	var next time.Time
	if !m.ended {
		m.credits(now)
		next = m.deadline(now)
	}
	m.accountStandstill(now)
	return Result{
		Do:       m.do,
		Next:     next,
		Ask:      ask,
		Received: m.got,
		Ready:    m.deliverable(),
		Holds:    max(m.committed(), m.led.Window()),
	}
}

// deliverable returns the offset up to which bytes can be delivered: the last byte is held back while a link is
// doubtful.
func (m *Machine) deliverable() int64 {
	ready := m.led.Offset() + m.led.Ready()
	if m.received && !m.ended && m.doubtful() >= 0 {
		ready = min(ready, max(m.led.Offset(), m.led.End()-1))
	}
	return ready
}

// Progress describes the transfer without its links.
func (m *Machine) Progress() State {
	s := State{
		Size:     Unknown,
		Offset:   m.led.Offset(),
		Ready:    m.deliverable() - m.led.Offset(),
		Held:     m.led.Held(),
		Window:   m.led.Window(),
		Received: m.total,
		Waste:    m.waste,
		Stood:    m.stood,
	}
	if m.known {
		s.Size = m.led.End()
	}
	return s
}

// State describes the transfer.
func (m *Machine) State(now time.Time) State {
	s := m.Progress()
	m.info = m.info[:0]
	for i := range m.links {
		l := &m.links[i]
		rate, usable := l.rate.PerSecond(now), l.usable(now) && l.spared == schedule.NotSpared
		m.info = append(m.info, LinkInfo{
			Rate:      rate,
			RTT:       l.rtt(),
			Usable:    usable,
			Busy:      l.busy || usable && now.Sub(l.heldUp) < heldUpLately,
			Metered:   l.metered,
			Spared:    l.spared,
			Got:       l.got,
			Gain:      float64(l.got) - l.cost,
			Sustained: l.rate.Sustained(),
			Conns:     m.count(int8(i)),
			Learned: estimate.Entry{
				Rate:       rate,
				Peak:       l.rate.Peak(),
				RTT:        l.connect.Least(),
				Pipelining: l.remembered(),
				MaxConns:   l.limit(),
				Conns:      l.parallel.Paid,
				Each:       l.parallel.Limit(),
			},
		})
	}
	s.Links = m.info
	return s
}

// committed returns how many bytes beyond the next offset are held or may still arrive: the transfer cannot give them
// back now.
func (m *Machine) committed() int64 {
	last := m.led.Last()
	for i := range m.attempts {
		a := &m.attempts[i]
		c := m.conn(a.conn)
		switch {
		case a.cursor >= a.want.End:
		case c.multiplexed, !c.open && m.links[a.link].multiplexed:
			last = max(last, a.want.End)
		default:
			last = max(last, min(a.credit, a.want.End))
		}
	}
	return max(0, last-m.led.Offset())
}

// Wanted returns the offset up to which an attempt's bytes are wanted, 0 if the attempt is forgotten. It is for tests
// and for the simulator, which audits the machine.
func (m *Machine) Wanted(attempt uint32) int64 {
	if a := m.attempt(attempt); a != nil {
		return a.want.End
	}
	return 0
}

// Usable reports whether new ranges may be requested over a link now. It is for tests and the simulator.
func (m *Machine) Usable(now time.Time, link int8) bool {
	l := &m.links[link]
	return l.usable(now) && l.spared == schedule.NotSpared
}

// Check returns false if an invariant is broken. It is for tests and the simulator.
func (m *Machine) Check() bool {
	_, ok := m.led.Check(m.cover(0))
	for i := range m.attempts {
		if a := &m.attempts[i]; a.credit > max(m.furthest, a.want.Start) && a.cursor < a.want.End {
			return false
		}
	}
	return ok || m.cfg.Restart
}

func (m *Machine) id() uint32 { m.lastID++; return m.lastID }

func (m *Machine) act(a Action) { m.do = append(m.do, a) }

// finish emits Done once the last byte is delivered, and gives connections back as soon as the last byte is received.
// Both wait until no link is doubtful.
func (m *Machine) finish() {
	if !m.known || m.ended {
		return
	}
	if m.received = m.received || m.led.Complete(); !m.received || m.doubtful() >= 0 {
		return
	}
	m.closeAll()
	if m.led.Offset() == m.led.End() {
		m.ended = true
		m.act(Action{Kind: Done})
	}
}

// closeAll ends every connection; one that has been read to the end is kept for later transfers.
func (m *Machine) closeAll() {
	m.endReserves(-1)
	for i := range m.conns {
		c := &m.conns[i]
		kind := CloseConn
		if c.open && !c.doomed && m.drained(c) {
			kind = Keep
		}
		m.act(Action{Kind: kind, Conn: c.id, Link: c.link})
	}
	for i := range m.attempts {
		m.cutShort(&m.attempts[i])
	}
	m.conns, m.attempts = m.conns[:0], m.attempts[:0]
}

// drained reports whether every answer on a connection was read to its end.
func (m *Machine) drained(c *conn) bool {
	for _, id := range c.queue {
		if a := m.attempt(id); !a.hasHead || a.cursor < a.answer.End {
			return false
		}
	}
	return true
}

// fail ends the transfer. The client's bytes from offset sound on are unreliable.
func (m *Machine) fail(outcome fault.Outcome, link int8, sound int64) {
	m.closeAll()
	m.ended = true
	m.act(Action{Kind: Fail, Outcome: outcome, Link: link, UpTo: sound})
}

// ready reports whether new ranges may be requested over a link, on a connection that it has or may open.
func (m *Machine) ready(now time.Time, link int8) bool {
	l := &m.links[link]
	return l.usable(now) && (!l.full || m.count(link) > 0)
}

// endUnlessUsable ends the transfer when no link can serve it anymore, and bounds the wait for one that may come back.
func (m *Machine) endUnlessUsable(now time.Time) {
	if m.received && m.doubtful() < 0 || m.ended {
		return
	}
	hope, usable, ready := false, false, false
	for i := range m.links {
		l := &m.links[i]
		hope = hope || l.allowed && !l.out()
		usable = usable || l.usable(now)
		ready = ready || m.ready(now, int8(i))
	}
	waits := usable && !ready // for other connections to close
	running := false
	for i := range m.attempts {
		l := &m.links[m.attempts[i].link]
		running = running || !l.silent && l.state != health.Suspect
	}
	switch {
	case !hope && len(m.attempts) == 0 && m.coming == nil, !m.known && m.refused() && !usable && len(m.attempts) == 0:
		if !hope && m.known && m.excludedBy != fault.Complete {
			m.lastOutcome, m.lastLink = m.excludedBy, m.excludedLink
		}
		m.giveUpUnless(now, m.lastOutcome)
	case ready || running, waits && m.known: // a started transfer waits for its turn as long as the client does
		m.unusable = time.Time{}
	case m.unusable.IsZero():
		m.unusable = now
	case now.Sub(m.unusable) < m.cfg.WaitForLink:
	case waits:
		m.giveUpUnless(now, fault.NoSlot)
	default:
		m.giveUpUnless(now, fault.Silence)
	}
}

// giveUpUnless ends the transfer unless there are links that were left for this moment.
func (m *Machine) giveUpUnless(now time.Time, outcome fault.Outcome) {
	left := false
	for i := range m.links {
		l := &m.links[i]
		left = left || l.resort && l.allowed
		l.resort = false
	}
	if !left {
		m.fail(outcome, m.lastLink, Unknown)
		return
	}
	m.unusable = time.Time{}
	m.decide(now, false)
	m.endUnlessUsable(now)
}

// refused reports whether the last attempt ended with an answer or an error, which the client gets. Silence does not
// count: another handshake may succeed.
func (m *Machine) refused() bool {
	return m.lastOutcome != fault.Complete && m.lastOutcome != fault.Silence
}

// deadline returns the earliest time at which something may have to be done without an event.
func (m *Machine) deadline(now time.Time) time.Time {
	next := schedule.Earlier(schedule.Earlier(m.until, m.insureAt), m.nextLook())
	for i := range m.links {
		l := &m.links[i]
		next = schedule.Earlier(next, m.alarm(now, int8(i)))
		for _, t := range [...]time.Time{l.paused, l.resting} {
			if t.After(now) {
				next = schedule.Earlier(next, t)
			}
		}
	}
	if !m.unusable.IsZero() {
		next = schedule.Earlier(next, m.unusable.Add(m.cfg.WaitForLink))
	}
	return next
}

// cover returns the ranges that running attempts still fetch, except for one attempt.
func (m *Machine) cover(except uint32) []segment.Range {
	m.covered = m.covered[:0]
	for i := range m.attempts {
		if a := &m.attempts[i]; a.id != except && a.cursor < a.want.End {
			m.covered = append(m.covered, segment.Range{Start: a.cursor, End: a.want.End})
		}
	}
	return m.covered
}
