package energy

import "time"

// Joules is the energy that a radio took, by purpose.
type Joules struct {
	Promotion float64 `json:"promotion_joules"`
	Active    float64 `json:"active_joules"`
	Tail      float64 `json:"tail_joules"`
	Idle      float64 `json:"idle_joules"` // since the first event; independent of the use of the link
}

// Radio returns the joules that using the link cost: all but the idle ones.
func (j Joules) Radio() float64 { return j.Promotion + j.Active + j.Tail }

// Meter accounts for the energy of one radio. A Meter with only Radio set begins idle. It is not safe for concurrent
// use.
type Meter struct {
	Radio    Radio
	last     time.Time // time of the last event
	up, down int64     // bytes of the last event
	joules   Joules
	wakeups  int
}

// Add accounts for bytes sent (up) and received (down) at a time. Events must be in the order of their times; an event
// earlier than the previous one counts as simultaneous with it.
//
// Events within the radio's gap (100 ms for Wi-Fi) of one another are one transfer, and the time between them is
// active, because their bytes took that time. Promotion is in addition to the times of the events, since it delays
// them.
func (m *Meter) Add(at time.Time, up, down int64) {
	switch since := at.Sub(m.last); {
	case m.wakeups == 0:
		m.wake()
	case since <= 0:
		at = m.last
	case since <= m.Radio.join:
		m.joules.Active += m.Radio.activeWatts(m.up+up, m.down+down) * since.Seconds()
	default:
		m.joules = m.after(since)
		if since > m.Radio.TailDuration() {
			m.wake()
		}
	}
	m.joules.Active += m.Radio.byteJoules(up, down)
	m.last, m.up, m.down = at, up, down
}

func (m *Meter) wake() {
	m.wakeups++
	m.joules.Promotion += m.Radio.PromotionJoules()
}

// after returns the joules once the radio has been silent for a time.
func (m *Meter) after(silent time.Duration) Joules {
	j := m.joules
	j.Tail += m.Radio.TailJoules(silent)
	j.Idle += m.Radio.idleWatts * max(silent-m.Radio.TailDuration(), 0).Seconds()
	return j
}

// At returns the joules up to now, including the part of the tail that has passed.
func (m *Meter) At(now time.Time) Joules {
	if m.wakeups == 0 {
		return Joules{}
	}
	return m.after(max(now.Sub(m.last), 0))
}

// Settled returns the joules including the whole tail of the last event.
func (m *Meter) Settled() Joules {
	if m.wakeups == 0 {
		return Joules{}
	}
	return m.after(m.Radio.TailDuration())
}

// Wakeups returns how often the radio left idle.
func (m *Meter) Wakeups() int { return m.wakeups }

// Silent returns how long the radio has been silent; false if it has never been used.
func (m *Meter) Silent(now time.Time) (time.Duration, bool) {
	return max(now.Sub(m.last), 0), m.wakeups > 0
}

// State returns what the radio is doing.
func (m *Meter) State(now time.Time) State {
	if m.wakeups == 0 {
		return Idle
	}
	silent := now.Sub(m.last)
	if silent <= 0 {
		return Active
	}
	return m.Radio.state(silent)
}
