package sim

import (
	"os"
	"slices"
	"testing"

	"github.com/tributary-http/tributary/internal/core/estimate"
)

// seeded returns a scenario whose links have remembered rates: their rates times the factors in turn.
func seeded(s Spec, factors ...float64) Spec {
	s.Links = slices.Clone(s.Links)
	for i := range s.Links {
		s.Links[i].Learned = estimate.Entry{Rate: factors[i%len(factors)] * s.Links[i].Mean()}
	}
	return s
}

// TestStaleRates checks that wrongly remembered rates cost little in any class. Single transfers take longer or shorter by chance,
// depending on their ranges, short ones most; SIM_LONG=1 runs more of them.
func TestStaleRates(t *testing.T) {
	for _, c := range Classes() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			n, most := 6, 1.04
			if os.Getenv("SIM_LONG") != "" {
				n, most = 60, 1.025
			}
			if c.Name == "short" {
				n = 60
			}
			took := func(factors ...float64) (all []float64) {
				for i := range uint64(n) {
					s := c.At(i)
					s.Scheduler = "confluence"
					if factors != nil {
						s = seeded(s, factors...)
					}
					r, err := Run(s)
					if err != nil {
						t.Fatalf("scenario %d, rates times %v: %v", i, factors, err)
					}
					all = append(all, r.Took.Seconds())
				}
				return all
			}
			none := took()
			for _, factors := range [][]float64{{1}, {4}, {0.25}, {4, 0.25}, {0.25, 4}} {
				sum := 0.0
				for i, seconds := range took(factors...) {
					sum += seconds / none[i]
				}
				if mean := sum / float64(n); mean > most {
					t.Errorf("rates times %v: transfers take %.3f times as long as without", factors, mean)
				} else {
					t.Logf("rates times %v: %.3f", factors, mean)
				}
			}
		})
	}
}
