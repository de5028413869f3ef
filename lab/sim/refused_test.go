package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// TestRefusedLater runs transfers whose origin refuses requests after a number of them, or after a time: a signed URL expires, a
// quota is used up. One response could have served the client, so none may fail while the link of the reserve works. The reserve
// costs the others nothing.
func TestRefusedLater(t *testing.T) {
	for n := range uint64(150) {
		r := rand.New(rand.NewPCG(n, 38))
		s := Spec{
			Seed: n, Size: int64(logUniform(r, 8, 60) * 1e6), Window: defaultWindow, First: 128 << 10, Scheduler: schedule.Default,
			Reserve: true,
		}
		for i := range 1 + r.IntN(3) {
			l := Link{
				Rate: logUniform(r, 4, 100) * mbit, RTT: time.Duration(logUniform(r, 5, 100) * float64(time.Millisecond)),
				Jitter: time.Duration(r.IntN(8)) * time.Millisecond, H2: n%3 == 0,
			}
			if i > 0 && r.IntN(4) == 0 { // it dies before the origin refuses, or later
				l.Events = []LinkEvent{{At: time.Duration(between(r, 0.5, 3) * float64(time.Second)), What: Blackhole}}
			}
			if i > 0 && r.IntN(4) == 0 {
				l.Metered = true
			}
			s.Links = append(s.Links, l)
		}
		if n%4 == 1 {
			s.Client = float64(200e3 + r.IntN(4e6))
		}
		if n%2 == 0 {
			s.Faults.MostAsked = 4*len(s.Links) + r.IntN(60)
		} else {
			s.Faults.Expires = time.Duration(between(r, 1, 8) * float64(time.Second))
		}
		got, err := Run(s)
		if err != nil {
			t.Errorf("scenario %d: %v: %+v", n, err, s)
			continue
		}
		one := s
		one.Links, one.Scheduler, one.Faults = s.Links[:1], "single", Faults{}
		if alone := run(t, "single", one); got.Took > 2*alone.Took+time.Minute {
			t.Errorf("scenario %d took %v, one link alone %v", n, got.Took, alone.Took)
		}
	}
}

// TestRefusedAtOnce runs transfers whose origin answers only 1 to 3 requests. The first one asks for everything: it is not given
// up before another response can replace it.
func TestRefusedAtOnce(t *testing.T) {
	for n := range uint64(60) {
		r := rand.New(rand.NewPCG(n, 39))
		s := Spec{Seed: n, Size: int64(logUniform(r, 5, 60) * 1e6), Window: defaultWindow, Scheduler: schedule.Default, Reserve: true}
		for i := range 1 + r.IntN(3) {
			s.Links = append(s.Links, Link{
				Rate: logUniform(r, 4, 100) * mbit, RTT: time.Duration(logUniform(r, 5, 100) * float64(time.Millisecond)),
				Jitter: time.Duration(r.IntN(8)) * time.Millisecond, H2: n%3 == 0, Metered: i > 0 && r.IntN(4) == 0,
			})
		}
		if n%4 == 1 {
			s.Client = float64(200e3 + r.IntN(4e6))
		}
		for s.Faults.MostAsked = 1; s.Faults.MostAsked <= 3; s.Faults.MostAsked++ {
			if _, err := Run(s); err != nil {
				t.Errorf("scenario %d, %d requests: %v: %+v", n, s.Faults.MostAsked, err, s)
			}
		}
	}
}
