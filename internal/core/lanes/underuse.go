package lanes

// underuse finds out whether congestion control lets a lane use its link. Loss-based control, such as CUBIC (RFC 9438),
// shrinks the window at each loss and then grows it slowly. Where losses come from a full queue, the smaller window
// still fills the link. But radio links lose packets without congestion, and their rate rises and falls: there, the
// window soon holds less than the link.
type underuse struct {
	found, untold bool
}

// observe records the kernel's figures for a lane that has recently delivered at most this many bytes per second.
func (u *underuse) observe(p Path, most float64) {
	if !u.found && !p.Model && p.Threshold > 0 && float64(p.Threshold) < most*p.MinRTT.Seconds() {
		u.found, u.untold = true, true
	}
}

// Underused reports, once, that loss-based congestion control makes a lane send less than its link carries.
func (m *Mux) Underused(id uint32) bool {
	l := m.lane(id)
	if l == nil || !l.underuse.untold {
		return false
	}
	l.underuse.untold = false
	return true
}
