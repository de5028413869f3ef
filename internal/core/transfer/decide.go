package transfer

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// hedgeAfter is how long the next offset must stall before the bytes that a silent link owes there are requested
// elsewhere. Recorded LTE links fall silent for 0.2 to 1 s and then deliver everything that was requested: so a second
// copy is requested only when the client would otherwise wait, and the next one only after the next offset has stalled
// again. Once nothing else is left to request, the bytes that a silent link owes are hedged at once: see
// health.SuspectAfter.
const hedgeAfter = 200 * time.Millisecond

// decide asks the scheduler until it decides to wait; read reports whether the event was a Read.
func (m *Machine) decide(now time.Time, read bool) {
	m.until = time.Time{}
	if front := m.led.Offset() + m.led.Ready(); front != m.front || m.stalled.IsZero() {
		m.front, m.stalled = front, now
	}
	if m.received {
		m.insureAt = time.Time{}
		m.verify(now, read)
		return
	}
	if !m.known {
		m.askFirst(now)
		return
	}
	m.narrow(now)
	m.insure(now)
	m.guard(now)
	m.widen(now)
	var barred []int8 // links without a connection that can take a request now
	kept := m.attempt(m.kept.id)
	compares := read && kept != nil && m.kept.spare
	if compares { // the result of a check may let it end
		barred = append(barred, kept.link)
	}
	for range 4 * (len(m.links) + 1) {
		v := m.look(now)
		again := m.restrict(now, v)
		again = schedule.Earlier(again, m.yield(now, v))
		for _, i := range barred {
			v.Links[i].CanAsk = false
		}
		d, ok, later := m.hedge(now, v)
		if !ok {
			d = m.cfg.Scheduler.Next(now, v)
		}
		switch d.Do {
		case schedule.Wait:
			m.until = schedule.Earlier(again, schedule.Earlier(d.Until, later))
			if now.Before(m.soleUntil) {
				m.until = schedule.Earlier(m.until, m.soleUntil)
			}
			if compares {
				m.until = now
			}
			m.verify(now, read)
			return
		case schedule.Open:
			m.openConn(now, d.Link)
		case schedule.Fetch:
			if !m.fetch(now, d) {
				barred = append(barred, d.Link)
			} else if d.Hedge {
				m.stalled = now
			}
		}
	}
}

// askFirst sends the first request over the first link that can carry it, and a second copy over the next one while the
// first is overdue: nothing is known yet, not even whether the link leads anywhere.
func (m *Machine) askFirst(now time.Time) {
	overdue := true
	for i := range m.attempts {
		overdue = overdue && (m.attempts[i].ahead || m.links[m.attempts[i].link].silent)
	}
	if !overdue {
		return
	}
	for i := len(m.attempts) - 1; i >= 0; i-- { // its link may be the one that serves the object
		if a := m.attempts[i]; a.ahead {
			m.closeConn(m.conn(a.conn))
			m.expectNothing(a.link)
		}
	}
	if m.firstSent > 2*len(m.links)+2 {
		if len(m.attempts) == 0 {
			m.fail(m.lastOutcome, m.lastLink, Unknown)
		}
		return
	}
	for _, i := range m.cfg.Order {
		if !m.links[i].usable(now) || m.running(i) > 0 {
			continue
		}
		c := m.pick(now, i, m.led.Offset())
		if c == nil {
			if !m.links[i].mayOpen(m.count(i)) {
				continue
			}
			c = m.openConn(now, i)
		}
		r := segment.Range{Start: m.led.Offset(), End: m.led.End()}
		m.firstSent++
		m.send(now, c, attempt{want: r, whole: m.cfg.Initial == 0, hedge: len(m.attempts) > 0})
		break
	}
	if !m.started && len(m.attempts) > 0 && m.cfg.Warm {
		for _, i := range m.cfg.Order {
			if l := &m.links[i]; l.usable(now) && !l.metered && !l.optional && !l.full && m.count(i) == 0 {
				c := m.openConn(now, i)
				if r := m.ahead(); !r.Empty() {
					a := attempt{want: r, ahead: true}
					m.prefix(&a, i)
					m.send(now, c, a)
					m.do[len(m.do)-1].Rule = schedule.Ahead
				}
			}
		}
	}
	m.started = m.started || len(m.attempts) > 0
}

