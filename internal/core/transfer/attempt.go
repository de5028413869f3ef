package transfer

import (
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// drainMax is the longest rest of an unwanted answer, in bytes, that is always read to its end, rather than cut off by
// closing the connection.
const drainMax = 64 << 10

// attempt is one request.
type attempt struct {
	id       uint32
	link     int8
	conn     uint32
	hedge    bool
	hasHead  bool
	whole    bool          // the client's own GET, without a Range field
	ahead    bool          // sent before the first response showed the size and the version of the object
	alone    bool          // sent on an open connection without other requests: its head times the response
	from     uint32        // attempt whose tail it takes once it has a head; 0 = none
	stolen   bool          // another attempt is to take its tail
	reserved bool          // it is a reserve: nothing is moved away from it
	want     segment.Range // wanted part of the object
	prefix   int64         // bytes before want that are still to arrive, for a spot check
	tail     int8          // link whose tail the prefix begins with, -1 = none
	checks   int8          // link whose trust the prefix checks
	answer   segment.Range // range of the answer, up to where it was cut; before the head: the requested range
	cursor   int64
	credit   int64 // it may read up to here
	asked    time.Time
	last     time.Time
}

// conn is one connection.
type conn struct {
	id          uint32
	link        int8
	open        bool
	reused      bool
	multiplexed bool          // it speaks HTTP/2: an answer can be cut
	extra       bool          // opened in addition to others that carry requests
	holes       int64         // see PathSample
	paused, gap time.Duration // see pauses; since the last sample
	got         int64         // bytes received
	rate        estimate.Rate
	doomed      bool     // no further requests: it closes after its current answer
	answering   bool     // bytes of an answer arrived since a request was sent on the idle connection
	queue       []uint32 // attempts, in the order of their answers
	answers     int
	began       time.Time
	setup       time.Duration // for its handshakes, and for its first answer
	progress    time.Time     // time of the last byte, or since when a byte is due
}

func (m *Machine) attempt(id uint32) *attempt {
	for i := range m.attempts {
		if m.attempts[i].id == id {
			return &m.attempts[i]
		}
	}
	return nil
}

func (m *Machine) conn(id uint32) *conn {
	for i := range m.conns {
		if m.conns[i].id == id {
			return &m.conns[i]
		}
	}
	return nil
}

// openConn opens a connection over a link.
func (m *Machine) openConn(now time.Time, link int8) *conn {
	m.conns = append(m.conns, conn{id: m.id(), link: link, began: now, progress: now})
	c := &m.conns[len(m.conns)-1]
	m.act(Action{Kind: Open, Link: link, Conn: c.id})
	return c
}

func (m *Machine) opened(now time.Time, e Event) {
	c := m.conn(e.Conn)
	if c == nil {
		return
	}
	c.open, c.reused, c.multiplexed, c.progress = true, e.Reused, e.Multiplexed, now
	c.setup = now.Sub(c.began)
	l := &m.links[c.link]
	if !e.Reused {
		l.connect.Add(e.RTT)
		if !m.tryOut(now, c, e.RTT) {
			return
		}
	}
	if l.multiplexed = e.Multiplexed; e.Multiplexed {
		if !l.limited {
			l.pipelining = estimate.Works
		}
		m.multiplexed = true
		m.resize()
	}
	if len(c.queue) > 0 {
		m.attempt(c.queue[0]).alone = true
		m.attempt(c.queue[0]).asked = now
	}
}

func (m *Machine) openFailed(now time.Time, e Event) {
	c := m.conn(e.Conn)
	if c == nil {
		return
	}
	link, extra := c.link, c.extra
	l := &m.links[link]
	if extra && m.known && m.count(link) > 1 { // the link works without it
		m.dropConn(e.Conn)
		l.parallel.Refused()
		return
	}
	m.lastOutcome, m.lastLink = e.Outcome, link
	// not a failure: until a slot is free the link works with the connections that it has
	if e.Outcome == fault.NoSlot {
		l.full = true
		for _, id := range c.queue {
			if !m.known && !m.attempt(id).ahead {
				m.firstSent--
			}
		}
		m.dropConn(e.Conn)
		return
	}
	l.failures++
	l.paused = now.Add(pauseAfterFailure)
	m.dropConn(e.Conn)
	switch {
	case e.Outcome == fault.Unbound:
		m.act(Action{Kind: ReportFailed, Link: link, Cause: health.BindFailed})
		l.excluded = !m.known
	case e.Outcome == fault.Denied: // by policy: the link works, and a second try would end the same way
		l.forbidden = true
	case !m.known: // it is not known yet whether the origin is reachable at all: try the next link
		l.excluded, l.unreached = true, !e.OriginRefused
	case !e.OriginRefused:
		m.act(Action{Kind: ReportFailed, Link: link, Cause: health.DialFailed})
	}
	if l.failures >= maxFailures && e.OriginRefused {
		l.excluded = true
	}
}

// headReceived handles a valid head.
func (m *Machine) headReceived(now time.Time, e Event) {
	a := m.attempt(e.Attempt)
	if a == nil {
		return
	}
	c := m.conn(a.conn)
	l := &m.links[a.link]
	if a.alone {
		l.response.Add(now.Sub(a.asked))
	} else if c.answers > 0 && !e.Close {
		l.pipelining = estimate.Works
	}
	if m.cfg.Background && (a.alone || c.answers > 0) { // else its delay includes a handshake
		l.yielding.responded(now, now.Sub(a.asked), l.rate.Peak())
	}
	m.progress(now, c)
	m.alive(a.link)
	a.hasHead = true
	a.answer = e.Range
	m.divided = m.divided || e.Range.Len() < e.Size
	if !m.known {
		a.want.End = max(a.want.End, a.answer.End) // a 200 in place of the range: it may be all that this origin gives
		m.learnSize(now, e)
		m.dropCopies(e.Attempt)
		a = m.attempt(e.Attempt)
		c = m.conn(a.conn)
		m.keep(a)
	}
	m.makeRoom(now, a)
	proof := m.proves(a)
	if a.want.End > a.answer.End || a.whole { // less than asked for is legal (RFC 9110 section 15.3.7)
		was := a.want
		a.want.End = max(a.want.Start, min(a.answer.End, m.led.End()))
		m.led.Release(segment.Range{Start: a.want.End, End: was.End}, m.cover(0))
	}
	if c.answers == 0 {
		c.setup += now.Sub(a.asked)
	}
	if per := c.setup / time.Duration(c.answers+1); !c.reused && !a.ahead && (e.Close || per < l.setup) {
		l.setup = per
	}
	if e.Close {
		c.doomed = true
		if c.answers < fewAnswers { // further connections would end as soon
			l.parallel.Refused()
		}
		for len(c.queue) > 1 { // requests behind it stay unanswered
			m.release(m.attempt(c.queue[1]))
		}
	}
	if c.multiplexed {
		m.settle(a) // its tail may already belong to another attempt
	}
	if a.from != 0 {
		m.stolenBy(a)
	}
	if proof {
		m.kept.spare = true
	}
}

// learnSize records the size of the object, with which the work of the scheduler starts.
func (m *Machine) learnSize(now time.Time, e Event) {
	m.known = true
	m.led.Resize(min(m.cfg.Requested.End, e.Size))
	for i := range m.attempts { // attempts that were made before the size was known
		a := &m.attempts[i]
		a.want.End = max(min(a.want.End, m.led.End()), a.want.Start)
		if a.ahead {
			m.conn(a.conn).progress = now
			continue // below, when the first attempt has its bytes
		}
		m.led.Take(a.want)
		if i > 0 {
			m.led.Hedge(a.want.Clip(m.attempts[0].want))
		}
	}
	for i := range m.attempts {
		if a := &m.attempts[i]; a.ahead {
			m.takeAhead(a, e.Attempt)
		}
	}
	for i := range m.links {
		l := &m.links[i]
		l.excluded = false
		if l.unreached { // another link has reached the origin, so this link was at fault
			m.act(Action{Kind: ReportFailed, Link: int8(i), Cause: health.DialFailed})
		}
		if l.silent { // the origin answers over another link
			m.act(Action{Kind: ReportSilent, Link: int8(i)})
		}
	}
	m.spread(now)
	m.client = consumption{since: now, ranLow: true, only: none}
	m.wanted = m.led.End() - m.led.Offset()
	if m.cfg.Scarce {
		m.soleUntil = now.Add(soleFor)
	}
	m.act(Action{Kind: Want, N: m.wanted})
}

// takeAhead makes b, which was sent over another link before the size was known, part of the transfer. If first, the
// attempt that showed the size, fetches these bytes too, it is cut there as soon as b has a valid head.
func (m *Machine) takeAhead(b *attempt, first uint32) {
	a := m.attempt(first)
	switch {
	case b.want.Empty(): // the object is smaller than was guessed
	case a.want.End <= b.want.Start:
		m.led.Take(b.want)
	default:
		m.led.Hedge(b.want)
		a.stolen, b.from = true, a.id
	}
}

// dropCopies closes the connections of the other attempts at the whole object, now that one has a valid head: each
// would deliver the whole object once more.
func (m *Machine) dropCopies(but uint32) {
	for i := len(m.attempts) - 1; i >= 0; i-- {
		if a := &m.attempts[i]; m.cfg.all() && !a.ahead && a.id != but {
			c := m.conn(a.conn)
			m.closeConn(c)
		}
	}
}

// stolenBy ends the attempt whose tail b takes, at the offset where b begins, now that b has a valid head.
func (m *Machine) stolenBy(b *attempt) {
	a := m.attempt(b.from)
	b.from = 0
	if a == nil {
		return
	}
	a.stolen = false
	was := a.want.End
	a.want.End = min(was, max(b.want.Start, a.cursor)) // its answer may have turned out to be shorter
	m.led.Release(segment.Range{Start: a.want.End, End: max(was, b.want.End)}, m.cover(0))
	m.settle(a)
}

func (m *Machine) read(now time.Time, e Event) {
	a := m.attempt(e.Attempt)
	if a == nil {
		return
	}
	c, l := m.conn(a.conn), &m.links[a.link]
	// A silence that was long enough to be noticed is an outage: the next one must not be noticed later.
	if since, _, ok := m.waiting(now, a.link); ok && c.answering && !l.silent {
		gap := now.Sub(since)
		l.carried, l.rest = l.carried+gap, max(l.rest, gap)
	}
	m.pauses(now, c)
	m.progress(now, c)
	l.rate.Add(now, e.N)
	l.got += e.N
	l.lastByte = now
	c.rate.Add(now, e.N)
	c.got += e.N
	l.failures = 0
	m.alive(a.link)
	compared := min(a.prefix, e.N)
	a.prefix -= compared
	body := e.N - compared
	if a.id == m.kept.id {
		m.extend(a, a.cursor+body)
	}
	got := segment.Range{Start: a.cursor, End: min(a.cursor+body, a.want.End)}
	twice := m.led.Hedged(got)
	fresh := m.receive(a.link, got)
	m.got = Received{Keep: got, Fresh: fresh, Waste: e.N - fresh, Tail: l.spot.tail}
	m.total += e.N
	m.waste += e.N - fresh
	a.cursor += body
	a.last = now
	m.trim(a)
	if twice {
		for i := range m.attempts {
			m.trim(&m.attempts[i])
		}
	}
	link := a.link
	m.settle(a)
	if fresh > 0 {
		m.refer(link, got)
	}
}

// trim shortens the wanted part of an attempt when others have delivered the rest. Restart continuation still wants it.
func (m *Machine) trim(a *attempt) {
	rest := segment.Range{Start: a.cursor, End: a.want.End}
	if !m.cfg.Restart && !rest.Empty() && m.led.Missing(rest).Empty() {
		a.want.End = a.cursor
		if m.conn(a.conn).multiplexed {
			m.settle(a)
		}
	}
}

// alive ends the suspicion of a link that delivers again. The board will report the same; until then, no more bytes
// that the link owes are requested elsewhere.
func (m *Machine) alive(link int8) {
	if l := &m.links[link]; l.silent || l.state == health.Suspect {
		l.silent = false
		if l.state == health.Suspect { // a byte does not end a ban for another reason
			l.state = health.Up
		}
		m.act(Action{Kind: ReportAlive, Link: link})
	}
}

func (m *Machine) progress(now time.Time, c *conn) {
	c.progress, c.answering = now, true
}

// settle ends an attempt whose answer goes beyond its wanted bytes. Over HTTP/2 the answer is cut there. Otherwise,
// once all wanted bytes have arrived, a short rest is read and discarded; for a longer one the connection is closed.
func (m *Machine) settle(a *attempt) {
	rest := a.answer.End - max(a.cursor, a.want.End)
	if rest <= 0 || a.id == m.kept.id {
		return
	}
	c := m.conn(a.conn)
	if c.multiplexed {
		a.answer.End -= rest
		m.act(Action{Kind: Cut, Link: c.link, Attempt: a.id, UpTo: a.answer.End})
		return
	}
	if a.cursor < a.want.End || a.prefix > 0 || !a.hasHead || rest <= m.drains(c) {
		return
	}
	m.closeConn(c)
}

// endedAttempt handles the end of an attempt.
func (m *Machine) endedAttempt(now time.Time, e Event) {
	a := m.attempt(e.Attempt)
	if a == nil {
		return
	}
	c, l := m.conn(a.conn), &m.links[a.link]
	link := a.link
	if e.Outcome == fault.Complete {
		c.answers++
		if len(c.queue) == 1 {
			c.rate.Idle()
		}
		m.progress(now, c)
		m.alive(link)
		c.answering = len(c.queue) > 1
		m.release(a)
		if c.doomed { // else its reader would wait for an answer that never arrives
			m.closeConn(c)
		}
		return
	}
	if a.ahead && !a.hasHead { // it was a guess: not the link's fault
		m.closeConn(c)
		return
	}
	m.lastOutcome, m.lastLink = e.Outcome, link
	start, served := a.cursor, !l.excluded
	pipelined := c.answers > 0 && !a.alone && !c.doomed
	if a.alone && !a.hasHead {
		m.lasted(c)
	}
	switch e.Outcome {
	case fault.Unwanted, fault.NoRange, fault.Changed, fault.BadRange:
		if pipelined { // even if the link was found Broken since, over another of its connections
			l.disablePipelining() // out of step? ask again, one at a time
		} else {
			l.excluded, l.refused = true, m.known && refusing(e.Outcome)
		}
	case fault.Busy:
		l.maxConns, l.limited = 1, true
		l.parallel.Refused()
		if pipelined || c.multiplexed {
			l.disablePipelining()
		}
		// others were under way over the link: that much at a time is allowed
		if c.multiplexed && !a.alone || m.delivers(link, e.Attempt) {
			break
		}
		if m.insured(link) {
			l.crowded = now
		}
		l.resting = now.Add(max(e.RetryAfter, pauseAfterFailure))
		l.failures++
	case fault.Stale:
	default:
		// Closed early: a pipelined request did not reach the server, or made it break off the answer.
		followed := a.hasHead && len(c.queue) > 1 && !c.doomed
		if pipelined && !a.hasHead || followed {
			l.swallowed++
			twice := l.swallowed >= maxSwallowed && (followed || e.Outcome == fault.Unanswered)
			if twice || !a.hasHead && l.pipelining == estimate.Untried {
				l.disablePipelining()
				break
			}
		}
		l.failures++
		l.parallel.Refused()
		if l.failures > 1 {
			l.paused = now.Add(time.Duration(l.failures) * 100 * time.Millisecond)
		}
	}
	if l.failures >= maxFailures {
		l.excluded, l.refused = true, m.known && refusing(e.Outcome)
	}
	if !m.known {
		l.excluded = l.excluded || e.Outcome != fault.Stale
	}
	if served && l.excluded {
		m.excludedBy, m.excludedLink = e.Outcome, link
	}
	if e.Outcome == fault.Busy && e.Stays && c.answers > 0 {
		m.release(a)
	} else {
		m.closeConn(c)
	}
	if e.Outcome == fault.Busy {
		m.giveWay(link, start)
	}
}

// makeRoom closes the reserve over a link whose request was refused since, now that the origin answers a later request
// over another link: it does not refuse all requests, but counts those of an address at the same time.
func (m *Machine) makeRoom(now time.Time, answered *attempt) {
	for i := range m.links {
		l := &m.links[i]
		if l.crowded.IsZero() || int8(i) == answered.link || !answered.asked.After(l.crowded) {
			continue
		}
		m.endReserves(int8(i))
		m.renewAt, l.resting, l.crowded = now.Add(renewAfter), now, time.Time{}
	}
}

// insured reports whether a reserve is over a link.
func (m *Machine) insured(link int8) bool {
	return m.reserve != nil && m.reserve.conn.link == link || m.coming != nil && m.coming.conn.link == link
}

// delivers reports whether another attempt over a link than the given one delivers.
func (m *Machine) delivers(link int8, but uint32) bool {
	return slices.ContainsFunc(m.attempts, func(a attempt) bool {
		return a.link == link && a.id != but && a.hasHead && m.expects(m.conn(a.conn))
	})
}

// lasted records how many answers an origin gives over a connection that it has closed.
func (m *Machine) lasted(c *conn) {
	if c.answers > 0 && !c.reused {
		m.links[c.link].setup = c.setup / time.Duration(c.answers)
	}
}

// giveUp closes a connection that does not deliver.
func (m *Machine) giveUp(id uint32) {
	c := m.conn(id)
	m.lastOutcome, m.lastLink = fault.Silence, c.link
	m.closeConn(c)
}

// closeConn closes a connection and forgets it.
func (m *Machine) closeConn(c *conn) {
	m.act(Action{Kind: CloseConn, Conn: c.id, Link: c.link})
	m.dropConn(c.id)
}

// dropConn forgets a connection and re-queues the bytes that its attempts still owe.
func (m *Machine) dropConn(id uint32) {
	c := m.conn(id)
	if c == nil {
		return
	}
	for len(c.queue) > 0 {
		m.release(m.attempt(c.queue[0]))
	}
	i := slices.IndexFunc(m.conns, func(c conn) bool { return c.id == id })
	m.conns = slices.Delete(m.conns, i, i+1)
}

// release forgets an attempt and frees the bytes that it still owes.
func (m *Machine) release(a *attempt) {
	id, owed := a.id, segment.Range{Start: a.cursor, End: a.want.End}
	again := segment.Range{Start: a.want.Start, End: a.cursor}
	if from := m.attempt(a.from); from != nil {
		from.stolen = false
	}
	if c := m.conn(a.conn); c != nil {
		c.queue = slices.DeleteFunc(c.queue, func(q uint32) bool { return q == id })
	}
	if a.prefix > 0 {
		m.cutShort(a)
	}
	i := slices.IndexFunc(m.attempts, func(a attempt) bool { return a.id == id })
	m.attempts = slices.Delete(m.attempts, i, i+1)
	m.led.Release(owed, m.cover(0))
	if m.cfg.Restart && !owed.Empty() {
		m.led.Restart(again, m.cover(0))
	}
}
