package transfer

import (
	"cmp"
	"slices"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/segment"
)

const (
	// spotShare bounds the cost of the spot checks: one in this many bytes that the client wants is fetched a second
	// time. In a small object, each link may have two checks of spotLeast bytes anyway. Inconclusive checks are
	// repeated beyond that share, by spotMost bytes in all; see verify for what happens when those are inconclusive,
	// too.
	spotShare = 2000

	spotMost  = 4 << 10 // maximum bytes compared in a check
	spotLeast = 32      // bytes; with fewer, a check shows too little

	// spotGuess is the assumed size, in bytes, of an object that is requested ahead of the first response although
	// nothing hints at its size.
	spotGuess = 4_000_000
)

// spot is the result of the spot checks of a link. Answers whose headers agree may still belong to different objects:
// mirrors may have equal ETags, and a network may change the content that passes through it. So a link's first range
// begins with a prefix, some bytes that another link delivers anyway, and both copies are compared. The link that
// delivers the first byte of the content is the reference.
type spot struct {
	trust   trust
	group   int8          // links of one group deliver the same bytes, according to checks
	differs int8          // unproven link whose bytes differ, according to a check; -1 = none
	only    segment.Set   // bytes that no other link delivered, while this one is unproven
	tail    segment.Range // last bytes that arrived over it in one piece; the engine keeps a copy: see Received
	checks  []check       // under way, at most mostChecks
}

// mostChecks is how many checks of a link run at the same time: one may wait for bytes that a silent link owes.
const mostChecks = 3

// check is a spot check under way.
type check struct {
	attempt uint32        // attempt that fetches the prefix, or just a name if twice is set
	twice   uint32        // attempt over another link that delivers the range once more; 0 = none
	prefix  segment.Range // range that is compared
	with    int8          // unproven link that delivered some of it, -1 = none
}

// trust says whether the bytes of a link match those of the reference.
type trust uint8

const (
	unknown trust = iota
	proven
	refuted
)

// prefix gives a, which is to fetch a range over a link, a prefix for a spot check, if that link needs one and others
// deliver or recently delivered the bytes before the range. Otherwise a later range of the link is checked.
func (m *Machine) prefix(a *attempt, link int8) {
	s := &m.links[link].spot
	if s.trust != unknown {
		return
	}
	pending, certain := false, false
	for _, c := range s.checks {
		if !c.prefix.Clip(a.want).Empty() {
			continue // the link would be compared with itself
		}
		if m.decisive(c) {
			return
		}
		pending, certain = true, certain || m.certain(s, c.prefix)
	}
	shares := int64(2) // for this check, and for one that is inconclusive
	if !m.begun {      // one of the links will be the reference
		shares = 1
	}
	for i := range m.links {
		if l := &m.links[i]; l.mayServe() && l.spot.trust == unknown && l.spot.group != s.group &&
			int(l.spot.group) == i {
			shares++
		}
	}
	most := segment.Range{
		Start: max(m.cfg.Requested.Start, a.want.Start-min(spotMost, (m.spotBudget()-m.spent)/shares)),
		End:   a.want.Start,
	}
	r, from := m.owedByOthers(s, most), int8(-1)
	for i := range m.links {
		if o := &m.links[i].spot; m.shows(s, o) && o.tail.End == r.Start && !o.tail.Empty() {
			r.Start, from = max(most.Start, o.tail.Start), int8(i)
			break
		}
	}
	better := !pending || m.decisive(check{prefix: r, with: from}) || m.certain(s, r) && !certain
	if r.Len() >= spotLeast && better {
		a.prefix, a.tail, a.checks = r.Len(), from, link
	}
}

// spotBudget returns how many bytes all checks may fetch a second time.
func (m *Machine) spotBudget() int64 {
	want := segment.Range{Start: m.cfg.Requested.Start, End: m.led.End()}
	if !m.known {
		want.End = min(m.cfg.Requested.End, cmp.Or(m.cfg.Hint, want.Start+spotGuess))
	}
	return max(want.Len()/spotShare, int64(2*spotLeast*len(m.links))) + min(m.fruitless, spotMost)
}

// shows reports whether comparing bytes of two links may show something new.
func (m *Machine) shows(s, other *spot) bool {
	known := func(a, b *spot) bool { return a.differs >= 0 && m.links[a.differs].spot.group == b.group }
	return s.group != other.group && !known(s, other) && !known(other, s)
}

