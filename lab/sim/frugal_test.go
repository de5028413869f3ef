package sim

import (
	"testing"

	"github.com/tributary-http/tributary/internal/energy"
	"github.com/tributary-http/tributary/internal/schedule"
)

// withRadios gives the first link Wi-Fi's and the others LTE's radio of a Galaxy S III.
func withRadios(t *testing.T, s Spec) Spec {
	t.Helper()
	s.Links = append([]Link(nil), s.Links...)
	for i := range s.Links {
		name := "galaxy-s3/lte"
		if i == 0 {
			name = "galaxy-s3/wifi"
		}
		r, err := energy.FindRadio(name)
		if err != nil {
			t.Fatal(err)
		}
		s.Links[i].Radio = r
	}
	return s
}

// cost is what a run took.
type cost struct{ seconds, joules float64 }

func (r *Result) cost() cost {
	c := cost{r.Took.Seconds(), energy.AwakeWatts * r.Took.Seconds()}
	for _, j := range r.Joules {
		c.joules += j.Radio()
	}
	return c
}

// The rows of Skjolden 2019 with the radios of Nika 2015: frugal takes at most 1.02 times the least joules of all and 1.10 times
// the time of the fastest wherever one scheme does both; else none is better than it in both, by more than these 2 %.
func TestFrugalRows(t *testing.T) {
	for _, row := range thesisRows {
		s := withRadios(t, row.quiet())
		s.Window = defaultWindow
		all := map[string]cost{}
		for name, change := range map[string]func(*Spec){
			"fastest": func(*Spec) {},
			"frugal":  func(s *Spec) { s.Goal = schedule.FrugalGoal },
			"alg3":    func(s *Spec) { s.Scheduler = "alg3" },
			"wifi":    func(s *Spec) { s.Links = s.Links[:1] },
			"lte":     func(s *Spec) { s.Links = s.Links[1:] },
		} {
			x := s
			x.Scheduler = schedule.Default
			change(&x)
			r, err := Run(x)
			if err != nil {
				t.Fatalf("%s, %s: %v", row.name, name, err)
			}
			all[name] = r.cost()
		}
		least, fastest, both := all["wifi"], all["wifi"], false
		for _, c := range all {
			least.joules, fastest.seconds = min(least.joules, c.joules), min(fastest.seconds, c.seconds)
		}
		does := func(c cost) bool { return c.joules <= 1.02*least.joules && c.seconds <= 1.10*fastest.seconds }
		for name, c := range all {
			both = both || name != "frugal" && does(c)
			if f := all["frugal"]; 1.02*c.joules < f.joules && c.seconds < f.seconds {
				t.Errorf("%s: frugal takes %.1f s and %.1f J, %s %.1f s and %.1f J", row.name, f.seconds, f.joules, name, c.seconds, c.joules)
			}
		}
		if both && !does(all["frugal"]) {
			t.Errorf("%s: frugal takes %.4g, of the least %.1f J and %.1f s", row.name, all["frugal"], least.joules, fastest.seconds)
		}
		t.Logf("%-14s %v", row.name, all)
	}
}

// Nothing goes over a radio that sleeps while an object is fetched that is not worth waking it: no request, no handshake. With
// the goal fastest the same objects wake it.
func TestFrugalSendsNothing(t *testing.T) {
	woken := 0
	for _, size := range []int64{64e3, 200e3, 1e6, 5e6} {
		for _, hinted := range []bool{false, true} {
			s := withRadios(t, Spec{
				Size: size, First: 128 << 10, Window: defaultWindow, Scheduler: schedule.Default, Hinted: hinted && size > 128<<10,
				Links: []Link{{Rate: 20 * mbit, RTT: 20 * ms}, {Rate: 40 * mbit, RTT: 60 * ms}},
			})
			for _, goal := range []string{schedule.FrugalGoal, schedule.Fastest} {
				s.Goal = goal
				r, err := Run(s)
				if err != nil {
					t.Fatal(err)
				}
				joules := r.Joules[1].Radio()
				if goal == schedule.FrugalGoal && (joules != 0 || r.Bytes[1] != 0) {
					t.Errorf("%d bytes, hinted %v: %g J and %d bytes over the sleeping radio", size, hinted, joules, r.Bytes[1])
				}
				if goal == schedule.Fastest && joules > 0 {
					woken++
				}
			}
		}
	}
	if woken != 8 {
		t.Errorf("with the goal fastest %d of 8 objects woke the radio: the comparison shows nothing", woken)
	}
}

// The machine keeps its invariants, and every download ends, whatever happens to the links.
func TestFrugalInvariants(t *testing.T) {
	for _, c := range Classes() {
		for n := range uint64(4) {
			s := withRadios(t, c.At(n))
			s.Scheduler, s.Goal = schedule.Default, schedule.FrugalGoal
			if _, err := Run(s); err != nil {
				t.Errorf("%s, %d: %v", c.Name, n, err)
			}
		}
	}
}