// ahead returns the range that the next link is asked for before the first response. In addition to the client's own
// GET, only one link is asked: that GET is cut once, where the range of the other link begins.
func (m *Machine) ahead() segment.Range {
	r := m.cfg.Ahead
	for i := range m.attempts {
		if a := &m.attempts[i]; a.ahead && m.cfg.all() {
			return segment.Range{}
		} else if a.ahead {
			r.Start = max(r.Start, a.want.End)
		}
	}
	r.End = min(r.End, r.Start+m.cfg.AheadEach)
	return r
}

// fetch carries out a scheduler's decision. It returns false if no connection of the link can take the request now.
func (m *Machine) fetch(now time.Time, d schedule.Decision) bool {
	if m.readOn(d) {
		return true
	}
	c := m.reuse(now, d.Link, d.Range.Start)
	if c == nil {
		if m.links[d.Link].full {
			if m.giveWay(d.Link, d.Range.Start); m.count(d.Link) > 0 {
				return false
			}
		}
		c = m.openConn(now, d.Link)
	}
	if m.cfg.Background { // two requests, so that one is on its way while the other is answered
		d.Range.End = min(d.Range.End, d.Range.Start+max(m.links[d.Link].yielding.outstanding()/2, leastRange))
	}
	switch p := &m.links[d.Link].parallel; {
	case p.Doubling():
		d.Range.End = min(d.Range.End, d.Range.Start+max(int64(p.Each()*trialRange.Seconds()), leastPart))
	case p.Each() > 0:
	case p.N > 1:
		d.Range.End = min(d.Range.End, d.Range.Start+max(c.allowance()-m.owes(c), leastPart))
	}
	// The protocol of a new connection is not known yet.
	if d.From == 0 && (m.links[d.Link].multiplexed || m.multiplexed && !c.open) {
		d.Range.End = min(d.Range.End, max(m.led.Limit(), d.Range.Start+m.led.Window()/overhang))
	}
	a := attempt{want: d.Range, hedge: d.Hedge}
	if from := m.attempt(d.From); from != nil {
		m.led.Hedge(d.Range) // two attempts fetch it now; a cut ends that with the head of the second one
		if d.Hedge {
			m.act(Action{Kind: ReportHedged, Link: from.link})
		} else {
			from.stolen, a.from = true, from.id
		}
	}
	m.led.Take(d.Range)
	m.prefix(&a, d.Link)
	m.send(now, c, a)
	m.do[len(m.do)-1].Rule = d.Rule
	return true
}

// reuse returns the connection of a link that takes a request for bytes from start on, or else a spare one; nil if a
// new one is needed.
func (m *Machine) reuse(now time.Time, link int8, start int64) *conn {
	if c := m.pick(now, link, start); c != nil {
		return c
	}
	return m.spare(link)
}

// spare returns an open connection without requests that pick passes over because the link should have fewer.
func (m *Machine) spare(link int8) *conn {
	for i := range m.conns {
		if c := &m.conns[i]; c.link == link && c.open && !c.doomed && len(c.queue) == 0 {
			return c
		}
	}
	return nil
}

// overhang bounds a range requested over HTTP/2: it may exceed the window by 1/overhang of the window.
const overhang = 8

// resize sets the reorder window. Over HTTP/1.1 bytes beyond the window wait in the kernel; over HTTP/2 they wait in
// the receive windows of the process (R123), so the grant must hold all requested bytes. A range must begin in the
// window, so at most one reaches beyond it.
func (m *Machine) resize() {
	w := m.granted
	if m.multiplexed {
		w = w * overhang / (overhang + 1)
	}
	m.led.SetWindow(max(w, 1))
}

