package parallel

import (
	"cmp"
	"slices"
	"time"
)

// MostLimited is the largest number of connections over one link where the origin limits each of them.
const MostLimited = 8

const (
	// A window is this long, this many round trips, and this many times the longest gap between two reads.
	windowTime  = 90 * time.Millisecond
	windowTrips = 2
	windowGaps  = 4

	// steadyFor is how many windows in a row have the same goodput if the link's goodput is limited, and flat is the
	// largest difference between two of them, as a share, in addition to the piece after a gap.
	steadyFor = 3
	flat      = 0.15

	// pausing is the share of the time that a connection pauses at least if its origin sends a piece and then waits.
	// Then pausesFor windows are enough.
	pausing   = 0.5
	pausesFor = 2

	// A link is like another one, where the origin limits each connection, if its connections have this part of their
	// goodput.
	alikeLeast, alikeMost = 0.6, 1.4

	// below is the goodput, relative to that at which the link was last full, above which the link may be the limit.
	below = 0.6

	// leastQueue is the shortest queue that shows in the round trip: BBR fills one of one or two round trips.
	leastQueue = 2 * time.Millisecond

	// heldBack is the shortest gap between two reads for which an origin may be the cause.
	heldBack = 8 * time.Millisecond

	// someQueued is how many samples in a row show that the link was full: BBR fills it only for some round trips.
	someQueued = 2

	// filledFor is how long a full link is remembered, and holesFor how long losses are, after which congestion control
	// may be the limit.
	filledFor = 30 * time.Second
	holesFor  = 2 * time.Second

	// pays is the least part of what further connections bring if each is limited to the same goodput.
	pays = 0.5

	// growing is the least growth of the goodput from window to window while connections on trial are in slow start.
	growing = 1.1

	// slowly is how much the limit of a connection grows from window to window at most: a new connection may begin with
	// a burst.
	slowly = 1.1

	// newcomers is how long connections on trial may take until all deliver, in addition to newcomerTrips round trips.
	newcomers     = time.Second
	newcomerTrips = 8

	// worthDoubling is how much longer a transfer must last for such a trial.
	worthDoubling = 1500 * time.Millisecond
)

// limit finds out whether the origin limits the goodput of each connection, as many file hosts do. Then nothing queues
// in front of the link, nothing is lost and goodput is flat, at less than what the link carried when it was last full;
// or the connection pauses most of the time. A full link looks like this only with congestion control that keeps no
// queue, such as BBR, and even that fills a queue in its first round trips.
type limit struct {
	since   time.Time // start of the window
	got     int64     // bytes that the link had delivered by then
	samples int       // in this window
	queued  int       // those with a queue in front of the link
	some    bool      // someQueued of them in a row
	silent  time.Duration
	longest time.Duration // gap between two reads

	rates  [steadyFor]float64 // goodput of the last windows in bytes per second, the latest first; 0 = none
	row    int                // samples with a queue in a row
	holes  time.Time          // when packets were last lost
	filled float64            // goodput when the link was last full, 0 = never
	full   time.Time          // when that was

	rest   time.Duration // pause after the next trial that fails
	until  time.Time     // no trial before then
	old    int           // connections before those on trial
	begun  time.Time     // when the trial began
	all    time.Time     // when all connections on trial had begun to deliver; zero = not yet
	had    int64         // bytes that the link had delivered by then
	alone  float64       // goodput before the trial
	others float64       // goodput of the other links then
	worked int           // connections that delivered it
	shares int           // responses that arrived on them at the same time
	each   float64       // bytes per second to which the origin limits each connection, 0 = no limit was found
}

func (m *limit) restart(now time.Time, got int64) {
	m.since, m.got = now, got
	m.samples, m.queued, m.some, m.silent, m.longest = 0, 0, false, 0, 0
}

// steady reports whether the goodput of the last n windows was the same but for a share.
func (m *limit) steady(n int, share float64) bool {
	least, most := slices.Min(m.rates[:n]), slices.Max(m.rates[:n])
	return least > 0 && least > (1-share)*most
}

// Limit returns to how many bytes per second the origin limits each connection, 0 if no limit was found.
func (k *Controller) Limit() float64 { return k.limit.each }

// Each is like Limit, and includes the limit that a trial assumes.
func (k *Controller) Each() float64 {
	if m := &k.limit; k.phase == doubling && m.each == 0 {
		return m.alone / float64(m.worked)
	}
	return k.limit.each
}

// Doubling reports whether connections are on trial because the origin may limit each.
func (k *Controller) Doubling() bool { return k.phase == doubling }

// Queued ends a trial if packets wait in front of the link, as the round trip of a further connection's handshake
// shows. It returns false if none do, or if they are those of other connections on trial: goodput, now recent bytes per
// second, has risen.
func (k *Controller) Queued(now time.Time, trip time.Duration, recent float64) bool {
	if k.phase != doubling || trip-k.least < k.queue() || recent > (1+pays)*k.limit.alone {
		return false
	}
	k.withdraw(now, true)
	return true
}

// withdraw ends a trial of further connections without success, maybe because the link is full.
func (k *Controller) withdraw(now time.Time, full bool) {
	m := &k.limit
	if full {
		m.filled, m.full = m.alone, now
	}
	k.N, m.until = m.old, now.Add(m.rest)
	m.rest = min(2*m.rest, lastRest)
	k.enter(now, steady, m.got)
}

