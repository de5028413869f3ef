package literature

import (
	"math"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// Partition splits the object once, one range for each link, in the given proportion: Nika 2015 section 5.2 with
// knowledge that only a simulator has. If the weights are the bytes that each link can carry until all end together, it
// is Optimal, the bundling limit; if they are those times 1 + s g, with g from a normal distribution, it is Noisy.
//
// Nothing corrects the split, which shows the value of knowing the rates and the cost of errors in them.
type Partition struct {
	Weights []float64 // by link

	edges []int64
}

// Next implements schedule.Scheduler.
func (s *Partition) Next(_ time.Time, v *schedule.View) schedule.Decision {
	if s.edges == nil {
		s.edges = edges(v.Object, s.Weights)
	}
	return partition(v, s.edges)
}

// edges divides a range in proportion to the weights and returns where the shares end. A link without weight gets
// nothing.
func edges(r segment.Range, weights []float64) []int64 {
	var sum, before float64
	for _, w := range weights {
		sum += max(w, 0)
	}
	ends := make([]int64, len(weights))
	for i, w := range weights {
		before += max(w, 0)
		ends[i] = r.End
		if sum > 0 {
			ends[i] = r.Start + int64(math.Round(float64(r.Len())*before/sum))
		}
	}
	if len(ends) > 0 {
		ends[len(ends)-1] = r.End
	}
	return ends
}

// partition gives each idle link the free part of its share, in one range; the rest of a lost link's share goes to any
// idle link.
func partition(v *schedule.View, ends []int64) schedule.Decision {
	for _, own := range [...]bool{true, false} {
		for i := range v.Links {
			l := &v.Links[i]
			if !l.Usable || !l.CanAsk || l.Running > 0 && !l.Blocked {
				continue
			}
			for _, f := range v.Free {
				if f.Start >= v.Limit {
					break
				}
				k := shareOf(ends, f.Start)
				if own && k != i || !own && k < len(v.Links) && (v.Links[k].Usable && !stuck(v, f)) {
					continue
				}
				end := f.End
				if k < len(ends) {
					end = min(end, ends[k])
				}
				return schedule.Decision{
					Do: schedule.Fetch, Link: int8(i), Range: segment.Range{Start: f.Start, End: end},
					Rule: schedule.WholeRange,
				}
			}
		}
	}
	return schedule.Decision{Do: schedule.Wait, Rule: schedule.WholeRange}
}

// stuck reports whether the client waits for a free range.
func stuck(v *schedule.View, f segment.Range) bool {
	return f.Start == v.Offset && len(v.Attempts) == 0
}

// shareOf returns the index of the share that an offset lies in, or len(ends) if it lies beyond them.
func shareOf(ends []int64, at int64) int {
	for i, e := range ends {
		if at < e {
			return i
		}
	}
	return len(ends)
}
