package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// TestNeverSlower checks that with several links the default scheduler takes at most 2 % and two of the longest round trips longer
// than over the best link alone.
func TestNeverSlower(t *testing.T) {
	for n := range uint64(200) {
		r := rand.New(rand.NewPCG(n, 15))
		fastest := logUniform(r, 4, 200)
		s := Spec{
			Seed: n, Size: int64(logUniform(r, 4, 40) * 1e6), Window: defaultWindow, First: 128 << 10, Scheduler: schedule.Default,
		}
		var longest time.Duration
		for range 2 + r.IntN(3) {
			l := Link{
				Rate: fastest * logUniform(r, 0.05, 1) * mbit, RTT: time.Duration(logUniform(r, 5, 200) * float64(time.Millisecond)),
				Jitter: time.Duration(r.IntN(8)) * time.Millisecond,
			}
			longest = max(longest, l.RTT)
			s.Links = append(s.Links, l)
		}
		took, err := Run(s)
		if err != nil {
			t.Fatalf("scenario %d: %v", n, err)
		}
		best := time.Duration(1 << 62)
		for _, l := range s.Links {
			one := s
			one.Links, one.Scheduler = []Link{l}, "single"
			alone, err := Run(one)
			if err != nil {
				t.Fatalf("scenario %d alone: %v", n, err)
			}
			best = min(best, alone.Took)
		}
		if most := time.Duration(1.02*float64(best)) + 2*longest; took.Took > most {
			t.Errorf("scenario %d took %v, the best link alone %v: %+v", n, took.Took, best, s.Links)
		}
	}
}