// send sends the request of an attempt on a connection.
func (m *Machine) send(now time.Time, c *conn, a attempt) {
	a.id, a.link, a.conn = m.id(), c.link, c.id
	a.answer, a.cursor, a.asked = a.want, a.want.Start, now
	a.alone = c.open && len(c.queue) == 0
	a.credit = min(a.want.End, max(m.led.Limit(), a.cursor))
	m.furthest = max(m.furthest, m.led.Limit())
	if len(c.queue) == 0 {
		c.progress, c.answering = now, false
	}
	c.queue = append(c.queue, a.id)
	m.attempts = append(m.attempts, a)
	kind := Fetch
	switch {
	case a.whole:
		kind = FetchAll
	case a.ahead:
		kind = FetchAhead
	}
	r := segment.Range{Start: a.want.Start - a.prefix, End: a.want.End}
	if a.prefix > 0 {
		m.check(&a)
	}
	m.act(Action{
		Kind:    kind,
		Link:    a.link,
		Conn:    a.conn,
		Attempt: a.id,
		Range:   r,
		Prefix:  a.prefix,
		Tail:    a.tail,
		UpTo:    a.credit,
	})
}

// pick returns the connection of a link that takes a request for bytes from start on, nil if a new one is needed. It is
// the one that falls idle first among the oldest, as many as the link should have. A request is pipelined only once an
// answer has begun to arrive, and never behind one that may have to wait for the bytes that it asks for. An extra
// connection that is still opening is used only if there is no other.
func (m *Machine) pick(now time.Time, link int8, start int64) *conn {
	var best *conn
	var soonest float64
	l := &m.links[link]
	room := l.conns()
	several, each := l.parallel.N > 1, l.parallel.Each()
	for i := range m.conns {
		c := &m.conns[i]
		if c.link != link || c.doomed || m.surplus(c) {
			continue
		}
		if room--; room < 0 && len(c.queue) == 0 {
			break
		}
		if m.waitsFor(c, start) || c.extra && !c.open && best != nil {
			continue
		}
		if n := len(c.queue); n > 0 && (n >= l.depth() || !c.open || c.answers == 0 && !m.attempt(c.queue[0]).hasHead) {
			continue
		}
		owes := m.owes(c)
		if each > 0 {
			if c.extra && !c.open || float64(owes) > each*(l.rtt()+beforehand).Seconds() {
				continue
			}
		} else if several && owes > 0 && owes >= c.allowance() {
			continue
		}
		if idle := float64(owes) / max(c.rate.PerSecond(now), LeastRate); best == nil || idle < soonest {
			best, soonest = c, idle
		}
	}
	return best
}

// beforehand is when a connection that the origin limits gets its next request, in addition to a round trip before it
// falls idle.
const beforehand = 60 * time.Millisecond

// leastPart is the shortest range for a connection in slow start, in bytes; LeastRate is the lowest rate that is
// assumed for a connection, in bytes per second.
const (
	leastPart = 16 << 10
	LeastRate = 64 << 10
)

// allowance returns how many bytes a connection may owe if the link has several: in slow start twice what it has
// delivered, since the client waits for the slowest one.
func (c *conn) allowance() int64 { return 4*leastPart + 2*c.got }

// owes returns how many bytes are still to arrive on a connection.
func (m *Machine) owes(c *conn) (n int64) {
	for _, id := range c.queue {
		a := m.attempt(id)
		n += a.answer.End - a.cursor
	}
	return n
}

// widen opens the connections that links should have in addition to those that carry requests.
func (m *Machine) widen(now time.Time) {
	for i := range m.links {
		link, l := int8(i), &m.links[i]
		if l.parallel.N > 1 && m.ready(now, link) && m.running(link) > 0 && m.count(link) < l.parallel.N &&
			l.mayOpen(m.count(link)) {
			m.openConn(now, link).extra = true
		}
	}
}