// doubles takes a sample of one connection, and decides about a trial of twice as many connections. It reports whether
// one is under way, so that losses begin none.
func (k *Controller) doubles(now time.Time, s Sample) bool {
	m := &k.limit
	if k.phase == doubling && m.all.IsZero() {
		switch m.restart(now, s.Got); {
		case s.Working >= k.N:
			m.all, m.had = now, s.Got
		case now.Sub(m.begun) > newcomers+newcomerTrips*k.least: // the origin lets them wait
			k.Refused()
		}
		return k.phase == doubling
	}
	m.samples++
	m.silent += s.Silent
	m.longest = max(m.longest, s.Gap)
	if m.row++; k.queues(s) {
		m.queued++
	} else {
		m.row = 0
	}
	m.some = m.some || m.row >= someQueued
	if s.Holes {
		m.holes = now
	}
	took := now.Sub(m.since)
	pauses := m.silent.Seconds() >= pausing*took.Seconds()*float64(max(1, s.Working))
	full := !pauses && 2*m.queued > m.samples
	may := k.phase != trying && k.phase != doubling && !full && now.Sub(m.holes) >= holesFor
	more := may && k.N < k.mostLimited && !now.Before(m.until)
	if likely := s.Limit * float64(k.N); more && s.Conns > k.N && m.notFilled(s.Recent) &&
		s.Recent > alikeLeast*likely && s.Recent < alikeMost*likely {
		k.double(now, min(s.Conns, k.mostLimited), s.Recent, s)
		return true
	}
	if took < max(windowTime, windowTrips*k.least, windowGaps*m.longest) {
		return k.phase == doubling
	}
	rate := float64(s.Got-m.got) / took.Seconds()
	piece := m.longest.Seconds() / took.Seconds()
	some := m.some
	m.restart(now, s.Got)
	copy(m.rates[1:], m.rates[:])
	m.rates[0] = rate
	if !pauses && some {
		m.filled, m.full = rate, now
	}
	if m.each > 0 && !full && k.phase != doubling {
		m.each = min(rate/float64(max(1, s.Working)), slowly*m.each)
	}
	if now.Sub(m.full) > filledFor {
		m.filled = 0
	}
	if k.phase == doubling {
		k.judge(now, s, full, took)
		return k.phase == doubling
	}
	if may && m.notFilled(rate) && (m.steady(steadyFor, flat+piece) || pauses && m.steady(pausesFor, flat+piece) ||
		m.slowed(rate, s.Working)) {
		if k.N > 1 && m.each == 0 { // found without a trial
			m.each = rate / float64(max(1, s.Working))
		}
		if more && s.Lasts > worthDoubling {
			k.double(now, min(2*max(k.N, s.Streams), k.mostLimited), (m.rates[0]+m.rates[1])/2, s)
		}
	}
	return k.phase == doubling
}

// queues reports whether a sample shows packets that wait in front of the link. Bytes that the origin holds back look
// like them.
func (k *Controller) queues(s Sample) bool {
	waited := cmp.Or(s.Data, s.RTT) - k.least
	if s.Gap >= heldBack {
		waited -= s.Gap
	}
	return waited >= max(k.least/fullTrip, min(fullQueue, max(leastQueue, k.least/2)))
}

// slowed reports whether a rate is what so many connections have by a known limit, after their first bursts.
func (m *limit) slowed(rate float64, working int) bool {
	return m.each > 0 && rate < (1+flat)*m.each*float64(working)
}

// notFilled reports whether the link has carried clearly more than a rate when it was full.
func (m *limit) notFilled(rate float64) bool { return m.filled == 0 || rate < below*m.filled }

// double begins a trial of n connections instead of those that deliver rate. Over HTTP/2 the origin may limit each
// response instead, so there are more than the responses that arrived at the same time.
func (k *Controller) double(now time.Time, n int, rate float64, s Sample) {
	m := &k.limit
	m.old, m.begun, m.alone, m.others, m.worked = k.N, now, rate, s.Others, max(1, s.Working)
	if m.shares = max(m.worked, s.Streams); m.each > 0 {
		m.alone = min(m.alone, m.each*float64(m.worked))
	}
	k.N, m.all = n, time.Time{}
	k.phase = doubling
	clear(m.rates[:])
}

// judge ends a trial if it can. took is how long its last window was.
func (k *Controller) judge(now time.Time, s Sample, full bool, took time.Duration) {
	m := &k.limit
	since := now.Sub(m.all)
	rate, more := m.rates[0], float64(k.N-m.shares)/float64(m.shares)
	mean := float64(s.Got-m.had) / since.Seconds()
	taken := max(0, m.others-s.Others) // from other links, if the origin limits all connections together
	switch {
	case max(rate, mean)-taken >= (1+pays*more)*m.alone:
		m.each, m.rest, k.Paid = min(k.Each(), max(rate, mean)/float64(k.N)), firstRest, int8(k.N)
		if k.enter(now, steady, s.Got); !full && m.slowed(rate, s.Working) && k.N < k.mostLimited &&
			s.Lasts > worthDoubling {
			k.double(now, min(2*k.N, k.mostLimited), max(rate, mean), s)
		}
	case m.rates[1] > 0 && rate < growing*m.rates[1] && since >= 2*max(trialTime/2, took):
		k.withdraw(now, full)
		k.Paid = int8(k.N)
	}
}
