package transfer

import (
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// kept is the first response if it covers everything: it may be the only one until the origin has answered later
// requests. Other links take parts of it as soon as they have a valid head, but it does not end where they begin: when
// its link is to fetch something, it is read on instead, and what others deliver meanwhile is discarded. It ends when a
// reserve takes its place and what the others delivered is known to be right, since the origin may refuse the request
// that would verify it.
type kept struct {
	id uint32 // its attempt; 0 = none
	// no reserve has been accepted, so the head of a request made from then on must do; zero = one may soon be
	doubted time.Time
	spare   bool // the origin has answered a later request
}

// keep makes a, the first attempt with a valid head, the kept one if it can be: bytes that may turn out to be unwanted
// must cost nothing, and the reserve needs a second connection.
func (m *Machine) keep(a *attempt) {
	l := &m.links[a.link]
	costly := l.metered || l.optional || m.cfg.Goal != nil || m.cfg.Background || l.maxConns == 1
	if m.cfg.Reserve && !costly && a.want.End == m.led.End() && a.answer.End >= a.want.End {
		m.kept.id = a.id
	}
}

// keptOn returns the kept attempt if it runs over a link, otherwise nil.
func (m *Machine) keptOn(link int8) *attempt {
	if a := m.attempt(m.kept.id); a != nil && a.link == link {
		return a
	}
	return nil
}

// readOn carries out a scheduler's decision without a request, if the kept attempt will get to these bytes.
func (m *Machine) readOn(d schedule.Decision) bool {
	a := m.keptOn(d.Link)
	if a == nil || d.Range.Start < a.want.End {
		return false
	}
	if from := m.attempt(d.From); from != nil && d.Hedge {
		m.act(Action{Kind: ReportHedged, Link: from.link})
	}
	m.extend(a, d.Range.End)
	return true
}

// extend lets the kept attempt fetch everything up to an offset.
func (m *Machine) extend(a *attempt, end int64) {
	more := segment.Range{Start: a.want.End, End: min(end, a.answer.End, m.led.End())}
	if more.Empty() {
		return
	}
	for _, owed := range m.cover(a.id) {
		m.led.Hedge(owed.Clip(more))
	}
	m.led.Take(more)
	a.want.End = more.End
}

// proves reports whether a valid head of a shows that the origin answers later requests, if no reserve does.
func (m *Machine) proves(a *attempt) bool {
	return m.kept.id != 0 && !m.kept.doubted.IsZero() && a.asked.After(m.kept.doubted)
}

// unproven reports whether a further request may be needed to show that what others than the kept attempt deliver is
// right.
func (m *Machine) unproven() bool {
	for i := range m.links {
		s := &m.links[i].spot
		if s.trust == unknown && (s.only.Len() > 0 || m.running(int8(i)) > 0) &&
			!slices.ContainsFunc(s.checks, m.decisive) {
			return true
		}
	}
	return false
}

// unkeep lets the kept attempt end where others begin.
func (m *Machine) unkeep() {
	a := m.attempt(m.kept.id)
	m.kept = kept{}
	if a != nil {
		m.settle(a)
	}
}

// shares reports whether another attempt is to take a part of the kept one.
func (m *Machine) shares() bool {
	a := m.attempt(m.kept.id)
	return a != nil && a.stolen
}

// fetchesUpTo returns the offset up to which a will fetch its bytes once others have taken those that they are to take.
func (m *Machine) fetchesUpTo(a *attempt) int64 {
	end := a.want.End
	for i := range m.attempts {
		if b := &m.attempts[i]; a.id == m.kept.id && b.from == a.id {
			end = min(end, b.want.Start)
		}
	}
	return end
}

// reserveWorth returns the shortest rest of the object, in bytes, that is worth a reserve.
func (m *Machine) reserveWorth() int64 {
	if m.kept.id != 0 { // reading on costs more
		return reserveLeast / 4
	}
	return reserveLeast
}

// Kept returns the attempt of the first response while it is kept, 0 if there is none. It is for tests and for the
// simulator, which audits the machine.
func (m *Machine) Kept() uint32 { return m.kept.id }

// distrust forgets what links that are still doubtful delivered, and may not be asked again, if a will deliver these
// bytes, too: nothing else might verify them.
func (m *Machine) distrust(now time.Time, a *attempt) {
	for i := range m.links {
		l := &m.links[i]
		if l.spot.trust != unknown || int8(i) == a.link || !l.refused && !now.Before(l.resting) {
			continue
		}
		for _, r := range slices.Clone(l.spot.only.Ranges()) {
			if r.Start >= max(a.cursor, m.led.Offset()) && r.End <= a.answer.End {
				m.forget(int8(i), r)
			}
		}
	}
}

// guard reads the kept attempt to the end if nothing else is left, and does without it if its link serves no more.
func (m *Machine) guard(now time.Time) {
	a := m.attempt(m.kept.id)
	if a != nil {
		m.distrust(now, a)
	}
	switch {
	case a == nil:
	case m.closed(now):
		m.extend(a, a.answer.End)
		a.reserved = true
		m.renewAt = now.Add(renewAfter)
		m.kept = kept{}
	case m.links[a.link].out(), m.kept.spare && !m.unproven():
		m.unkeep()
	case m.divided && m.kept.doubted.IsZero() && (m.coming == nil ||
		now.Sub(m.coming.attempt.asked) >= health.BanAfter):
		m.kept.doubted = now
	}
}
