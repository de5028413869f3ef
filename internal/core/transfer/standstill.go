package transfer

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// heldUpLately is how long after a standstill a link still counts as held up: bytes that trickle in keep interrupting a
// standstill.
const heldUpLately = 500 * time.Millisecond

// standstill describes the time since the last event.
type standstill struct {
	since time.Time
	some  bool // a usable link has nothing to do
	link  int8 // link that the others wait for; -1 = none
}

// accountStandstill adds up how long links stood still since the last event, charges the link that they waited for with
// the bytes that they could have delivered, and notes which links stand still from now on.
func (m *Machine) accountStandstill(now time.Time) {
	s := &m.still
	took := now.Sub(s.since)
	if s.some {
		m.stood += took
	}
	some := false
	for i := range m.links {
		l := &m.links[i]
		if l.stands && s.link >= 0 {
			m.links[s.link].cost += l.rate.PerSecond(now) * took.Seconds()
			l.heldUp = now
		}
		l.stands = m.known && !m.received && m.ready(now, int8(i)) && l.spared == schedule.NotSpared &&
			(m.running(int8(i)) == 0 || m.blocked(int8(i)))
		some = some || l.stands
	}
	*s = standstill{now, some, m.debtor()}
}

// debtor returns the link that others may have to wait for, since the client waits for a byte that only it owes; -1 if
// there is none. A silent link does not count: silence has its own remedies.
func (m *Machine) debtor() int8 {
	if m.led.Ready() > 0 {
		return -1
	}
	link, offset := int8(-1), m.led.Offset()
	for i := range m.attempts {
		switch a := &m.attempts[i]; {
		case offset < a.cursor || offset >= a.want.End:
		case link >= 0:
			return -1
		default:
			link = a.link
		}
	}
	if link >= 0 && m.links[link].silent {
		return -1
	}
	return link
}
