package sim

import (
	"math"
	"sort"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/estimate"
)

// Link describes a link and the path behind it.
type Link struct {
	Rate    float64       // bytes per second
	RTT     time.Duration // round-trip time without load
	Ramp    time.Duration // time from a third of the rate to the full rate, starting at the first byte
	Trace   []Rate        // replaces Rate if not empty; it repeats
	Jitter  time.Duration // additional delay, uniform in [0, Jitter) per step; order is kept
	Loss    float64       // probability that a packet is lost
	Reno    bool          // the origin controls congestion with Reno instead of CUBIC
	Queue   time.Duration // longest wait in the queue before the link; 0 = 100 ms
	Absent  bool          // the link is not present at the start
	Metered bool          // bytes on the link cost money
	// Links with the same Channel, unless it is 0, share one serial queue, as two radios share the air. The queue has
	// the rate, ramp, trace and length of the first of them.
	Channel int
	H2      bool // the origin speaks HTTP/2 over the link: requested bytes may wait in the process
	Lies    bool // the link delivers bytes of another object under the same headers
	Conns   int  // connections that the origin serves over the link, 0 = any number; further ones get 503
	Events  []LinkEvent

	Learned estimate.Entry // findings about the link at the start
	Radio   *energy.Radio  // energy cost of the link's bytes, which makes the link optional for a goal; nil = none
}

// Rate is a piece of a trace.
type Rate struct {
	For  time.Duration
	Rate float64 // bytes per second
}

// What is a kind of event on a link.
type What uint8

// The kinds of link events.
const (
	Blackhole What = iota // bytes vanish, the interface stays up
	Restore
	Gone // the interface goes down
	Back
	SetRate
)

// LinkEvent is one event on a link.
type LinkEvent struct {
	At   time.Duration
	What What
	Rate float64
}

// Mean returns the mean rate in bytes per second, without the ramp.
func (l *Link) Mean() float64 {
	if len(l.Trace) == 0 {
		return l.Rate
	}
	var bytes, length float64
	for _, r := range l.Trace {
		bytes += r.Rate * r.For.Seconds()
		length += r.For.Seconds()
	}
	return bytes / length
}

// peak returns the highest rate that the link ever has.
func (l *Link) peak() float64 {
	p := l.Rate
	for _, r := range l.Trace {
		p = max(p, r.Rate)
	}
	for _, e := range l.Events {
		p = max(p, e.Rate)
	}
	return p
}

func (l *Link) queue() time.Duration {
	if l.Queue == 0 {
		return queueTime
	}
	return l.Queue
}

// simLink is a serial queue: bytes leave it one after another.
type simLink struct {
	spec   Link
	length time.Duration   // length of the trace
	ends   []time.Duration // ends of the pieces of the trace
	air    *simLink        // link whose queue its bytes wait in: itself, or the first link of its Channel
	alive  bool
	busy   time.Duration // time until which the queue is busy
	first  time.Duration // start of the ramp; 0 = nothing sent yet
	conns  int           // connections that the origin has accepted
	sent   bucket        // what it sent over the link
	warm   time.Duration // time until which a probe's connection is kept; 0 = none
	others estimate.Others
	cross  int64 // other traffic as last reported to the machine
}

func newLink(spec Link) *simLink {
	l := &simLink{spec: spec, alive: true, cross: -1}
	l.air = l
	for _, r := range spec.Trace {
		l.length += r.For
		l.ends = append(l.ends, l.length)
	}
	return l
}

// rampStep is how often the rate of a ramp changes.
const rampStep = 50 * time.Millisecond

// rate returns the rate in bytes per second at a time, and the time until which that rate lasts.
func (l *simLink) rate(at time.Duration) (rate float64, until time.Duration) {
	switch {
	case l.length > 0:
		in := at % l.length
		i := sort.Search(len(l.ends), func(i int) bool { return l.ends[i] > in })
		return l.spec.Trace[i].Rate, at + l.ends[i] - in
	case l.spec.Ramp > 0 && at < l.first+l.spec.Ramp:
		return l.spec.Rate * (1./3 + 2./3*float64(at-l.first)/float64(l.spec.Ramp)), at + rampStep
	}
	return l.spec.Rate, math.MaxInt64
}

// step returns how many bytes move in one step: fewer on a slow link, whose bytes trickle.
func (l *simLink) step(now time.Duration) int64 {
	rate, _ := l.air.rate(now)
	return min(step, max(segmentSize, int64(rate*stepTime.Seconds())))
}

// send puts n bytes into the queue. It returns when the last of them leaves the queue, and whether the queue was full;
// if so, the bytes count as retransmissions of lost bytes.
func (l *simLink) send(now time.Duration, n int64) (at time.Duration, full bool) {
	l = l.air
	full = l.busy-now > l.spec.queue()
	at = max(l.busy, now)
	if l.first == 0 {
		l.first = at + 1
	}
	for left := float64(n); left > 0; {
		rate, until := l.rate(at)
		took := time.Duration(math.MaxInt64)
		if rate > 0 {
			took = time.Duration(left/rate*1e9) + 1
		}
		if until-at > took {
			at += took
			break
		}
		left -= rate * (until - at).Seconds()
		at = until
	}
	l.busy = at
	return at, full
}
