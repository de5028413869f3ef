package transfer

import (
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

const (
	// reserveLeast is the shortest rest of an object, in bytes, that is worth a reserve: a paused connection receives
	// 15 to 90 kB.
	reserveLeast = 4 << 20

	// renewAfter is the least time between two requests for a reserve. It doubles while reserves are refused or lost.
	renewAfter = 10 * time.Second

	// mostLost is how many reserves in a row may end early before the transfer does without.
	mostLost = 3

	// A reserve is read by sipSize bytes every sipEvery, since servers end responses that nobody reads: nginx after 60
	// s.
	sipEvery = 20 * time.Second
	sipSize  = 32 << 10
)

// reserve is a response for the rest of the object that is hardly read. One request would have been enough without
// Tributary, and responses under way go on when an origin answers no further requests: a signed URL has expired, a
// quota is used up. Then the reserve is read to the end. It has a connection of its own, which carries nothing else.
type reserve struct {
	conn    conn
	attempt attempt
	sipped  time.Time
}

// insure keeps a reserve, and reads it to the end if nothing else is left. A slow client, which one connection serves,
// gets all of its bytes from a reserve.
func (m *Machine) insure(now time.Time) {
	m.insureAt = time.Time{}
	start, slow := m.sureUntil(), m.client.only
	if r := m.reserve; r != nil {
		if m.closed(now) || r.conn.link == slow && start-r.attempt.cursor <= leastNeed {
			m.fallBack(now)
		} else {
			m.sip(now, r)
		}
	}
	left := m.led.End() - start
	if !m.cfg.Reserve || !m.divided && !m.shares() || m.coming != nil || m.lost == mostLost ||
		left < m.reserveWorth() ||
		slow >= 0 && m.onReserve() {
		return
	}
	if r := m.reserve; r != nil && slow < 0 && left > (m.led.End()-r.attempt.want.Start)/2 {
		return // it begins near enough
	}
	if now.Before(m.renewAt) {
		m.insureAt = schedule.Earlier(m.insureAt, m.renewAt)
		return
	}
	if link := m.insurer(now); link >= 0 {
		m.requestReserve(now, link, start)
	}
}

// sureUntil returns the offset before which every byte has arrived or belongs to a response under way.
func (m *Machine) sureUntil() int64 {
	at := m.led.Offset() + m.led.Ready()
	for again := true; again; {
		again = false
		for i := range m.attempts {
			if a := &m.attempts[i]; a.hasHead && !a.reserved && a.cursor <= at && at < m.fetchesUpTo(a) {
				at, again = m.fetchesUpTo(a), true
			}
		}
	}
	return at
}

// insurer returns the fastest link that may carry a reserve, -1 if none may: speculative bytes must cost nothing, the
// link must be awake, and its bytes must be known to be right.
func (m *Machine) insurer(now time.Time) int8 {
	best := int8(-1)
	for i := range m.links {
		l := &m.links[i]
		out := l.excluded && !l.refused || l.forbidden || l.resort || l.withheld || !l.allowed ||
			now.Before(l.resting) ||
			now.Before(l.paused)
		if out || l.metered || l.full || l.silent || l.state != health.Up || l.spared != schedule.NotSpared ||
			l.got == 0 ||
			l.spot.trust != proven || l.maxConns > 0 && m.count(int8(i)) >= int(l.maxConns) {
			continue
		}
		if best < 0 || l.rate.PerSecond(now) > m.links[best].rate.PerSecond(now) {
			best = int8(i)
		}
	}
	return best
}

func (m *Machine) requestReserve(now time.Time, link int8, start int64) {
	c := conn{
		id:       m.id(),
		link:     link,
		began:    now,
		progress: now,
		doomed:   true,
	}
	rest := segment.Range{Start: start, End: m.led.End()}
	a := attempt{
		id:       m.id(),
		link:     link,
		conn:     c.id,
		want:     rest,
		answer:   rest,
		cursor:   start,
		credit:   start,
		asked:    now,
		tail:     -1,
		reserved: true,
	}
	c.queue = []uint32{a.id}
	m.coming = &reserve{conn: c, attempt: a}
	m.renewAt, m.kept.doubted = now.Add(renewAfter<<m.lost), time.Time{}
	m.act(Action{Kind: OpenApart, Link: link, Conn: c.id})
	m.act(Action{
		Kind:    Fetch,
		Link:    link,
		Conn:    c.id,
		Attempt: a.id,
		Range:   rest,
		Tail:    -1,
		UpTo:    start,
		Rule:    schedule.Reserve,
	})
}

// ofReserve handles an event of a reserve; false means that it is about something else.
func (m *Machine) ofReserve(now time.Time, e Event) bool {
	for _, r := range [...]*reserve{m.reserve, m.coming} {
		if r == nil || e.Conn != r.conn.id && e.Attempt != r.attempt.id {
			continue
		}
		switch e.Kind {
		case Opened:
			r.conn.open = true
		case HeadReceived:
			m.accept(now, r, e.Range)
		case Read:
			r.attempt.cursor += e.N
			m.got = Received{Waste: e.N, Tail: m.links[r.conn.link].spot.tail}
			m.links[r.conn.link].got += e.N
			m.total += e.N
			m.waste += e.N
		case OpenFailed, Ended, ConnClosed:
			m.lost++
			m.endReserve(r)
			if e.Kind == OpenFailed { // this says nothing of later requests
				m.kept.spare = true
			}
		}
		return true
	}
	return false
}

// accept makes r, whose head is valid, the reserve in place of an earlier one. The origin serves requests again if it
// had refused some.
func (m *Machine) accept(now time.Time, r *reserve, answer segment.Range) {
	if answer.End < r.attempt.want.End {
		m.lost++
		m.endReserve(r)
		return
	}
	if m.reserve != nil {
		m.endReserve(m.reserve)
	}
	m.reserve, m.coming, m.lost = r, nil, 0
	r.attempt.hasHead, r.attempt.answer, r.sipped = true, answer, now
	for i := range m.attempts {
		m.attempts[i].reserved = false
	}
	for i := range m.links {
		if l := &m.links[i]; l.refused {
			l.refused, l.excluded, l.failures = false, false, 0
		}
	}
	m.kept.spare = true
}

// endReserve closes the connection of a reserve.
func (m *Machine) endReserve(r *reserve) {
	if r == m.reserve {
		m.reserve = nil
	} else {
		m.coming = nil
	}
	m.act(Action{Kind: CloseConn, Conn: r.conn.id, Link: r.conn.link})
}

// endReserves closes the reserves over a link, or all if it is negative. Another link may carry the next one at once.
func (m *Machine) endReserves(link int8) {
	for _, r := range [...]*reserve{m.reserve, m.coming} {
		if r != nil && (link < 0 || r.conn.link == link) {
			m.endReserve(r)
			m.renewAt = time.Time{}
		}
	}
}

// sip lets the origin send a little, if it is time.
func (m *Machine) sip(now time.Time, r *reserve) {
	if at := r.sipped.Add(sipEvery); now.Before(at) {
		m.insureAt = at
		return
	}
	r.sipped, m.insureAt = now, now.Add(sipEvery)
	a := &r.attempt
	a.credit = min(a.want.End, a.cursor+sipSize)
	m.act(Action{Kind: Credit, Link: a.link, Attempt: a.id, UpTo: a.credit})
}

// closed reports whether no link can be asked for the bytes that are left because the origin refused, while those that
// did not are away. As long as something is running, a link that only pauses counts as open.
func (m *Machine) closed(now time.Time) bool {
	if len(m.led.Free()) == 0 && (!m.received || m.doubtful() < 0) {
		return false
	}
	idle := true
	for i := range m.attempts {
		idle = idle && m.links[m.attempts[i].link].silent
	}
	refused := false
	for i := range m.links {
		l := &m.links[i]
		switch {
		case l.usable(now):
			return false
		case l.excluded, idle && now.Before(l.resting):
			refused = true
		case !l.allowed, l.forbidden, l.withheld, l.resort, idle:
		case l.state == health.Up, l.state == health.Suspect:
			return false
		}
	}
	return refused
}

// fallBack makes the reserve an attempt like others. It fetches everything that is free; nothing is moved away from it
// until another reserve shows that the origin serves requests again.
func (m *Machine) fallBack(now time.Time) {
	r := m.reserve
	m.distrust(now, &r.attempt)
	m.reserve = nil
	m.renewAt = now.Add(renewAfter)
	rest := segment.Range{Start: r.attempt.cursor, End: r.attempt.want.End}
	for _, owed := range m.cover(0) {
		m.led.Hedge(owed.Clip(rest))
	}
	m.led.Take(rest)
	r.conn.progress, r.conn.answering = now, true
	m.conns, m.attempts = append(m.conns, r.conn), append(m.attempts, r.attempt)
}

// onReserve reports whether the transfer reads a reserve.
func (m *Machine) onReserve() bool {
	return slices.ContainsFunc(m.attempts, func(a attempt) bool { return a.reserved })
}

// precious reports whether c carries the kept response, or a reserve that is read because the origin refused another
// request.
func (m *Machine) precious(now time.Time, c *conn) bool {
	a := m.attempt(c.queue[0])
	if !a.hasHead || !a.reserved {
		return a.hasHead && a.id == m.kept.id
	}
	for i := range m.links {
		if l := &m.links[i]; l.refused || now.Before(l.resting) {
			return true
		}
	}
	return false
}

// irreplaceable reports whether c carries such a response while no link may be asked for the same bytes.
func (m *Machine) irreplaceable(now time.Time, c *conn) bool {
	for i := range m.links {
		if l := &m.links[i]; l.mayServe() && !l.withheld && l.state != health.Down && !now.Before(l.resting) {
			return false
		}
	}
	return m.precious(now, c)
}

// refusing reports whether an outcome shows that the origin does not answer requests, though it may serve the object.
func refusing(o fault.Outcome) bool { return o == fault.Unwanted || o == fault.Busy }
