package schedule

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/segment"
)

// Single fetches everything over one link in one range. It is the baseline that every other scheduler must beat
// (Skjolden 2019 section 4.3.1). It stays on its first link and changes only when that link is lost. It needs no
// information. It wins where a second link costs more than it delivers, and never gains from one.
type Single struct {
	link int8
	set  bool
}

// Next implements Scheduler.
func (s *Single) Next(_ time.Time, v *View) Decision {
	r, ok := v.FirstFree()
	if !ok {
		return wait(time.Time{})
	}
	if !s.set && len(v.Attempts) > 0 { // stay where the first request went
		s.link, s.set = v.Attempts[0].Link, true
	}
	if !s.set || !v.Links[s.link].Usable {
		b := v.Best()
		if b < 0 {
			return wait(time.Time{})
		}
		s.link, s.set = b, true
	}
	if !v.Links[s.link].CanAsk {
		return wait(time.Time{})
	}
	return Decision{Do: Fetch, Link: s.link, Range: segment.Range{Start: r.Start, End: r.End}, Rule: WholeRange}
}