// owedByOthers returns the end of r that has not arrived and was not requested over links that show nothing new.
func (m *Machine) owedByOthers(s *spot, r segment.Range) segment.Range {
	gap := m.missing(r)
	for ; gap.End < r.End; gap = m.missing(r) {
		r.Start = gap.End
	}
	r = gap
	for i := range m.attempts {
		a := &m.attempts[i]
		owes := (segment.Range{Start: a.cursor, End: a.want.End}).Clip(r)
		if !owes.Empty() && !m.shows(s, &m.links[a.link].spot) {
			r.Start = owes.End
		}
	}
	return r
}

// missing returns the first part of r that has not arrived: all of r before the size is known.
func (m *Machine) missing(r segment.Range) segment.Range {
	if !m.known {
		return r
	}
	return m.led.Missing(r)
}

// certain reports whether the missing part of r was requested over a link whose bytes show something new.
func (m *Machine) certain(s *spot, r segment.Range) bool {
	return m.comes(r, func(other *spot) bool { return m.shows(s, other) })
}

// decisive reports whether a check settles the trust of a link: the part that has arrived came from proven links, and
// the rest was requested over one.
func (m *Machine) decisive(c check) bool {
	return (c.with < 0 || m.links[c.with].spot.trust == proven) &&
		m.comes(c.prefix, func(other *spot) bool { return other.trust == proven })
}

// comes reports whether the missing part of r was requested over a link that is not silent and satisfies willDo.
func (m *Machine) comes(r segment.Range, willDo func(other *spot) bool) bool {
	if r = m.missing(r); r.Empty() {
		return true
	}
	for i := range m.attempts {
		a := &m.attempts[i]
		if l := &m.links[a.link]; a.cursor <= r.Start && r.End <= a.want.End && !l.silent && willDo(&l.spot) {
			return true
		}
	}
	return false
}

// check starts the spot check for which the request of a includes a prefix.
func (m *Machine) check(a *attempt) {
	c := check{attempt: a.id, with: -1, prefix: segment.Range{Start: a.want.Start - a.prefix, End: a.want.Start}}
	if a.tail >= 0 && a.tail != a.checks && m.links[a.tail].spot.trust != proven {
		c.with = a.tail
	}
	m.spent += a.prefix
	m.addCheck(&m.links[a.checks].spot, c)
}

// addCheck starts a check, if need be in place of the oldest one.
func (m *Machine) addCheck(s *spot, c check) {
	if len(s.checks) == mostChecks {
		m.dropCheck(s, 0)
	}
	s.checks = append(s.checks, c)
	m.checks++
}

// uncheck ends the check number i of a link. If it showed nothing, one of the next ranges of the link is checked.
func (m *Machine) uncheck(s *spot, i int) {
	s.checks = slices.Delete(s.checks, i, i+1)
	m.checks--
}

// dropCheck ends a running check that can no longer show anything, although its prefix still arrives.
func (m *Machine) dropCheck(s *spot, i int) {
	if s.checks[i].twice == 0 {
		m.fruitless += s.checks[i].prefix.Len()
	}
	m.uncheck(s, i)
}

// checkOf returns the index of the check that an attempt's name stands for, -1 if there is none.
func (s *spot) checkOf(attempt uint32) int {
	return slices.IndexFunc(s.checks, func(c check) bool { return c.attempt == attempt })
}

// cutShort records that the rest of an attempt's prefix will not arrive.
func (m *Machine) cutShort(a *attempt) {
	if s := &m.links[a.checks].spot; a.prefix > 0 {
		if i := s.checkOf(a.id); i >= 0 {
			m.uncheck(s, i)
		}
	}
	m.spent -= a.prefix
	a.prefix = 0
}

// receive accounts for received bytes and returns how many of them are first copies.
func (m *Machine) receive(link int8, r segment.Range) int64 {
	s := &m.links[link].spot
	if !r.Empty() {
		m.keepTail(s, r)
	}
	if s.trust != proven {
		for rest := r; ; {
			gap := m.led.Missing(rest)
			if gap.Empty() {
				break
			}
			s.only.Add(gap)
			rest.Start = gap.End
		}
	}
	fresh := m.led.Receive(r)
	if fresh == 0 {
		return 0
	}
	if m.checks > 0 {
		m.witness(link, r)
	}
	return fresh
}

// refer makes a link the reference if r, which it was the first to deliver, is the beginning of the content.
func (m *Machine) refer(link int8, r segment.Range) {
	if start := m.cfg.Requested.Start; !m.begun && r.Start <= start {
		m.begun = true
		m.prove(m.links[link].spot.group, start) // the client has nothing yet
	}
}

