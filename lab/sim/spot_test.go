package sim

import (
	"errors"
	"slices"
	"testing"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/schedule"
)

// lying runs a scenario in which a link delivers another object under the same headers.
func lying(t *testing.T, s Spec, liar int) (visible, missed bool) {
	t.Helper()
	s.Scheduler, s.Restart = schedule.Default, false
	s.Links[liar].Lies = true
	_, err := Run(s)
	var failed *FailedError
	switch {
	case err == nil:
	case errors.As(err, &failed):
		return failed.Outcome == fault.Differs, false
	case errors.Is(err, errMixed):
		return false, true
	default:
		t.Error(err)
	}
	return false, false
}

// TestLies checks that, over links that work, the client never gets a mixture, and with two links always gets one whole object.
// With four links, a lying reference may be compared with the last honest link too late.
func TestLies(t *testing.T) {
	for _, c := range Classes() {
		t.Run("R210 "+c.Name, func(t *testing.T) {
			t.Parallel()
			var failed int
			for n := range uint64(20) {
				for liar := range 2 {
					s := c.At(n / 2)
					s.Hinted = n%2 == 1
					visible, missed := lying(t, s, liar)
					if missed || visible && len(s.Links) == 2 {
						t.Errorf("scenario %d, liar %d: visible %v, missed %v", n, liar, visible, missed)
					}
					if visible {
						failed++
					}
				}
			}
			if failed > 8 {
				t.Errorf("%d of 40 transfers failed", failed)
			}
		})
	}
}

// TestLiesAndFaults checks that the client never gets a mixture, whatever dies before any bytes are compared.
func TestLiesAndFaults(t *testing.T) {
	var runs, failed, missed int
	for seed := range uint64(1000) {
		s := random(seed)
		s.Hinted = seed%4 > 1
		visible, undetected := lying(t, s, int(seed%2))
		runs++
		if visible {
			failed++
		}
		if undetected {
			missed++
		}
	}
	t.Logf("%d runs: %d visible failures, %d mixtures", runs, failed, missed)
	if missed > 0 || 10*failed > runs {
		t.Error("a mixture, or more than one failure in ten")
	}
}

// TestSpotCheckCost compares transfers with and without spot checks. The audit checks in every run the share of bytes that may be
// fetched twice for them.
func TestSpotCheckCost(t *testing.T) {
	var longer, share []float64
	verified := 0
	for _, c := range Classes() {
		for n := range uint64(10) {
			s := c.At(n)
			s.Scheduler, s.Hinted = schedule.Default, n%2 == 1
			with, err := Run(s)
			if err != nil {
				t.Fatalf("%s, scenario %d: %v", c.Name, n, err)
			}
			s.Unchecked = true
			without, err := Run(s)
			if err != nil {
				t.Fatalf("%s, scenario %d: %v", c.Name, n, err)
			}
			if without.Compared > 0 || with.Compared == 0 {
				t.Errorf("%s, scenario %d: %d bytes compared, %d without checks", c.Name, n, with.Compared, without.Compared)
			}
			if with.Verified > 0 {
				verified++
				t.Logf("%s %d: size %d, verified %d, %v longer, of %v", c.Name, n, s.Size, with.Verified, with.Took-without.Took, with.Took)
			}
			longer = append(longer, with.Took.Seconds()/without.Took.Seconds()-1)
			share = append(share, float64(with.Compared)/float64(s.Size))
		}
	}
	slices.Sort(longer)
	slices.Sort(share)
	n := len(longer)
	t.Logf("%d scenarios, %d with a link to verify at the end: %+.3f %% of the time (quartiles %+.3f and %+.3f), %.4f %% of the bytes, at most %.4f", n, verified,
		100*longer[n/2], 100*longer[n/4], 100*longer[3*n/4], 100*share[n/2], 100*share[n-1])
	if longer[n/2] > 0.001 {
		t.Errorf("transfers take %.3f %% longer", 100*longer[n/2])
	}
}
