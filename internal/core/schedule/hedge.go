package schedule

import (
	"math"
	"time"

	"github.com/tributary-http/tributary/internal/core/segment"
)

const (
	// hedgeTime is the minimum length of a second copy, as time at the rescuing link's goodput. It is short because the
	// silent link may resume at any moment (recorded LTE links fall silent for 0.2 to 1 s) and a request cannot be
	// taken back. The longer a silence has lasted, the longer it is likely to last, so a copy may take hedgeShare of
	// the silence so far.
	hedgeTime  = 60 * time.Millisecond
	hedgeShare = 0.2
	hedgeMin   = 64 << 10
)

// Hedge returns the hedge to request, if the bytes that a link owes come before any other bytes that could be requested
// now. owed is the first range at or after the next offset that the attempt from covers and that has not been requested
// twice. Hedge is common to all schedulers, and the machine calls it first. The hedge goes to the link that can deliver
// the bytes first. Once nothing else is left to request, a link waits until its next request is due, and the result is
// Wait; false means that the scheduler decides.
func Hedge(now time.Time, v *View, from *Attempt, owed segment.Range) (Decision, bool) {
	free, more := v.FirstFree()
	if more && free.Start < owed.Start || owed.Start >= v.Limit {
		return Decision{}, false
	}
	best, soonest := int8(-1), time.Duration(math.MaxInt64)
	until, help := time.Time{}, false
	for i := range v.Links {
		l := &v.Links[i]
		if int8(i) == from.Link || !l.Usable {
			continue
		}
		help = true
		if !l.CanAsk || !more && !l.Due() {
			until = Earlier(until, l.Dry(now))
			continue
		}
		at := l.RTT
		if l.Running > 0 && !l.Blocked {
			at = l.Arrival()
		}
		if at < soonest {
			best, soonest = int8(i), at
		}
	}
	switch {
	case best < 0 && help && !more:
		return wait(until), true
	case best < 0:
		return Decision{}, false
	}
	silence := min(now.Sub(from.Asked), now.Sub(from.Last))
	n := max(hedgeMin, int64(v.Links[best].Rate*max(hedgeTime.Seconds(), hedgeShare*silence.Seconds())))
	r := segment.Range{Start: owed.Start, End: min(owed.End, owed.Start+n)}
	if owed.End-r.End < hedgeMin/2 {
		r.End = owed.End
	}
	return Decision{
		Do:    Fetch,
		Link:  best,
		Range: r,
		From:  from.ID,
		Hedge: true,
		Rule:  HedgeCopy,
	}, true
}

// lead is how long before the end of a link's running ranges its next request must be sent, in addition to one round
// trip.
const lead = 50 * time.Millisecond

// Due reports whether all requested bytes of the link will have arrived within one round trip and 50 ms, so that the
// next request must be sent now to keep the link from falling idle. A link that is blocked by the window can only help
// the next offset.
func (l *Link) Due() bool {
	if l.Running == 0 || l.Blocked {
		return true
	}
	return l.Rate > 0 && float64(l.Asked) <= l.Rate*(l.RTT+lead).Seconds()
}

// Arrival returns the time until the first byte of a request sent on the link now would arrive.
func (l *Link) Arrival() time.Duration {
	if l.Rate <= 0 {
		return l.RTT
	}
	return max(l.RTT, seconds(float64(l.Asked)/l.Rate))
}

// Dry returns when the link becomes Due at its current rate, or zero if that cannot be predicted.
func (l *Link) Dry(now time.Time) time.Time {
	if l.Running == 0 || l.Rate <= 0 || l.Due() {
		return time.Time{}
	}
	return now.Add(seconds(float64(l.Asked)/l.Rate) - l.RTT - lead)
}
