package literature

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// Alg3 is Algorithm 3 of Skjolden 2019 (section 4.3.5) as printed. A request is the link's share, by throughput, of a
// cap that grows with the throughput of all links, and never less than the link has in flight (its bandwidth-delay
// product). The next request is sent when 60 % of the last one has arrived (section 4.2.2).
//
// It needs the throughput, capacity (see Alg2) and round-trip time of each link. It fails where throughput is
// misjudged, since its requests are long, and nothing balances the last ones; schedule.Alg3 has guards for both.
type Alg3 struct {
	Bandwidth []float64 // as in Alg2
	Padding   float64   // factor f of the BDP difference padding; 0 means 1: sizes above the floor are kept
}

// Next implements schedule.Scheduler.
func (s *Alg3) Next(_ time.Time, v *schedule.View) schedule.Decision {
	r, ok := v.FirstFree()
	if !ok {
		return wait(time.Time{})
	}
	for i := range v.Links {
		if l := &v.Links[i]; !l.Usable || !l.CanAsk || !overlapped.due(v, int8(i)) {
			continue
		}
		n, rule := s.size(v, int8(i))
		if n >= r.Len() {
			n, rule = r.Len(), schedule.Rest
		}
		return schedule.Decision{
			Do: schedule.Fetch, Link: int8(i), Range: segment.Range{Start: r.Start, End: r.Start + n}, Rule: rule,
		}
	}
	return wait(time.Time{})
}

func (s *Alg3) size(v *schedule.View, i int8) (int64, schedule.Rule) {
	if v.Links[i].Rate == 0 {
		return schedule.FirstSize, schedule.First
	}
	p := params(v, i, v.Object.Len(), s.Bandwidth)
	p.Floor, p.Padding = 1, s.Padding
	n, rule := p.Size()
	return max(n, 1), rule
}

// params returns the inputs to the formulas for link i and a payload. known holds the bandwidth of each link in bytes
// per second, by index; without it, the bandwidth is the observed peak of the link.
func params(v *schedule.View, i int8, payload int64, known []float64) schedule.Params {
	p := v.Params(i, payload)
	if len(known) < len(v.Links) {
		return p
	}
	p.Bandwidth, p.SumBandwidth = known[i], 0
	for j := range v.Links {
		if v.Links[j].Usable {
			p.SumBandwidth += known[j]
		}
	}
	return p
}
