package transfer

import (
	"time"

	"github.com/tributary-http/tributary/internal/estimate"
)

// PathSample is what the kernel knows of a connection (TCP_INFO), and PING over HTTP/2. A receiver does not see the sender's
// congestion window; it sees round trips, and holes in what arrives.
type PathSample struct {
	RTT   time.Duration // smoothed, under the present load; 0 = the kernel cannot be asked
	Least time.Duration // the shortest one since the connection was made
	Delay time.Duration // of a response that is asked for now, behind all that is queued; 0 = nothing new was measured
	Holes int64         // packets that have arrived behind a missing one
}

// MostConns is how many connections a transfer may have over a link, in Config.
const MostConns = 4

// SampleEvery is the time between two samples of a connection, see Sampled.
const SampleEvery = 100 * time.Millisecond

const (
	// worthSeveral is how many bytes of an object must be left for further connections to repay their handshakes.
	worthSeveral = 1 << 20

	// leastShare is the share of all goodput below which a link gets one connection: it decides nothing.
	leastShare = 0.05

	// A trial of one more connection lasts for so long and so many round trips: it has left slow start then.
	trialTime  = 400 * time.Millisecond
	trialTrips = 8

	// worthTrying is how much longer a transfer must last for a trial: where the connection pays off, it does so afterwards.
	worthTrying = 4 * time.Second

	// dipping is the goodput of a connection that losses slow down, relative to its peak. Congestion control that does not take
	// each loss for congestion, such as BBR, stays above it.
	dipping = 0.85

	// worthwhile is how much a further connection must raise a link's goodput to stay.
	worthwhile = 1.08

	// firstRest and lastRest bound the time after a trial in vain without another; it doubles.
	firstRest = 2 * time.Second
	lastRest  = 30 * time.Second

	// fullQueue and a fullTrip-th of the round trip: a link is full when packets wait in front of it for longer.
	fullQueue = 8 * time.Millisecond
	fullTrip  = 4
)

// connections decides how many connections a transfer has over one link. Each lost packet costs a lone connection much of its
// rate, and slow start costs it round trips; several share the damage. Where the link is full, though, a further one gains
// nothing but a larger share, at the cost of others and of the order of the bytes.
//
// One more is tried while packets are lost, goodput dips and nothing queues in
// front of the link. It stays if the link's goodput rose by clearly more than noise. Nothing is tried where pipelining does not
// work, since the link has several connections anyway, nor close to the end.
type connections struct {
	most   int  // by configuration, or because the origin refused more
	n      int  // wanted now
	paid   int8 // by the last trial; 0 = there was none
	phase  phase
	since  time.Time     // of the phase
	got    int64         // bytes that the link had brought then
	before float64       // bytes per second without the connection on trial
	rest   time.Duration // after the next trial in vain
	until  time.Time     // before that no trial

	height  float64       // goodput one round trip ago, in slow start
	looked  time.Time     // then
	least   time.Duration // round trip
	samples int           // in this phase
	free    int           // of these, with nothing waiting in front of the link
	holed   int           // of these, with new holes
}

type phase uint8

const (
	slowStart phase = iota
	steady
	trying // the last connection is on trial
)

// begin starts with n connections, of most at most.
func (k *connections) begin(now time.Time, n, most int) {
	*k = connections{most: max(most, 1), n: max(min(n, most), 1), rest: firstRest}
	k.enter(now, slowStart, 0)
}

func (k *connections) enter(now time.Time, p phase, got int64) {
	k.phase, k.since, k.got = p, now, got
	k.samples, k.free, k.holed = 0, 0, 0
}

// refused goes back to one connection for good: the origin does not want several.
func (k *connections) refused() {
	k.most, k.n = 1, 1
	if k.phase == trying {
		k.phase = steady
	}
}

// interrupted begins the phase anew: the link rested, so that its goodput shows nothing.
func (k *connections) interrupted(now time.Time, got int64) { k.enter(now, k.phase, got) }

// sample takes a sample of one connection. holes says that packets were lost since the one before. got is what the link has brought
// in all, recent and peak its goodput of late and at best in bytes per second; matters says that more of it would help.
func (k *connections) sample(now time.Time, s PathSample, holes bool, got int64, recent, peak float64, matters bool) {
	if k.least == 0 || s.Least < k.least {
		k.least = s.Least
	}
	k.samples++
	if s.RTT-k.least < max(fullQueue, k.least/fullTrip) {
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
	idle := 2*k.free > k.samples // most of the time nothing waited: the link could carry more
	switch k.phase {
	case slowStart:
		k.enter(now, steady, got)
	case steady:
		if idle && k.holed > 0 && rate < dipping*peak && k.n < k.most && matters && !now.Before(k.until) {
			k.before = rate
			k.n++
			k.enter(now, trying, got)
			return
		}
		k.enter(now, steady, got)
	case trying:
		if rate < worthwhile*k.before {
			k.n--
			k.until = now.Add(k.rest)
			k.rest = min(2*k.rest, lastRest)
		} else {
			k.rest = firstRest
		}
		k.paid = int8(k.n)
		k.enter(now, steady, got)
	}
}

// climbs reports whether goodput still grows as in slow start, where it doubles with each round trip.
func (k *connections) climbs(now time.Time, recent float64) bool {
	if now.Sub(k.looked) < max(k.least, SampleEvery) {
		return true
	}
	grows := recent > 1.2*k.height
	k.height, k.looked = recent, now
	return grows
}

// spread decides with how many connections each link starts: one, or as many as paid off in an earlier transfer. A second one
// from the start halves a cubic origin's slow start, but two flows of BBR overflow the queue in front of a short transfer's link
// again and again: 4 MB over 5 + 10 Mbit/s gain 2 % with the one and lose 3 % with the other.
func (m *Machine) spread(now time.Time) {
	left := m.led.End() - m.led.Offset()
	for i := range m.links {
		l := &m.links[i]
		n := 1
		if l.learned > 0 && left >= worthSeveral && !l.metered && l.pipelining != estimate.Broken {
			n = int(l.learned)
		}
		l.parallel.begin(now, n, m.cfg.MostConns)
	}
}

// sampled takes a sample of a connection's path.
func (m *Machine) sampled(now time.Time, e Event) {
	c := m.conn(e.Conn)
	if c == nil {
		return
	}
	l := &m.links[c.link]
	if c.answering && e.Path.Delay > 0 { // else it is not that of the present load
		l.delay = e.Path.Delay
	}
	if !m.known || e.Path.RTT == 0 {
		return
	}
	holes := e.Path.Holes > c.holes
	c.holes = e.Path.Holes
	if !l.busy || l.silent {
		l.parallel.interrupted(now, l.got)
		return
	}
	var sum float64
	for i := range m.links {
		sum += m.links[i].rate.PerSecond(now)
	}
	rate := l.rate.PerSecond(now)
	matters := !l.metered && rate >= leastShare*sum
	lasts := float64(m.led.End()-m.led.Offset()) > sum*worthTrying.Seconds()
	l.parallel.sample(now, e.Path, holes, l.got, rate, l.rate.Peak(), matters && lasts && l.pipelining != estimate.Broken)
}
