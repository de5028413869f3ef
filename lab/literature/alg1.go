package literature

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// Alg1 is Algorithm 1 of Skjolden 2019 (section 4.3.3). A request is the link's share, by throughput, of a fixed cap.
// The next one is sent when 60 % of the last has arrived.
//
// It needs the throughput of each link. It wins where links are alike and the cap fits them. A cap that is too small
// for a fast link leaves it idle for a part of each round trip; this starves LTE in the thesis (36 to 65 Mbit/s where
// Algorithm 3 gets 50 to 95). Nothing balances the last requests.
type Alg1 struct {
	Cap int64 // U in bytes; 0 = 4 MB, the example in the thesis
}

// Next implements schedule.Scheduler.
func (s *Alg1) Next(_ time.Time, v *schedule.View) schedule.Decision {
	return pull(v, overlapped, s.size)
}

func (s *Alg1) size(v *schedule.View, i int8) (int64, schedule.Rule) {
	part, ok := share(v, i)
	if !ok {
		return schedule.FirstSize, schedule.First
	}
	u := s.Cap
	if u == 0 {
		u = 4e6
	}
	return int64(float64(u) * part), schedule.Share
}
