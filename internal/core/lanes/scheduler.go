package lanes

// Scheduler is how a Mux chooses the lane for the next bytes. The zero value is the default; the others are from the
// literature, for comparison. They know neither the in-flight cap nor classes: a lane takes as much as its congestion
// window has room for.
type Scheduler uint8

const (
	// EarliestArrival gives bytes to the lane over which they arrive first, and none to a lane that would finish after the
	// others have sent everything (Earliest Completion First, Lim et al. 2017).
	EarliestArrival Scheduler = iota
	// MinRTT gives bytes to the lane with the shortest smoothed round trip that has room (the default of MPTCP).
	MinRTT
	// RoundRobin gives frames in turn to the lanes that have room.
	RoundRobin
)

// String returns the scheduler's name.
func (s Scheduler) String() string {
	return [...]string{"earliest-arrival", "min-rtt", "round-robin"}[s]
}

// room reports whether the congestion window lets a lane send.
func (l *lane) room() bool { return !l.suspect && l.path.InFlight+l.path.Unsent < l.path.CWnd }

// yields reports whether a lane leaves the next bytes to another one under the schedulers from the literature.
func (m *Mux) yields(l *lane) bool {
	switch {
	case !l.room():
		return true
	case m.cfg.Scheduler == MinRTT:
		for _, o := range m.lanes {
			if o.path.RTT < l.path.RTT && o.room() {
				return true
			}
		}
		return false
	}
	for _, o := range m.inTurn() {
		if o.room() {
			return o != l
		}
	}
	return true
}

// inTurn returns the lanes, beginning with the one after the lane that last sent data.
func (m *Mux) inTurn() []*lane {
	m.turns = m.turns[:0]
	for i, l := range m.lanes {
		if l.id == m.turn {
			m.turns = append(append(m.turns, m.lanes[i+1:]...), m.lanes[:i+1]...)
			return m.turns
		}
	}
	return m.lanes
}
