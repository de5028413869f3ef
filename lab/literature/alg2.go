package literature

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// Alg2 is Algorithm 2 of Skjolden 2019 (section 4.3.4). The cap of Algorithm 1 becomes an even part of the object,
// scaled by the current use of the links' capacity: (P/n) (sum thr / sum bw). The sum of throughputs cancels, so a
// link's requests depend on that link alone.
//
// It needs the throughput and capacity of each link. The thesis sets the capacity by hand. The default here, the
// observed peak, makes the first requests of a link too long while the others still ramp up. Alg2 wins on long objects
// over fast links, with few requests. Its requests are long (P/4 for one of two equal links), so the links end seconds
// apart, and a slow link's requests fall below its bytes in flight.
type Alg2 struct {
	Bandwidth []float64 // capacity of each link in bytes per second, by index; nil = the observed peaks
}

// Next implements schedule.Scheduler.
func (s *Alg2) Next(_ time.Time, v *schedule.View) schedule.Decision {
	return pull(v, overlapped, s.size)
}

func (s *Alg2) size(v *schedule.View, i int8) (int64, schedule.Rule) {
	if v.Links[i].Rate <= 0 {
		return schedule.FirstSize, schedule.First
	}
	return params(v, i, v.Object.Len(), s.Bandwidth).Share(), schedule.Share
}