// keepTail records the range of a link's last bytes: other links, including one that joins later, may have to be
// compared with them.
func (m *Machine) keepTail(s *spot, r segment.Range) {
	if r.Start == s.tail.End {
		r.Start = s.tail.Start
	} else if r.Len() < spotLeast && s.tail.Len() > r.Len() {
		return // the beginning of a range shows too little
	}
	r.Start = max(r.Start, r.End-spotMost)
	s.tail = r
}

// witness records the link that delivered bytes under comparison.
func (m *Machine) witness(link int8, r segment.Range) {
	by := &m.links[link].spot
	for i := range m.links {
		s := &m.links[i].spot
		for j := len(s.checks) - 1; j >= 0; j-- {
			c := &s.checks[j]
			switch {
			case r.Clip(c.prefix).Empty():
			case s.group == by.group: // it cannot vouch for itself
				m.dropCheck(s, j)
			case by.trust == proven || c.with == link:
			case c.with < 0:
				c.with = link
			default: // more than one unproven link
				m.dropCheck(s, j)
			}
		}
	}
}

// compared handles the result of a check.
func (m *Machine) compared(e Event) {
	for i := range m.links {
		s := &m.links[i].spot
		j := s.checkOf(e.Attempt)
		if j < 0 {
			continue
		}
		c, with := s.checks[j], proven
		m.uncheck(s, j)
		if c.with >= 0 {
			with = m.links[c.with].spot.trust
		}
		switch {
		case with == proven && e.Differs, with == refuted && !e.Differs:
			m.refute(s.group, e.N)
		case with == proven:
			m.prove(s.group, e.N)
		case with == unknown && e.Differs:
			s.differs = c.with
		case with == unknown:
			m.join(s.group, m.links[c.with].spot.group)
		}
		return
	}
}

// join merges two groups.
func (m *Machine) join(a, b int8) {
	for i := range m.links {
		if s := &m.links[i].spot; s.group == a {
			s.group = b
		}
	}
}

// settleGroup sets the trust of every link of a group.
func (m *Machine) settleGroup(group int8, t trust) {
	for i := range m.links {
		if s := &m.links[i].spot; s.group == group {
			m.checks -= len(s.checks)
			s.checks, s.trust = nil, t
			if t == proven {
				s.only = segment.Set{}
			}
		}
	}
}

// prove records that the bytes of a group match the reference, so those of links that differ from it do not.
func (m *Machine) prove(group int8, gone int64) {
	m.settleGroup(group, proven)
	for i := range m.links {
		if s := &m.links[i].spot; s.trust == unknown && s.differs >= 0 && m.links[s.differs].spot.trust == proven &&
			!m.ended {
			m.refute(s.group, gone)
		}
	}
}

// refute removes the links of a group from the transfer: their bytes differ from the reference. Bytes that only they
// delivered are fetched again over other links. If some of these lie before offset gone, the client has them and the
// transfer fails: bytes of two objects are never joined.
func (m *Machine) refute(group int8, gone int64) {
	m.settleGroup(group, refuted)
	sound := int64(Unknown)
	for i := range m.links {
		l := &m.links[i]
		if l.spot.group != group {
			continue
		}
		l.excluded = true
		m.lastOutcome, m.lastLink = fault.Differs, int8(i)
		m.act(Action{Kind: ReportDiffers, Link: int8(i)})
		if only := l.spot.only.Ranges(); len(only) > 0 {
			sound = min(sound, only[0].Start)
		}
	}
	if sound < gone {
		m.fail(fault.Differs, m.lastLink, sound)
		return
	}
	for i := range m.links {
		if m.links[i].spot.group == group {
			m.endReserves(int8(i))
		}
	}
	for i := len(m.conns) - 1; i >= 0; i-- {
		if c := &m.conns[i]; m.links[c.link].spot.group == group {
			m.closeConn(c)
		}
	}
	for i := range m.links {
		s := &m.links[i].spot
		if s.group != group {
			continue
		}
		for _, r := range slices.Clone(s.only.Ranges()) {
			m.forget(int8(i), r)
		}
	}
}

// forget gives back bytes that only one link delivered. The client does not have them.
func (m *Machine) forget(link int8, r segment.Range) {
	n := m.led.Forget(r, m.cover(0))
	m.waste += n
	m.act(Action{Kind: Forget, Link: link, Range: r, N: n})
	m.received = false
	m.links[link].spot.only.Remove(r)
}
