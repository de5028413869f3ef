package lanes

import "time"

const (
	// A queue may belong to others if the round trip is longer than what the in-flight cap of a lane explains: a multiple of the
	// least one, and slack.
	queueSlack = 20 * time.Millisecond
	// A rate is measured for this time and this number of round trips. BBR tries out more than its rate once in eight of them.
	measureTime  = 150 * time.Millisecond
	measureTrips = 2
	modelTrips   = 8
	// BBR keeps its own queue so short that a round trip tells whether there is another: it is longer than what the cap explains, by
	// an eighth and by modelSlack, modelWaits times in succession.
	modelSlack = 5 * time.Millisecond
	modelWaits = 2
	// The cap is multiplied by nudgedGain to find out whether the queue is short only since the lane gives way, by liftedGain where
	// it is long, and by confirmedGain if it belongs to others: the congestion window then bounds the lane.
	nudgedGain, liftedGain, confirmedGain = 1.35, 3, 8
	// In a queue of others, more in flight brings more: worthwhile times as much. In a queue of its own, a lane only waits longer,
	// which shows for certain with bolder times as much in flight.
	worthwhile, bolder = 1.15, 2
	// Between two trials pass firstPause to lastPause, doubled each time.
	firstPause = 2 * time.Second
	lastPause  = 16 * time.Second
)

// lift finds out whether the queue that a lane waits in is its own. Beside a download of others, or where the route has become
// longer than the least round trip, the in-flight cap would starve it. The zero value does not lift the cap.
type lift struct {
	phase   liftPhase
	fresh   bool // the phase has changed: what is measured now belongs to the one before
	limited bool // the cap has held something back since began
	most    int  // in flight since began, bytes
	began   time.Time
	passed  uint64 // progress by then
	flown   int    // in flight before the cap was lifted
	waits   int    // how often in succession a queue of others was seen
	before  float64
	pause   time.Duration
	until   time.Time // before that the phase stays
}

type liftPhase uint8

const (
	capped liftPhase = iota
	nudged
	lifted
	confirmed // more in flight has brought more
	trying    // the cap holds again, for a moment
)

// gain is by what the cap is multiplied.
func (c *lift) gain() float64 {
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

// Shares reports whether a lane seems to wait in a queue of others. Then it should be paced: what it sends at once is lost there.
func (m *Mux) Shares(id uint32) bool {
	l := m.lane(id)
	return l != nil && l.lift.phase >= lifted
}

// observe takes in what the kernel says of the lane. own is the round trip if the lane fills the cap and nobody else is there.
func (c *lift) observe(now time.Time, p Path, own time.Duration) {
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

// compare finds out by the round trip whether there is a queue of others.
func (c *lift) compare(now time.Time, p Path, own time.Duration) {
	switch due := !now.Before(c.until); {
	case c.phase == capped && (!c.limited || p.RTT <= own+own/8+modelSlack):
		c.waits = 0
	case c.phase == capped:
		if c.waits++; c.waits < modelWaits { // what the lane has sent before it knew the rate may be there still
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

// judge finds out by the rate whether the queue is that of others.
func (c *lift) judge(now time.Time, p Path, rate float64) {
	queued := p.RTT > 3*p.MinRTT/2+queueSlack
	due := !now.Before(c.until)
	switch {
	case c.phase == capped && c.limited && (queued || due):
		if !due && c.pause > 0 {
			break // it was the lane's own a moment ago
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

func (c *lift) enter(p liftPhase) { c.phase, c.fresh, c.waits = p, true, 0 }

// rest lets the cap hold for a while.
func (c *lift) rest(now time.Time) {
	c.enter(capped)
	c.pause = min(max(2*c.pause, firstPause), lastPause)
	c.until = now.Add(c.pause)
}

func (c *lift) measure(now time.Time, p Path) {
	c.began, c.passed, c.limited, c.most = now, p.Progress, false, p.InFlight
}
