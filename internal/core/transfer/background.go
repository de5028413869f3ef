package transfer

import (
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

const (
	// yieldTarget, or 1/yieldTrip of the round trip if that is longer, is how long the bytes of a background transfer
	// may queue in front of a link, in addition to yieldBytes, a few packets that queue anyway. Half of it ends slow
	// start. Each round trip of a page that starts to load takes that much longer, but with a smaller target a link
	// whose delay varies by some milliseconds is not filled.
	yieldTarget = 6 * time.Millisecond
	yieldTrip   = 8
	yieldBytes  = 8 << 10

	// firstWindow is how many bytes may be outstanding (requested and not received) at first, and leastWindow how many
	// behind a long queue. leastRange is the shortest range that is requested: behind a long queue, one every few round
	// trips.
	firstWindow = 32 << 10
	leastWindow = 1 << 10
	leastRange  = 8 << 10

	// yieldStart is the factor by which the window grows with each response in slow start, and yieldGain the part by
	// which it grows afterwards in each tenth of a second without any queue; at most mostGrowth tenths count at once.
	yieldStart = 1.5
	yieldGain  = 0.1
	mostGrowth = 2

	// yieldPause is how long a window does not grow after other traffic filled the queue: a page that loads requests
	// nothing now and then. After the pause, each response lets the window grow as in slow start, up to yieldBack of
	// the bytes that fill the link.
	yieldPause = 600 * time.Millisecond
	yieldBack  = 0.5

	// yieldRoom is how many bytes of a link's rate are left to other traffic for each byte that it receives: a page's
	// first round trips bring little. While there is other traffic, even an occasional packet, nothing queues: at most
	// yieldCalm of the bytes that fill the link are outstanding.
	yieldRoom = 8
	yieldCalm = 0.85
)

// yielding keeps a background transfer out of the way of other traffic over a link: LEDBAT (RFC 6817) as far as a
// receiver can implement it. A receiver does not see the sender's congestion window, but only requested bytes arrive.
// So yielding bounds the outstanding bytes: those requested and not received. The bound grows while little queues in
// front of the link, judging by the time from a request to the head of its response, and shrinks, by half in a round
// trip at most, while more does. Other traffic that fills the queue thus gets all but leastWindow of each round trip.
// If the rate of other traffic is known, it lowers the bound, too, before a queue shows.
//
// An origin whose thinking time varies by more than yieldTarget looks like a queue, so the transfer is slow there.
type yielding struct {
	window float64          // bytes
	delays [3]time.Duration // of the last responses; the shortest counts, since an origin thinks now and then
	least  time.Duration    // shortest delay of all responses
	steady bool             // slow start has ended
	looked time.Time        // when the last response arrived
	next   time.Time        // nothing more is requested before
	shrunk time.Time
	room   float64 // bytes that other traffic leaves to the transfer, while beside
	beside bool    // there is other traffic
}

// outstanding returns how many bytes may be requested and not received.
func (y *yielding) outstanding() int64 {
	if y.window == 0 {
		return firstWindow
	}
	return max(int64(y.allowed()), leastRange)
}

// allowed returns the window, or the part of it that other traffic leaves.
func (y *yielding) allowed() float64 {
	if y.beside {
		return max(leastWindow, min(y.window, y.room))
	}
	return y.window
}

// crossTraffic handles the rate of other traffic over the link, in bytes per second: see CrossTraffic.
func (y *yielding) crossTraffic(now time.Time, others int64, peak float64) {
	was := y.beside
	if y.beside = others >= 0 && y.least > 0 && peak > 0; y.beside {
		y.room = min(yieldCalm*peak, peak-yieldRoom*float64(others)) * y.least.Seconds()
		y.pace(now, y.least)
	} else if was { // the queue was theirs
		y.shrunk, y.next = time.Time{}, now
		y.window = max(y.window, yieldBack*peak*y.least.Seconds())
	}
}

// pace spaces out requests that are larger than the allowed window.
func (y *yielding) pace(now time.Time, trip time.Duration) {
	y.next = now
	if w := y.allowed(); w < leastRange {
		y.next = now.Add(time.Duration((leastRange/w - 1) * float64(trip)))
	}
}

// responded handles the time from a request to the head of its response. peak is the best goodput of the link in bytes
// per second.
func (y *yielding) responded(now time.Time, delay time.Duration, peak float64) {
	if y.least == 0 || delay < y.least {
		y.least = delay
	}
	if y.looked.IsZero() {
		y.looked = now
		for i := range y.delays {
			y.delays[i] = delay
		}
	}
	copy(y.delays[1:], y.delays[:])
	y.delays[0] = delay
	delay = slices.Min(y.delays[:])
	target := max(yieldTarget, y.least/yieldTrip)
	if peak > 0 {
		target += time.Duration(yieldBytes / peak * 1e9)
	}
	full := peak * (y.least + target).Seconds()
	excess := float64(delay-y.least)/float64(target) - 1 // -1 = nothing queues
	w := y.window
	if w == 0 {
		w = firstWindow
	}
	switch {
	case excess > 0:
		if y.steady = true; now.Sub(y.shrunk) >= delay {
			w *= max(0.5, 1-excess/2)
			y.shrunk = now
		}
	case now.Sub(y.shrunk) < yieldPause:
	case excess < -0.5 && (!y.steady || w < yieldBack*full):
		w *= yieldStart
	default:
		y.steady = true
		w *= 1 - yieldGain*excess*min(mostGrowth, now.Sub(y.looked).Seconds()/0.1)
	}
	y.looked = now
	// A window that something else limits, such as a slow origin, proves nothing and would be much too large once other
	// traffic arrives.
	most := max(firstWindow, 2*full)
	y.window = max(leastWindow, min(w, most))
	y.pace(now, delay)
}

// yield keeps each link from being asked for more than a background transfer may have outstanding there. It returns
// when more may be requested if nothing happens before; zero = never.
func (m *Machine) yield(now time.Time, v *schedule.View) (again time.Time) {
	if !m.cfg.Background {
		return time.Time{}
	}
	for i := range v.Links {
		l, y := &v.Links[i], &m.links[i].yielding
		if now.Before(y.next) {
			again = schedule.Earlier(again, y.next)
		} else if l.Asked < y.outstanding() {
			continue
		}
		l.CanAsk = false
	}
	return again
}
