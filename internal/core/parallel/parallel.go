// Package parallel decides how many connections over one link pay off: for a transfer, and for the lanes to a relay. It
// is PURE: time is an argument.
//
// Reasons: docs/decisions/connections-per-link.md.
package parallel

import "time"

// Most is the largest number of connections over one link.
const Most = 4

// SampleEvery is the time between two samples of a connection.
const SampleEvery = 100 * time.Millisecond

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
	fullTrip  = 4
)

// Controller decides how many connections there are over one link. Each lost packet costs a single connection much of
// its rate, and slow start costs it round trips; several connections share the damage. But on a full link, another
// connection only gains a larger share, at the cost of other traffic and of the order of the bytes.
//
// It tries another connection while packets are lost, goodput dips and nothing queues in front of the link. The
// connection stays if the link's goodput rises by clearly more than noise.
type Controller struct {
	most   int  // limit from the configuration, or from an origin that refused more
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
}

type phase uint8

const (
	slowStart phase = iota
	steady
	trying // the last connection is on trial
)

// Begin starts with n connections, and allows up to most.
func (k *Controller) Begin(now time.Time, n, most int) {
	*k = Controller{most: max(most, 1), N: max(min(n, most), 1), rest: firstRest}
	k.enter(now, slowStart, 0)
}

func (k *Controller) enter(now time.Time, p phase, got int64) {
	k.phase, k.since, k.got = p, now, got
	k.samples, k.free, k.holed = 0, 0, 0
}

// Refused returns to one connection permanently: the origin does not accept several.
func (k *Controller) Refused() {
	k.most, k.N = 1, 1
	if k.phase == trying {
		k.phase = steady
	}
}

// Interrupted starts the phase again: the link was idle, so its goodput shows nothing.
func (k *Controller) Interrupted(now time.Time, got int64) { k.enter(now, k.phase, got) }

// Sample takes a sample of one connection: its smoothed round trip under the present load, and its shortest one. holes
// means that packets were lost since the previous sample. got is the total number of bytes that the link has delivered,
// recent and peak its recent and best goodput in bytes per second; matters means that more goodput would help.
func (k *Controller) Sample(now time.Time, rtt, least time.Duration, holes bool, got int64, recent, peak float64,
	matters bool,
) {
	if k.least == 0 || least < k.least {
		k.least = least
	}
	k.samples++
	if rtt-k.least < max(fullQueue, k.least/fullTrip) {
		k.free++
	}
	if holes {
		k.holed++
	}
	if k.phase == slowStart && k.climbs(now, recent) {
		return
	}
	took := now.Sub(k.since)
	if k.phase != slowStart && took < max(trialTime, trialTrips*k.least) {
		return
	}
	rate := float64(got-k.got) / took.Seconds()
	idle := 2*k.free > k.samples // nothing waited most of the time: the link could carry more
	switch k.phase {
	case slowStart:
		k.enter(now, steady, got)
	case steady:
		if idle && k.holed > 0 && rate < dipping*peak && k.N < k.most && matters && !now.Before(k.until) {
			k.before = rate
			k.N++
			k.enter(now, trying, got)
			return
		}
		k.enter(now, steady, got)
	case trying:
		if rate < worthwhile*k.before {
			k.N--
			k.until = now.Add(k.rest)
			k.rest = min(2*k.rest, lastRest)
		} else {
			k.rest = firstRest
		}
		k.Paid = int8(k.N)
		k.enter(now, steady, got)
	}
}

// climbs reports whether goodput still grows as in slow start, where it doubles with each round trip.
func (k *Controller) climbs(now time.Time, recent float64) bool {
	if now.Sub(k.looked) < max(k.least, SampleEvery) {
		return true
	}
	grows := recent > 1.2*k.height
	k.height, k.looked = recent, now
	return grows
}