// waitsFor reports whether an attempt on c may be held up by the window until the bytes from start on are delivered.
func (m *Machine) waitsFor(c *conn, start int64) bool {
	for _, id := range c.queue {
		if a := m.attempt(id); a.want.Start > start && a.want.End > m.led.Limit() {
			return true
		}
	}
	return false
}

// giveWay closes the connections of a link that wait for the bytes from start on, if all of its connections wait and it
// gets no further one to fetch these bytes: they would wait forever.
func (m *Machine) giveWay(link int8, start int64) {
	if !m.blocked(link) {
		return
	}
	for i := len(m.conns) - 1; i >= 0; i-- {
		if c := &m.conns[i]; c.link == link && m.waitsFor(c, start) {
			m.closeConn(c)
		}
	}
}

// blocked reports whether attempts run on a link, and all of them wait for the next offset to advance.
func (m *Machine) blocked(link int8) bool {
	some := false
	for i := range m.conns {
		if c := &m.conns[i]; c.link == link && len(c.queue) > 0 {
			if some = true; m.expects(c) {
				return false
			}
		}
	}
	return some
}

// drains returns the longest rest of an unwanted answer, in bytes, that is read to its end: as much as the link moves
// in a round trip, or, with requests behind it, as much as a new connection would lose to its handshake, those requests
// and slow start.
func (m *Machine) drains(c *conn) int64 {
	l := &m.links[c.link]
	trips := 1.0
	if len(c.queue) > 1 {
		trips = 4
	}
	return max(drainMax, int64(trips*l.rate.Peak()*l.rtt().Seconds()))
}

// surplus reports whether a connection will be closed because its answer is longer than the wanted part.
func (m *Machine) surplus(c *conn) bool {
	for _, id := range c.queue {
		if a := m.attempt(id); a.hasHead && a.answer.End-a.want.End > m.drains(c) {
			return true
		}
	}
	return false
}

// count returns how many connections a link has. Those that are about to be closed count only if there is also one that
// takes requests.
func (m *Machine) count(link int8) (n int) {
	ending := 0
	for i := range m.conns {
		switch c := &m.conns[i]; {
		case c.link != link:
		case c.doomed || m.surplus(c):
			ending++
		default:
			n++
		}
	}
	if n > 0 {
		n += ending
	}
	return n
}

func (m *Machine) running(link int8) (n int) {
	for i := range m.attempts {
		if m.attempts[i].link == link {
			n++
		}
	}
	return n
}

// hedge decides to request elsewhere the bytes that silent links owe, nearest to the offset first. If ok is false, the
// scheduler may continue, until later unless that is zero.
func (m *Machine) hedge(now time.Time, v *schedule.View) (d schedule.Decision, ok bool, later time.Time) {
	var owed segment.Range
	var from *schedule.Attempt
	for i := range v.Attempts {
		a := &v.Attempts[i]
		if !a.Silent {
			continue
		}
		r := m.led.Hedgeable(segment.Range{Start: a.Cursor, End: a.Range.End})
		if !r.Empty() && (from == nil || r.Start < owed.Start) {
			owed, from = r, a
		}
	}
	if from == nil {
		return schedule.Decision{}, false, time.Time{}
	}
	if _, more := v.FirstFree(); more { // the other links have something else to do
		if owed.Start > m.front {
			return schedule.Decision{}, false, time.Time{}
		}
		if at := m.stalled.Add(hedgeAfter); now.Before(at) {
			return schedule.Decision{}, false, at
		}
	}
	d, ok = schedule.Hedge(now, v, from, owed)
	return d, ok, time.Time{}
}

// restrict takes out of the view the links that the goal or a slow client does without.
func (m *Machine) restrict(now time.Time, v *schedule.View) (again time.Time) {
	if m.cfg.Goal != nil {
		again = m.cfg.Goal.Spare(now, v)
	}
	m.alone(v)
	for i := range v.Links {
		m.links[i].spared = v.Links[i].Spared
	}
	return again
}

