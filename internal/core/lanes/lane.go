package lanes

import (
	"math"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
)

// Path is what the kernel knows about a lane's connection. Sizes are in bytes.
type Path struct {
	RTT, MinRTT  time.Duration // smoothed and lowest so far; 0 = unknown
	CWnd         int           // congestion window
	InFlight     int           // sent and not acknowledged
	Unsent       int           // in the send buffer
	DeliveryRate float64       // over the last samples, in bytes per second
	AppLimited   bool          // DeliveryRate was limited by a lack of data to send
	Hole         bool          // the other end misses a packet, and holds those after it
	Progress     uint64        // bytes delivered, acknowledged selectively or not
	// congestion window that was returned to after a loss (ssthresh); 0 = unknown, or nothing was lost
	Threshold int64
	Model     bool // the congestion control follows a model of the link, as BBR does, and fills no queue
}

const (
	// rateAge is the least time for which the largest delivery rate counts.
	rateAge = 3 * time.Second
	// restTime is the idle time after which a lane measures again how much its link can carry.
	restTime = 200 * time.Millisecond
	// paceTime is the least time over which a lane's pace is measured.
	paceTime = 50 * time.Millisecond
	// How much a lane may have in flight beyond the multiple of its BDP, as room for delayed acknowledgments: the bytes
	// of slackTime, from leastSlack to capSlack, but at least those of fastSlack. More would be a queue that small
	// messages wait in. With less, a lane over a fast network with short round trips waits for the next acknowledgment
	// after each frame.
	slackTime            = 10 * time.Millisecond
	leastSlack, capSlack = 12 << 10, 30 << 10
	fastSlack            = 2 * time.Millisecond
	// A lane is starting, and may have startCap times its BDP in flight, until its rate has failed to grow by growth
	// for this many round trips: the delivery rate lags behind a window that doubles.
	startCap, steadyCap = 4, 1.5
	growth              = 1.25
	settledRounds       = 3
	// fullLink is how many times its BDP a link has in flight if a queue has formed in front of it.
	fullLink = 1.2
)

// lane is one connection.
type lane struct {
	id   uint32
	path Path

	sent     []*item // unacknowledged numbered frames, in order; the first has number acked
	acked    uint64
	received uint64    // numbered frames that arrived
	answered uint64    // those acknowledged to the other end
	owed     int       // bytes received since then
	due      time.Time // when the next acknowledgment is due

	rates           [2]float64 // largest delivery rates of this period and the previous one, bytes per second
	since           time.Time  // when this period began
	emptied         time.Time  // when the link last had no queue in front of it
	used            time.Time  // when something was last in flight
	busy            bool       // it has carried bulk data
	rested, restart bool       // it has been idle since then; see Mux.Restart
	probe           capProbe
	underuse        underuse

	grown   float64   // delivery rate when it last grew by growth
	rounds  int       // round trips since then; settledRounds = the link is full
	counted time.Time // when the last of them ended
	passed  uint64    // progress at that time

	paces [2]pace // starts of the last two pace measurements

	observed  time.Time // when path was taken
	progress  time.Time // when the lane last made progress or owed nothing
	suspect   bool
	suspected time.Time
	told      bool // the other end was told that the lane is suspect
	ping      bool // a Ping must be sent
}

