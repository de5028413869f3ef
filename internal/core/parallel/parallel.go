// Package parallel decides how many connections over one link pay off: for a transfer, and for the lanes to a relay. It
// is PURE: time is an argument.
//
// Reasons: docs/decisions/connections-per-link.md.
package parallel

import "time"

// Most is the largest number of connections over one link where losses slow each of them down.
const Most = 4

// SampleEvery is the time between two samples of a connection.
const SampleEvery = 100 * time.Millisecond

// Long is how much longer a transfer must last for a trial of another connection, which pays off only after the trial.
// Where the origin limits each connection, a shorter time is enough.
const Long = 4 * time.Second

const (
	// A trial of one more connection lasts for this time and this many round trips, so that the connection has left
	// slow start.
	trialTime  = 400 * time.Millisecond
	trialTrips = 8

	// dipping is the goodput of a connection that losses slow down, relative to its peak. Congestion control that does
	// not take each loss for congestion, such as BBR, stays above it.
	dipping = 0.85

	// worthwhile is the factor by which a further connection must raise a link's goodput to stay.
	worthwhile = 1.08

	// firstRest and lastRest bound the time after a failed trial without another; it doubles each time.
	firstRest = 2 * time.Second
	lastRest  = 30 * time.Second

	// A link is full when packets wait in front of it for longer than fullQueue and longer than the round trip divided
	// by fullTrip.
	fullQueue = 8 * time.Millisecond
	fullTrip  = 8
)

// Controller decides how many connections there are over one link. Each lost packet costs a single connection much of
// its rate, and slow start costs it round trips; several connections share the damage. But on a full link, another
// connection only gains a larger share, at the cost of other traffic and of the order of the bytes.
//
// It tries another connection while packets are lost, goodput dips and nothing queues in front of the link. The
// connection stays if the link's goodput rises by clearly more than noise.
//
// Where the origin limits each connection, it doubles their number: see limit.
type Controller struct {
	// limits from the caller, or from an origin that refused more: where losses slow connections down, and where the
	// origin limits each
	most, mostLimited int

	N      int  // connections wanted now
	Paid   int8 // connections that paid off in the last trial; 0 = no trial yet
	phase  phase
	since  time.Time     // start of the phase
	got    int64         // bytes that the link had delivered by then
	before float64       // bytes per second without the connection on trial
	rest   time.Duration // pause after the next failed trial
	until  time.Time     // no trial before then

	height  float64       // goodput one round trip ago, in slow start
	looked  time.Time     // when height was set
	least   time.Duration // shortest round trip
	samples int           // samples in this phase
	free    int           // those with nothing waiting in front of the link
	holed   int           // those with new holes

	limit limit
}

type phase uint8

const (
	slowStart phase = iota
	steady
	trying   // the last connection is on trial
	doubling // the last half of the connections is on trial, because the origin limits each
)

// Sample is what is known about a connection and its link at one time.
type Sample struct {
	RTT   time.Duration // smoothed round trip under the present load
	Least time.Duration // shortest round trip
	// Data is the round trip of arriving bytes under the present load, as the receiver sees it; 0 = unknown. Unlike RTT
	// it does not count the time that an origin with delayed acknowledgments takes to answer a request.
	Data   time.Duration
	Holes  bool          // packets were lost since the previous sample
	Silent time.Duration // of the time since the previous sample, pauses that no round trip explains
	Gap    time.Duration // since then, the longest time between two reads

	Link // the same for each connection of a link
}

// Link is the state of a link.
type Link struct {
	Got     int64         // total number of bytes delivered
	Working int           // connections that deliver
	Streams int           // responses that arrive on them at the same time, over HTTP/2
	Recent  float64       // goodput in bytes per second
	Others  float64       // goodput of the other links
	Peak    float64       // best goodput, in bytes per second
	Lasts   time.Duration // how long the transfer still takes at the present rate, 0 = more goodput would not help
	Limit   float64       // bytes per second to which the origin limits each connection over other links, 0 = unknown
	Conns   int           // connections over such a link
}

// Begin starts with n connections, and allows up to most, where the origin limits each connection up to mostLimited.
// each is the limit if it is known, 0 otherwise.
func (k *Controller) Begin(now time.Time, n, most, mostLimited int, each float64) {
	most = max(most, 1)
	*k = Controller{
		most: most, mostLimited: mostLimited, N: max(min(n, max(most, mostLimited)), 1), rest: firstRest,
	}
	k.limit.each = each
	k.enter(now, slowStart, 0)
	k.limit.restart(now, 0)
	k.limit.rest = firstRest
}

func (k *Controller) enter(now time.Time, p phase, got int64) {
	k.phase, k.since, k.got = p, now, got
	k.samples, k.free, k.holed = 0, 0, 0
}

// Refused returns to one connection permanently: the origin does not accept several.
func (k *Controller) Refused() {
	k.most, k.mostLimited, k.N = 1, 1, 1
	if k.phase != slowStart {
		k.phase = steady
	}
}

// Interrupted starts the phase again: the link was idle, so its goodput shows nothing.
func (k *Controller) Interrupted(now time.Time, got int64) {
	k.enter(now, k.phase, got)
	k.limit.restart(now, got)
	k.limit.begun, k.limit.all = now, time.Time{}
}

// Sample takes a sample of one connection.
func (k *Controller) Sample(now time.Time, s Sample) {
	for _, trip := range [...]time.Duration{s.Least, s.Data} {
		if trip > 0 && (k.least == 0 || trip < k.least) {
			k.least = trip
		}
	}
	if k.doubles(now, s) {
		return
	}
	k.samples++
	if s.RTT-k.least < k.queue() {
		k.free++
	}
	if s.Holes {
		k.holed++
	}
	if k.phase == slowStart && k.climbs(now, s.Recent) {
		return
	}
	took := now.Sub(k.since)
	if k.phase != slowStart && took < max(trialTime, trialTrips*k.least) {
		return
	}
	rate := float64(s.Got-k.got) / took.Seconds()
	idle := 2*k.free > k.samples // nothing waited most of the time: the link could carry more
	switch k.phase {
	case steady:
		if idle && k.holed > 0 && rate < dipping*s.Peak && k.N < k.most && s.Lasts >= Long &&
			!now.Before(k.until) {
			k.before = rate
			k.N++
			k.enter(now, trying, s.Got)
			return
		}
	case trying:
		if rate < worthwhile*k.before {
			k.N--
			k.until = now.Add(k.rest)
			k.rest = min(2*k.rest, lastRest)
		} else {
			k.rest = firstRest
		}
		k.Paid = int8(k.N)
	}
	k.enter(now, steady, s.Got)
}

// queue returns how much longer than the shortest a round trip over a full link takes at least.
func (k *Controller) queue() time.Duration { return max(fullQueue, k.least/fullTrip) }

// climbs reports whether goodput still grows as in slow start, where it doubles with each round trip.
func (k *Controller) climbs(now time.Time, recent float64) bool {
	if now.Sub(k.looked) < max(k.least, SampleEvery) {
		return true
	}
	grows := recent > 1.2*k.height
	k.height, k.looked = recent, now
	return grows
}
