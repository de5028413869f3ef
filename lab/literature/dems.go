package literature

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// DEMS fetches from both ends, one link from the front and the other from the rear, until they meet (DEMS, Guo et al.
// 2017). With more than two links, every other one works at the rear. A range is 100 ms of its link's goodput.
//
// It does not need the links' ratio: whatever it is, both are busy until they meet, within one range. It needs a window
// as large as the object, since bytes from the rear wait for all bytes before them. In a smaller window the rear is the
// end of the window, and the client gets only the bytes of one link while the other fills the window.
type DEMS struct{}

const demsLength = 100 * time.Millisecond

// Next implements schedule.Scheduler.
func (s *DEMS) Next(now time.Time, v *schedule.View) schedule.Decision {
	var until time.Time
	rear := false
	for i := range v.Links {
		l := &v.Links[i]
		if !l.Usable {
			continue
		}
		if l.CanAsk && l.Due() {
			if r, ok := s.at(v, int8(i), rear); ok {
				return schedule.Decision{Do: schedule.Fetch, Link: int8(i), Range: r, Rule: schedule.Piece}
			}
		}
		until = schedule.Earlier(until, l.Dry(now))
		rear = !rear
	}
	return wait(until)
}

// at returns the range at the next offset or at the rear of the free bytes.
func (s *DEMS) at(v *schedule.View, i int8, rear bool) (segment.Range, bool) {
	f, ok := v.FirstFree()
	if !ok {
		return f, false
	}
	n := int64(schedule.StealMin)
	if l := &v.Links[i]; l.Rate > 0 {
		n = max(n, int64(l.Rate*demsLength.Seconds()))
	} else {
		n = schedule.FirstSize
	}
	if !rear {
		return segment.Range{Start: f.Start, End: min(f.Start+n, f.End)}, true
	}
	for _, o := range v.Free {
		if o.Start >= v.Limit {
			break
		}
		f = o
	}
	end := min(f.End, v.Limit)
	return segment.Range{Start: max(f.Start, end-n), End: end}, true
}
