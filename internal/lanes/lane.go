package lanes

import (
	"math"
	"time"
)

// Path is what the kernel knows of a lane's connection. Sizes are in bytes.
type Path struct {
	RTT, MinRTT  time.Duration // smoothed, and the least so far; 0 = unknown
	CWnd         int           // congestion window
	InFlight     int           // sent and not acknowledged
	Unsent       int           // in the send buffer
	DeliveryRate float64       // of the last samples, in bytes per second
	AppLimited   bool          // DeliveryRate is no more than what there was to send
	Hole         bool          // the other end misses a packet, and holds what came behind it
	Progress     uint64        // bytes that were delivered, acknowledged selectively or not
	Model        bool          // the congestion control follows a model of the link, as BBR does, and fills no queue
}

const (
	// rateAge is how long the largest delivery rate counts, at least.
	rateAge = 3 * time.Second
	// restTime is after what idle time a lane looks again for what its link can do.
	restTime = 200 * time.Millisecond
	// paceTime is for how long the pace of a lane is measured, at least.
	paceTime = 50 * time.Millisecond
	// What a lane may have in flight beyond the multiple of its BDP, as room for delayed acknowledgments: the bytes of slackTime, from
	// leastSlack to capSlack. More would be a queue that small messages wait in.
	slackTime            = 10 * time.Millisecond
	leastSlack, capSlack = 12 << 10, 30 << 10
	// A lane starts, and may have startCap times its BDP in flight, until its rate has not grown by growth for this many round trips:
	// the delivery rate lags behind a window that doubles.
	startCap, steadyCap = 4, 1.5
	growth              = 1.25
	settledRounds       = 3
	// fullLink is how many times its BDP a link has in flight if a queue stands before it.
	fullLink = 1.2
	// silence is the least time without progress after which a lane that owes an answer is suspect.
	silence = 300 * time.Millisecond
)

// lane is one connection.
type lane struct {
	id   uint32
	path Path

	sent     []*item // numbered frames without acknowledgment, in order; the first has number acked
	acked    uint64
	received uint64    // numbered frames that came
	answered uint64    // that the other end was told of
	owed     int       // bytes that came since
	due      time.Time // when it is to be told

	rates           [2]float64 // largest delivery rates of this period and the last, bytes per second
	since           time.Time  // when this period began
	emptied         time.Time  // when no queue stood before the link
	used            time.Time  // when something was in flight
	busy            bool       // it has carried bulk data
	rested, restart bool       // it has been idle since; see Mux.Restart
	lift            lift

	grown   float64   // delivery rate when it last grew by growth
	rounds  int       // round trips since then; settledRounds = the link is full
	counted time.Time // when the last of them ended
	passed  uint64    // progress by then

	paces [2]pace // where the last two measurements of the pace began

	observed  time.Time // when path was
	progress  time.Time // when it last made progress or owed nothing
	suspect   bool
	suspected time.Time
	told      bool // the other end was told that it is suspect
	ping      bool // one must be sent
}

// observe takes in what the kernel says.
func (l *lane) observe(now time.Time, p Path) {
	if p.Progress != l.path.Progress || len(l.sent) == 0 && p.InFlight == 0 {
		l.progress = now
	}
	l.path, l.observed = p, now
	if now.Sub(l.paces[1].at) >= max(paceTime, p.RTT) {
		l.paces[0], l.paces[1] = l.paces[1], pace{now, p.Progress}
	}
	if p.InFlight > 0 {
		l.used = now
	} else if l.rested = l.busy && now.Sub(l.used) >= restTime; now.Sub(l.used) >= rateAge { // the link may have changed: it starts again
		l.rates, l.grown, l.rounds, l.lift = [2]float64{}, 0, 0, lift{}
	}
	full := l.full()
	if !full && float64(p.RTT) <= fullLink*float64(p.MinRTT) || p.InFlight == 0 {
		l.emptied = now
	}
	if !p.AppLimited || full {
		if now.Sub(l.since) >= rateAge/2 {
			l.rates[1], l.rates[0], l.since = l.rates[0], 0, now
		}
		l.rates[0] = max(l.rates[0], p.DeliveryRate)
	}
	l.settle(now)
	if l.rounds >= settledRounds {
		l.lift.observe(now, p, seconds(l.limit()/max(l.rates[0], l.rates[1], 1)))
	}
}

