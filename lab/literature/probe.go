package literature

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// Probe is the naive partitioning of Nika 2015 (section 5.2): 100 KB over each link, then the rest in one range for
// each link, in the measured ratio.
//
// It needs the size and one measurement. It is the worst of the paper's estimators: 100 KB last 400 to 600 ms, within
// slow start and the ramp-up of LTE, and nothing corrects the split.
type Probe struct {
	started []bool
	edges   []int64 // ends of the shares by link; nil until the split
}

const probeSize = 100e3

// Next implements schedule.Scheduler.
func (s *Probe) Next(_ time.Time, v *schedule.View) schedule.Decision {
	for len(s.started) < len(v.Links) {
		s.started = append(s.started, false)
	}
	r, ok := v.FirstFree()
	if !ok {
		return wait(time.Time{})
	}
	i := oneByOne.next(v)
	if i < 0 {
		return wait(time.Time{})
	}
	if s.edges == nil && v.Links[i].Rate <= 0 && !s.started[i] {
		s.started[i] = true
		return schedule.Decision{
			Do: schedule.Fetch, Link: i, Range: segment.Range{Start: r.Start, End: min(r.Start+probeSize, r.End)},
			Rule: schedule.First,
		}
	}
	if s.edges == nil {
		if s.measuring(v) {
			return schedule.Decision{Do: schedule.Wait, Rule: schedule.Measuring}
		}
		s.split(v, r.Start)
	}
	return partition(v, s.edges)
}

// measuring reports whether a link still carries its probe.
func (s *Probe) measuring(v *schedule.View) bool {
	for i := range v.Links {
		if l := &v.Links[i]; l.Usable && l.Running > 0 && !l.Blocked {
			return true
		}
	}
	return false
}

func (s *Probe) split(v *schedule.View, from int64) {
	weights := make([]float64, len(v.Links))
	for i := range v.Links {
		if l := &v.Links[i]; l.Usable {
			weights[i] = max(l.Rate, 1)
		}
	}
	s.edges = edges(segment.Range{Start: from, End: v.Object.End}, weights)
}
