package literature

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// Switching uses one link at a time, the currently fastest one, and pays for each change with a pause without requests:
// Radio Switching of Nika 2015 (sections 4.1 and 5.1). Earlier requests run to their end.
//
// It needs to know which link is currently the fastest, which only a simulator does, and shows the value of choosing a
// link compared with using both.
type Switching struct {
	Best func(now time.Time) int8          // the currently fastest link
	Cost func(from, to int8) time.Duration // cost of a change; nil = none. The paper: 1212 ms to Wi-Fi, 196 ms to LTE

	on    int8
	ready time.Time // end of the current pause; zero = nothing chosen yet
}

// switchEvery is the interval between choices, and the length of a range as time at the link's goodput.
const switchEvery = 100 * time.Millisecond

// Next implements schedule.Scheduler.
func (s *Switching) Next(now time.Time, v *schedule.View) schedule.Decision {
	idle := schedule.Decision{Do: schedule.Wait, Until: now.Add(switchEvery), Rule: schedule.OtherLink}
	best := s.Best(now)
	if !v.Links[best].Usable {
		best = v.Best()
	}
	switch {
	case best < 0:
		return idle
	case s.ready.IsZero():
		s.on, s.ready = best, now
	case best != s.on:
		s.ready = now
		if s.Cost != nil {
			s.ready = now.Add(s.Cost(s.on, best))
		}
		s.on = best
	}
	r, ok := v.FirstFree()
	l := &v.Links[s.on]
	if !ok || now.Before(s.ready) || !l.CanAsk || !l.Due() {
		return idle
	}
	n := int64(schedule.FirstSize)
	if l.Rate > 0 {
		n = max(schedule.StealMin, int64(l.Rate*switchEvery.Seconds()))
	}
	return schedule.Decision{
		Do: schedule.Fetch, Link: s.on, Range: segment.Range{Start: r.Start, End: min(r.Start+n, r.End)},
		Rule: schedule.Piece,
	}
}