// full reports whether more is in flight than the link holds at the rate that is known. The cap keeps it below the congestion window,
// for which the kernel calls each rate limited by the application; a full link's rate is its own anyway.
func (l *lane) full() bool {
	most := max(l.rates[0], l.rates[1])
	return most > 0 && float64(l.path.InFlight) > fullLink*most*l.path.MinRTT.Seconds()
}

// begin notes that the lane carries bulk data.
func (l *lane) begin() {
	if l.rested {
		l.rested, l.restart, l.grown, l.rounds = false, true, 0, 0
	}
	l.busy = true
}

// Restart reports, once, that a lane carries bulk data after it was idle. What its congestion control knows of the link may be wrong by now.
func (m *Mux) Restart(id uint32) bool {
	l := m.lane(id)
	if l == nil || !l.restart {
		return false
	}
	l.restart = false
	return true
}

// settle finds out when the rate has stopped growing. Round trips in which little was sent tell nothing.
func (l *lane) settle(now time.Time) {
	most, took := max(l.rates[0], l.rates[1]), now.Sub(l.counted)
	switch {
	case l.rounds >= settledRounds || most == 0:
	case most >= growth*l.grown:
		l.grown, l.rounds, l.counted, l.passed = most, 0, now, l.path.Progress
	case took >= l.path.RTT:
		if float64(l.path.Progress-l.passed) >= most*took.Seconds()/2 {
			l.rounds++
		}
		l.counted, l.passed = now, l.path.Progress
	}
}

// rate returns how fast the lane can send, in bytes per second, 0 if it is not known. While little is in flight delivery rates
// say nothing of what it could do.
func (l *lane) rate() float64 {
	if l.path.RTT <= 0 {
		return 0
	}
	window := float64(l.path.CWnd) / l.path.RTT.Seconds()
	if most := max(l.rates[0], l.rates[1]); most > 0 {
		flying := float64(l.path.InFlight)
		if flying > fullLink*most*l.path.MinRTT.Seconds() && flying > 12*1448 {
			return most
		}
	}
	return window
}

// pace is how far a lane had got at some time.
type pace struct {
	at       time.Time
	progress uint64
}

// drains returns the rate at which the queue before the link has drained of late, infinite without a queue. The kernel's delivery
// rates are too high where acknowledgments come in bursts.
func (l *lane) drains(now time.Time) float64 {
	p := l.paces[0]
	if !p.at.After(l.emptied) {
		return math.Inf(1)
	}
	return float64(l.path.Progress-p.progress) / now.Sub(p.at).Seconds()
}

// drained returns after what time a lane will have delivered what it has sent, but for the last n bytes. Behind a missing packet, nothing
// is delivered before that was sent again.
func (l *lane) drained(now time.Time, n int) time.Duration {
	r := min(l.rate(), l.drains(now))
	left := float64(l.path.InFlight+l.path.Unsent-n) - r*l.path.MinRTT.Seconds()
	after := l.path.MinRTT/2 + min(seconds(max(0, left)/max(r, 1)), time.Minute)
	if l.path.Hole {
		after = max(after, l.path.RTT)
	}
	return after
}

// arrival returns after what time n more bytes will have arrived, estimated from what is in flight. The smoothed round trip
// would lag behind the queue.
func (l *lane) arrival(n int) time.Duration {
	r := l.rate()
	if r <= 0 {
		return 100 * time.Millisecond // nothing is known yet
	}
	least := l.path.MinRTT
	queued := max(0, float64(l.path.InFlight)-r*least.Seconds()) + float64(l.path.Unsent+n)
	return least/2 + seconds(queued/r)
}

// excess returns by how many bytes a lane exceeds its in-flight cap; not more than 0 = it may take bulk data.
func (l *lane) excess() float64 {
	limit := l.limit()
	if limit <= 0 {
		return 0
	}
	return float64(l.path.InFlight+l.path.Unsent) - l.lift.gain()*limit
}

// limit is the in-flight cap while it is not lifted, 0 = it is not known.
func (l *lane) limit() float64 {
	most := max(l.rates[0], l.rates[1])
	if most <= 0 {
		return 0
	}
	times := steadyCap
	if l.rounds < settledRounds {
		times = startCap
	}
	return times*most*l.path.MinRTT.Seconds() + min(max(most*slackTime.Seconds(), leastSlack), capSlack)
}

// frameSize returns how many bytes of data a frame gets: those of 8 ms.
func (l *lane) frameSize() int {
	return min(max(int(l.rate()*0.008), 2<<10), MaxData)
}

// silenceLimit returns after how long without progress the lane is suspect.
func (l *lane) silenceLimit() time.Duration { return max(silence, 2*l.path.RTT) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
