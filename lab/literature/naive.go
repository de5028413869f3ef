package literature

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// Naive splits the object into as many equal ranges as there are links, requests one on each link, and corrects nothing
// (Skjolden 2019 section 4.3.2). It needs only the size. It is right for equal links and otherwise ends when the
// slowest link does. Ranges that a lost link leaves behind go to whichever link is idle.
type Naive struct {
	edges []int64 // ends of the shares, ascending
}

// Next implements schedule.Scheduler.
func (s *Naive) Next(_ time.Time, v *schedule.View) schedule.Decision {
	if s.edges == nil {
		s.split(v)
	}
	for i := range v.Links {
		l := &v.Links[i]
		if !l.Usable || !l.CanAsk || l.Running > 0 && !l.Blocked {
			continue
		}
		for _, f := range v.Free {
			if f.Start >= v.Limit {
				break
			}
			r := segment.Range{Start: f.Start, End: s.edge(f.Start, f.End)}
			return schedule.Decision{Do: schedule.Fetch, Link: int8(i), Range: r, Rule: schedule.WholeRange}
		}
	}
	return wait(time.Time{})
}

// split places the edges once, over the whole object, when the size becomes known.
func (s *Naive) split(v *schedule.View) {
	n := int64(0)
	for i := range v.Links {
		if v.Links[i].Usable {
			n++
		}
	}
	n = max(n, 1)
	for i := int64(1); i <= n; i++ {
		s.edges = append(s.edges, v.Object.Start+v.Object.Len()*i/n)
	}
}

func (s *Naive) edge(from, end int64) int64 {
	for _, e := range s.edges {
		if e > from {
			return min(e, end)
		}
	}
	return end
}