// observe records the kernel's figures.
func (l *lane) observe(now time.Time, p Path) {
	if p.Progress != l.path.Progress || len(l.sent) == 0 && p.InFlight == 0 {
		l.progress = now
	}
	if p.Model != l.path.Model { // it looks for the link's rate again
		l.probe, l.grown, l.rounds = capProbe{}, 0, 0
	}
	l.path, l.observed = p, now
	if now.Sub(l.paces[1].at) >= max(paceTime, p.RTT) {
		l.paces[0], l.paces[1] = l.paces[1], pace{now, p.Progress}
	}
	if p.InFlight > 0 {
		l.used = now
		// the link may have changed: start again
	} else if l.rested = l.busy && now.Sub(l.used) >= restTime; now.Sub(l.used) >= rateAge {
		l.rates, l.grown, l.rounds, l.probe = [2]float64{}, 0, 0, capProbe{}
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
	l.underuse.observe(p, l.fastest())
	l.settle(now)
	if l.rounds >= settledRounds {
		l.probe.observe(now, p, seconds(l.limit()/max(l.fastest(), 1)))
	}
}

// fastest returns the largest delivery rate of late, in bytes per second, 0 if unknown.
func (l *lane) fastest() float64 { return max(l.rates[0], l.rates[1]) }

// full reports whether more is in flight than the link holds at its known rate. The cap keeps the data in flight below
// the congestion window, so the kernel calls each rate limited by the application; on a full link, the rate is the
// link's anyway.
func (l *lane) full() bool {
	most := l.fastest()
	return most > 0 && float64(l.path.InFlight) > fullLink*most*l.path.MinRTT.Seconds()
}

// begin records that the lane carries bulk data.
func (l *lane) begin() {
	if l.rested {
		l.rested, l.restart, l.grown, l.rounds = false, true, 0, 0
	}
	l.busy = true
}

// Restart reports, once, that a lane carries bulk data after it was idle. What its congestion control knows about the
// link may be out of date.
func (m *Mux) Restart(id uint32) bool {
	l := m.lane(id)
	if l == nil || !l.restart {
		return false
	}
	l.restart = false
	return true
}

// settle detects when the rate has stopped growing. Round trips in which little was sent do not count.
func (l *lane) settle(now time.Time) {
	most, took := l.fastest(), now.Sub(l.counted)
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

// rate returns how fast the lane can send, in bytes per second, 0 if unknown. While little is in flight, delivery rates
// do not show what the lane could do.
func (l *lane) rate() float64 {
	if l.path.RTT <= 0 {
		return 0
	}
	window := float64(l.path.CWnd) / l.path.RTT.Seconds()
	if most := l.fastest(); most > 0 {
		flying := float64(l.path.InFlight)
		if flying > fullLink*most*l.path.MinRTT.Seconds() && flying > 12*1448 {
			return most
		}
	}
	return window
}

// pace is a lane's progress at some time.
type pace struct {
	at       time.Time
	progress uint64
}

// drains returns the rate at which the queue in front of the link drained recently, infinite without a queue. The
// kernel's delivery rates are too high where acknowledgments arrive in bursts.
func (l *lane) drains(now time.Time) float64 {
	p := l.paces[0]
	if !p.at.After(l.emptied) {
		return math.Inf(1)
	}
	return float64(l.path.Progress-p.progress) / now.Sub(p.at).Seconds()
}

// drained returns how long a lane will take to deliver everything it has sent except the last n bytes. Data behind a
// missing packet is not delivered before that packet is sent again.
func (l *lane) drained(now time.Time, n int) time.Duration {
	r := min(l.rate(), l.drains(now))
	left := float64(l.path.InFlight+l.path.Unsent-n) - r*l.path.MinRTT.Seconds()
	after := l.path.MinRTT/2 + min(seconds(max(0, left)/max(r, 1)), time.Minute)
	if l.path.Hole {
		after = max(after, l.path.RTT)
	}
	return after
}

// arrival returns how long n more bytes will take to arrive, estimated from the data in flight. The smoothed round trip
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

// excess returns by how many bytes a lane exceeds its in-flight cap; 0 or less = it may take bulk data.
func (l *lane) excess() float64 {
	limit := l.limit()
	if limit <= 0 {
		return 0
	}
	return float64(l.path.InFlight+l.path.Unsent) - l.probe.gain()*limit
}

// limit is the in-flight cap while it is not lifted, in bytes, 0 = unknown.
func (l *lane) limit() float64 {
	most := l.fastest()
	if most <= 0 {
		return 0
	}
	times := steadyCap
	if l.rounds < settledRounds {
		times = startCap
	}
	slack := max(min(most*slackTime.Seconds(), capSlack), most*fastSlack.Seconds(), leastSlack)
	return times*most*l.path.MinRTT.Seconds() + slack
}

// frameSize returns how many bytes of data a frame gets: what the lane sends in 8 ms.
func (l *lane) frameSize() int {
	return min(max(int(l.rate()*0.008), 2<<10), MaxData)
}

// silenceLimit returns the time without progress after which the lane is suspect.
func (l *lane) silenceLimit() time.Duration { return max(health.SuspectAfter, 2*l.path.RTT) }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
