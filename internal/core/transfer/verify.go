package transfer

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

const (
	// verifyLeast is the least number of bytes that are compared to verify a link, if it delivered that many in one
	// piece.
	verifyLeast = 256

	// verifyMost bounds the requests that verify links. Without it, an origin that answers each of them in part would
	// be asked forever.
	verifyMost = 20
)

// doubtful returns a link that delivered bytes which no other link did, and whose trust no check has shown; -1 if there
// is none. The transfer does not end while there is one.
func (m *Machine) doubtful() int8 {
	for i := range m.links {
		if s := &m.links[i].spot; s.trust == unknown && s.only.Len() > 0 {
			return int8(i)
		}
	}
	return -1
}

// verify makes the last check of a link whose spot checks were all inconclusive, once no bytes are left to request. The
// last bytes that it delivered are fetched again over a proven link. If no proven link works, another one is asked for
// the last bytes that a proven link delivered, to be proven itself.
//
// If read is true, the event was a Read, which may complete a check whose result follows: verify then waits for the
// next Tick.
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

// verification returns the request that settles the trust of a doubtful link, if one is possible and none is running.
func (m *Machine) verification(now time.Time, doubtful int8) (a attempt, ok bool) {
	s := &m.links[doubtful].spot
	if m.twice(s) {
		return attempt{}, false
	}
	for i := range m.attempts {
		b := &m.attempts[i]
		c := s.checkOf(b.id)
		comes := c >= 0 && !m.links[b.link].silent && m.decisive(s.checks[c])
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

// compareTail returns the request over a link for the last bytes that the link tail delivered. It shows the trust of
// the link checks.
func (m *Machine) compareTail(over, tail, checks int8) (a attempt, ok bool) {
	r := m.links[tail].spot.tail
	n := min(spotMost, max(verifyLeast, (m.led.End()-m.cfg.Requested.Start)/spotShare))
	r.Start = max(r.Start, r.End-n)
	if !m.received && r.Len() < verifyLeast { // more will arrive
		return attempt{}, false
	}
	end := segment.Range{Start: r.End, End: r.End}
	return attempt{
		link:   over,
		want:   end,
		prefix: r.Len(),
		tail:   tail,
		checks: checks,
	}, !r.Empty()
}
