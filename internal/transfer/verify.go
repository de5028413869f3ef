package transfer

import (
	"time"

	"github.com/tributary-http/tributary/internal/fault"
	"github.com/tributary-http/tributary/internal/schedule"
	"github.com/tributary-http/tributary/internal/segment"
)

const (
	// verifyLeast is the least number of bytes that are compared to verify a link, if it has brought as many in one piece.
	verifyLeast = 256

	// verifyMost bounds the requests that verify links. An origin that answers each of them in part would be asked for ever.
	verifyMost = 20
)

// doubtful returns a link that has brought bytes which no other has, while no check has shown whose they are; -1 if there is none.
// The transfer does not end before.
func (m *Machine) doubtful() int8 {
	if m.cfg.Restart || m.cfg.Unchecked {
		return -1
	}
	for i := range m.links {
		if s := &m.links[i].spot; s.trust == unknown && s.only.Len() > 0 {
			return int8(i)
		}
	}
	return -1
}

// verify makes the last check of a link whose spot checks were all inconclusive, when no bytes are left to ask for. The end of what
// it has brought is fetched again over a link that is proven. If none of those works, one that does is asked for the end of what
// a proven link has brought, to be proven itself.
//
// A read may complete a check, whose result follows: read is true then, and the check is left to the Tick that comes after.
func (m *Machine) verify(now time.Time, read bool) {
	if len(m.led.Free()) > 0 {
		return
	}
	link := m.doubtful()
	if link < 0 {
		return
	}
	a, ok := m.verification(now, link)
	if !ok {
		return
	}
	if read {
		m.until = now
		return
	}
	if m.verified == verifyMost {
		m.fail(fault.Silence, a.link, Unknown)
		return
	}
	c := m.reuse(now, a.link, m.led.End())
	if c == nil {
		if !m.links[a.link].mayOpen(m.count(a.link)) {
			return
		}
		c = m.openConn(now, a.link)
	}
	m.verified++
	m.send(now, c, a)
}

// verification returns the request that shows whose bytes a doubtful link has brought, if one is possible and not under way.
func (m *Machine) verification(now time.Time, doubtful int8) (a attempt, ok bool) {
	s := &m.links[doubtful].spot
	for i := range m.attempts {
		b := &m.attempts[i]
		comes := b.id == s.attempt && !m.links[b.link].silent && m.decisive(s.prefix, s.with)
		if b.prefix > 0 && (b.want.Empty() || comes) {
			return attempt{}, false
		}
	}
	idle := func(i int) bool {
		l := &m.links[i]
		return m.ready(now, int8(i)) && l.spared == schedule.NotSpared && m.running(int8(i)) == 0
	}
	for i := range m.links {
		if m.links[i].spot.trust == proven && idle(i) {
			return m.compareTail(int8(i), doubtful, doubtful)
		}
	}
	if !m.received {
		return attempt{}, false
	}
	for i := range m.links {
		if m.links[i].spot.trust != unknown || !idle(i) {
			continue
		}
		for j := range m.links {
			if m.links[j].spot.trust == proven && !m.links[j].spot.tail.Empty() {
				return m.compareTail(int8(i), int8(j), int8(i))
			}
		}
	}
	return attempt{}, false
}

// compareTail returns the request over a link for the end of what another one has brought. It shows the trust of the link checks.
func (m *Machine) compareTail(over, tail, checks int8) (a attempt, ok bool) {
	r := m.links[tail].spot.tail
	n := min(spotMost, max(verifyLeast, (m.led.End()-m.cfg.Requested.Start)/spotShare))
	r.Start = max(r.Start, r.End-n)
	if !m.received && r.Len() < verifyLeast { // more is coming
		return attempt{}, false
	}
	end := segment.Range{Start: r.End, End: r.End}
	return attempt{link: over, want: end, prefix: r.Len(), tail: tail, checks: checks}, !r.Empty()
}
