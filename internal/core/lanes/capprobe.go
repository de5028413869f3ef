package lanes

import "time"

const (
	// A queue may belong to other traffic if the round trip is longer than the lane's in-flight cap explains: a
	// multiple of the lowest round trip, plus queueSlack.
	queueSlack = 20 * time.Millisecond
	// A rate is measured for this time and this many round trips. BBR probes for more than its rate once every eight
	// round trips.
	measureTime  = 150 * time.Millisecond
	measureTrips = 2
	modelTrips   = 8
	// BBR keeps its own queue so short that the round trip shows whether there is another: it then exceeds what the cap
	// explains by an eighth plus modelSlack, modelWaits times in succession.
	modelSlack = 5 * time.Millisecond
	modelWaits = 2
	// The cap is multiplied by nudgedGain to find out whether the queue is short only because the lane gives way, by
	// liftedGain if the queue is long, and by confirmedGain if it belongs to other traffic: the congestion window then
	// bounds the lane.
	nudgedGain, liftedGain, confirmedGain = 1.35, 3, 8
	// In a queue of other traffic, more data in flight brings more: worthwhile times as much. In a queue of its own, a
	// lane only waits longer, which shows for certain with bolder times as much in flight.
	worthwhile, bolder = 1.15, 2
	// The pause between two trials starts at firstPause and doubles each time, up to lastPause.
	firstPause = 2 * time.Second
	lastPause  = 16 * time.Second
)

// capProbe finds out whether the queue that a lane waits in is its own. Beside other traffic's download, or on a route
// that has become longer than the lowest round trip, the in-flight cap would starve the lane. The zero value does not
// lift the cap.
type capProbe struct {
	phase   capPhase
	fresh   bool // the phase has changed: the current measurement belongs to the previous phase
	limited bool // the cap held something back since began
	most    int  // most bytes in flight since began
	began   time.Time
	passed  uint64 // progress at began
	flown   int    // bytes in flight before the cap was lifted
	waits   int    // how often in succession another's queue was seen
	before  float64
	pause   time.Duration
	until   time.Time // the phase does not change before then
}

type capPhase uint8

const (
	capped capPhase = iota
	nudged
	lifted
	confirmed // more in flight brought more
	trying    // the cap applies again, for a moment
)

// gain returns the factor by which the cap is multiplied.
func (c *capProbe) gain() float64 {
	switch c.phase {
	case nudged:
		return nudgedGain
	case lifted:
		return liftedGain
	case confirmed:
		return confirmedGain
	}
	return 1
}

// Shares reports whether a lane seems to wait in a queue of other traffic. It should then be paced: bursts are lost in
// such a queue.
func (m *Mux) Shares(id uint32) bool {
	l := m.lane(id)
	return l != nil && l.probe.phase >= lifted
}

// observe records the kernel's figures for the lane. own is the round trip if the lane fills the cap and there is no
// other traffic.
func (c *capProbe) observe(now time.Time, p Path, own time.Duration) {
	c.most = max(c.most, p.InFlight)
	if c.began.IsZero() {
		c.until = now.Add(firstPause)
		c.measure(now, p)
		return
	}
	took := now.Sub(c.began)
	trips := time.Duration(measureTrips)
	if p.Model && !c.fresh {
		trips = modelTrips
	}
	if took < max(measureTime, trips*p.RTT) {
		return
	}
	switch {
	case c.fresh:
		c.fresh = false
	case p.Model:
		c.compare(now, p, own)
	default:
		c.judge(now, p, float64(p.Progress-c.passed)/took.Seconds())
	}
	c.measure(now, p)
}

// compare uses the round trip to find out whether there is a queue of other traffic.
func (c *capProbe) compare(now time.Time, p Path, own time.Duration) {
	switch due := !now.Before(c.until); {
	case c.phase == capped && (!c.limited || p.RTT <= own+own/8+modelSlack):
		c.waits = 0
	case c.phase == capped:
		if c.waits++; c.waits < modelWaits { // what the lane sent before it knew the rate may still be queued
			break
		}
		c.enter(lifted)
		c.pause = 2 * firstPause
		c.until = now.Add(c.pause)
	case c.phase == lifted && due:
		c.enter(trying)
	case c.phase == trying && p.RTT > own:
		c.enter(lifted)
		c.pause = min(2*c.pause, lastPause)
		c.until = now.Add(c.pause)
	case c.phase == trying:
		c.enter(capped)
	}
}

// judge uses the rate to find out whether the queue belongs to other traffic.
func (c *capProbe) judge(now time.Time, p Path, rate float64) {
	queued := p.RTT > 3*p.MinRTT/2+queueSlack
	due := !now.Before(c.until)
	switch {
	case c.phase == capped && c.limited && (queued || due):
		if !due && c.pause > 0 {
			break // a moment ago, the queue was the lane's own
		}
		c.before, c.flown = rate, c.most
		if c.enter(nudged); queued {
			c.enter(lifted)
			c.until = now.Add(2 * firstPause)
		}
	case c.phase == nudged && rate < worthwhile*c.before:
		c.rest(now)
	case c.phase == nudged:
		c.enter(lifted)
		c.until = now.Add(2 * firstPause)
	case c.phase == lifted && float64(c.most) > bolder*float64(c.flown) && rate < worthwhile*c.before:
		c.rest(now)
	case c.phase == lifted && float64(c.most) > bolder*float64(c.flown):
		c.enter(confirmed)
	case (c.phase == lifted || c.phase == confirmed) && due:
		c.before = rate
		c.enter(trying)
	case c.phase == trying && c.limited && rate*worthwhile < c.before:
		c.enter(confirmed)
		c.pause = min(max(2*c.pause, 2*firstPause), lastPause)
		c.until = now.Add(c.pause)
	case c.phase == trying:
		c.rest(now)
	}
}

func (c *capProbe) enter(p capPhase) { c.phase, c.fresh, c.waits = p, true, 0 }

// rest lets the cap apply for a while.
func (c *capProbe) rest(now time.Time) {
	c.enter(capped)
	c.pause = min(max(2*c.pause, firstPause), lastPause)
	c.until = now.Add(c.pause)
}

func (c *capProbe) measure(now time.Time, p Path) {
	c.began, c.passed, c.limited, c.most = now, p.Progress, false, p.InFlight
}
