package schedule

import (
	"time"

	"github.com/tributary-http/tributary/internal/segment"
)

const (
	// rescueTime is the length of one second copy in time of the rescuer's goodput: short, since the silent link may speak
	// again at any moment (recorded LTE links fall silent for 0.2 to 1 s), and a request cannot be taken back.
	rescueTime = 100 * time.Millisecond
	rescueMin  = 64 << 10
)

// Rescue returns the second copy to ask for, if a silent link owes bytes that come before everything else a link could
// do now: owed is the first range, from the head on, that a silent attempt covers and nobody asked for twice. It belongs
// to every scheduler: the machine asks it first. While links that could help are busy the answer is Wait, so that they
// are given nothing that can wait; false means that the scheduler decides.
func Rescue(now time.Time, v *View, from *Attempt, owed segment.Range) (Decision, bool) {
	if r, ok := v.firstFree(); ok && r.Start < owed.Start {
		return Decision{}, false
	}
	if owed.Start >= v.Limit {
		return Decision{}, false
	}
	until, help := time.Time{}, false
	for i := range v.Links {
		l := &v.Links[i]
		if int8(i) == from.Link || !l.Usable {
			continue
		}
		if help = true; !l.CanAsk || !l.Due() {
			if t := l.dry(now); !t.IsZero() && (until.IsZero() || t.Before(until)) {
				until = t
			}
			continue
		}
		n := max(rescueMin, int64(l.Rate*rescueTime.Seconds()))
		r := segment.Range{Start: owed.Start, End: min(owed.End, owed.Start+n)}
		if owed.End-r.End < rescueMin/2 {
			r.End = owed.End
		}
		return Decision{Do: Fetch, Link: int8(i), Range: r, From: from.ID, Hedge: true, Why: Takeover}, true
	}
	return wait(until), help
}

// lead is how long before the end of what a link was asked for its next request must leave, beyond one round trip.
const lead = 50 * time.Millisecond

// Due reports whether what was asked of the link will all have come within one round trip and 50 ms, so that the next
// request must leave now if the link is not to fall idle. A link that is blocked by the window can only help the head.
func (l *Link) Due() bool {
	if l.Running == 0 || l.Blocked {
		return true
	}
	return l.Rate > 0 && float64(l.Asked) <= l.Rate*(l.RTT+lead).Seconds()
}

// dry returns when the link becomes Due at its present rate, zero if that cannot be told.
func (l *Link) dry(now time.Time) time.Time {
	if l.Running == 0 || l.Rate <= 0 || l.Due() {
		return time.Time{}
	}
	return now.Add(seconds(float64(l.Asked)/l.Rate) - l.RTT - lead)
}