// look fills in the scheduler's view.
func (m *Machine) look(now time.Time) *schedule.View {
	v := &m.view
	v.Object = segment.Range{Start: m.cfg.Requested.Start, End: m.led.End()}
	v.Offset, v.Limit, v.Window, v.Free = m.led.Offset(), m.led.Limit(), m.led.Window(), m.led.Free()
	if m.client.need > 0 {
		v.Window *= burst
	}
	if m.hasEnough() {
		v.Limit = min(v.Limit, v.Free[0].Start)
	}
	v.Links = v.Links[:0]
	for i := range m.links {
		l := &m.links[i]
		v.Links = append(v.Links, schedule.Link{
			Usable:  m.ready(now, int8(i)),
			Suspect: l.silent || l.state == health.Suspect,
			CanAsk: m.keptOn(int8(i)) != nil || m.pick(now, int8(i), m.led.End()) != nil ||
				l.mayOpen(m.count(int8(i))),
			Rate:     l.rate.PerSecond(now),
			Recalled: l.rate.Recalled(now),
			Peak:     l.rate.Peak(),
			Got:      l.got,
			RTT:      max(l.rtt(), l.response.Least()), // an origin that thinks needs long ranges, too
			Think:    max(0, l.response.Least()-l.rtt()),
			Setup:    l.setup,
			Delay:    l.delay,
			Each:     l.parallel.Each(),
			Conns:    l.conns(),

			Optional: l.optional,
			Radio:    l.radio,
			Silent:   l.quiet(now),
		})
	}
	for i := range v.Links {
		if vl := &v.Links[i]; m.blocked(int8(i)) {
			vl.Blocked = true
			vl.CanAsk = vl.CanAsk || m.links[i].mayOpen(m.count(int8(i))-1)
		}
	}
	v.Attempts = v.Attempts[:0]
	for i := range m.attempts {
		a := &m.attempts[i]
		vl := &v.Links[a.link]
		if left := a.answer.End - a.cursor; left > 0 {
			vl.Asked += min(left, max(a.want.End-a.cursor, drainMax))
		}
		if a.cursor >= a.want.End {
			continue
		}
		vl.Running++
		v.Attempts = append(v.Attempts, schedule.Attempt{
			ID:      a.id,
			Link:    a.link,
			Conn:    a.conn,
			Hedge:   a.hedge,
			Stolen:  a.stolen || a.reserved,
			HasHead: a.hasHead,
			Range:   a.want,
			Hedged:  m.led.Hedged(segment.Range{Start: a.cursor, End: a.want.End}),
			Cursor:  a.cursor,
			Asked:   a.asked,
			Last:    a.last,
			Silent:  vl.Suspect,
			Blocked: a.cursor >= a.credit,
		})
	}
	return v
}

// credits lets attempts read on as the next offset moves. Small steps are combined, since each one wakes a reader.
func (m *Machine) credits(now time.Time) {
	limit := m.led.Limit()
	m.furthest = max(m.furthest, limit)
	for i := range m.attempts {
		a := &m.attempts[i]
		end := a.want.End
		if a.hasHead && a.cursor >= a.want.End && a.id != m.kept.id {
			end = a.answer.End // the rest is read and discarded
		}
		upTo := min(end, limit)
		if a.cursor >= a.want.End {
			upTo = end
		}
		step := min(end-a.credit, max(m.led.Window()/8, 1))
		if upTo <= a.credit || upTo-a.credit < step && a.cursor < a.credit {
			continue
		}
		if a.cursor >= a.credit { // it waited for room: from now on its bytes are due
			m.conn(a.conn).progress = now
		}
		a.credit = upTo
		m.act(Action{Kind: Credit, Link: a.link, Attempt: a.id, UpTo: upTo})
	}
}
