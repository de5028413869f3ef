package literature

import (
	"math"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// MSPlayer sizes ranges by the ratio of the links, one range at a time on each (Nikravesh 2018 section 6.6 compares
// with it). The slowest link fetches a base length while each faster one fetches proportionally more, so that all end
// together. The base doubles whenever the slowest link becomes faster by 5 % or more, and halves whenever it becomes
// slower by as much; Ratio keeps it fixed.
//
// It needs the throughput of each link. It wins on steady links whose ratio is small; without pipelining every range
// costs a round trip, and a wrong ratio costs a whole range.
type MSPlayer struct {
	Ratio bool

	base int64
	rate float64 // rate of the slowest link when base was set, in bytes per second
}

const (
	msBase      = 256 << 10
	msLeast     = 16 << 10
	msMost      = 4 << 20
	msVariation = 0.05
)

// Next implements schedule.Scheduler.
func (s *MSPlayer) Next(_ time.Time, v *schedule.View) schedule.Decision {
	return pull(v, oneByOne, s.size)
}

func (s *MSPlayer) size(v *schedule.View, i int8) (int64, schedule.Rule) {
	if s.base == 0 {
		s.base = msBase
	}
	slow := slowest(v)
	rate := v.Links[i].Rate
	if rate <= 0 || slow < 0 {
		return s.base, schedule.First
	}
	if least := v.Links[slow].Rate; i != slow {
		return int64(math.Ceil(rate/least)) * s.base, schedule.Share
	}
	if !s.Ratio && s.rate > 0 {
		switch {
		case rate >= s.rate*(1+msVariation):
			s.base = min(2*s.base, msMost)
		case rate <= s.rate*(1-msVariation):
			s.base = max(s.base/2, msLeast)
		}
	}
	s.rate = rate
	return s.base, schedule.Share
}

// slowest returns the usable link with the lowest known goodput, or -1 if none is known.
func slowest(v *schedule.View) int8 {
	s := int8(-1)
	for i := range v.Links {
		if l := &v.Links[i]; l.Usable && l.Rate > 0 && (s < 0 || l.Rate < v.Links[s].Rate) {
			s = int8(i)
		}
	}
	return s
}
