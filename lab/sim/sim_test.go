package sim

import (
	"errors"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/lab/literature"
)

func hs() []Link {
	return []Link{
		{Rate: 80 * mbit, RTT: 10 * time.Millisecond},
		{Rate: 60 * mbit, RTT: 45 * time.Millisecond, Ramp: 2500 * time.Millisecond},
	}
}

func TestTwoLinks(t *testing.T) {
	for _, first := range []int64{256 << 10, 0} {
		for _, s := range []string{"single", "naive", "alg3", "alg3-literal"} {
			for _, links := range [][]Link{hs(), {{Rate: 8 * mbit, RTT: 10e6}, {Rate: 66 * mbit, RTT: 45e6, Ramp: 25e8}}} {
				r, err := Run(Spec{Size: 50e6, Links: links, Scheduler: s, Window: 12 << 20, First: first})
				t.Logf("%-12s first %6d: %v delta %v bytes %v waste %d held %d pause %v requests %d", s, first, r.Took.Round(time.Millisecond), r.Delta().Round(time.Millisecond), r.Bytes, r.Waste, r.MaxHeld, r.Pause.Round(time.Millisecond), r.Requests)
				if err != nil {
					t.Errorf("%s: %v", s, err)
				}
			}
		}
	}
}

// TestInvariants runs random transfers over random links that lose packets, change, die and return, under every scheduler;
// Run checks the invariants after each event.
func TestInvariants(t *testing.T) {
	for _, name := range Contenders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds(name) {
				s := random(seed)
				s.Scheduler = name
				s.Reserve = !knows(name) && seed%2 == 0
				if knows(name) {
					s.Restart, s.Faults = false, Faults{} // the future is computed from the links alone
					if _, _, err := Limit(s); err != nil {
						continue // a transfer over one link alone never ends: there is nothing to know
					}
				}
				_, err := Run(s)
				if f := new(FailedError); errors.As(err, &f) && f.Offset == 0 && f.Outcome.Blame() == fault.BlameLink {
					continue // no link was alive at the first request: an immediate error is correct
				}
				if err != nil {
					t.Fatalf("seed %d: %v\n%+v", seed, err, s)
				}
			}
		})
	}
}

// seeds returns how many random transfers a scheduler runs: 50, the default 200; with SIM_LONG (make sim) 100 and 1,000.
func seeds(scheduler string) uint64 {
	n := uint64(50)
	if scheduler == schedule.Default {
		n = 200
	}
	if os.Getenv("SIM_LONG") != "" {
		n = 100
		if scheduler == schedule.Default {
			n = 1000
		}
	}
	return n
}

// random returns a random scenario. At least one link is up in the end, so that every transfer ends.
func random(seed uint64) Spec {
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(v ...int64) int64 { return v[r.IntN(len(v))] }
	s := Spec{
		Size: 1 + r.Int64N(pick(1000, 1e6, 20e6)), Scheduler: literature.Names()[r.IntN(len(literature.Names()))], Seed: seed,
		Window: pick(256<<10, 1<<20, 4<<20, 12<<20), First: pick(0, 16<<10, 256<<10), Restart: r.IntN(4) == 0,
		Faults: Faults{
			Reset: 0.1 * float64(r.IntN(2)), Short: 0.2 * float64(r.IntN(2)), CloseAfter: r.IntN(3) * r.IntN(20),
			NoPipeline: r.IntN(4) == 0, RefuseOn: int8(r.IntN(8) / 7),
		},
	}
	if r.IntN(4) == 0 {
		s.Client = float64(100e3 + r.IntN(5e6))
	}
	for i := range 2 + r.IntN(2) {
		l := Link{Rate: float64(1e5 + r.IntN(1e7)), RTT: time.Duration(1+r.IntN(150)) * time.Millisecond}
		if r.IntN(3) == 0 {
			l.Ramp = 2500 * time.Millisecond
		}
		at := time.Duration(0)
		for range r.IntN(4) {
			at += time.Duration(r.IntN(4000)) * time.Millisecond
			off, on := Blackhole, Restore
			if r.IntN(2) == 0 {
				off, on = Gone, Back
			}
			l.Events = append(l.Events, LinkEvent{At: at, What: off})
			at += time.Duration(r.IntN(6000)) * time.Millisecond
			l.Events = append(l.Events, LinkEvent{At: at, What: on}, LinkEvent{At: at, What: SetRate, Rate: float64(1e4 + r.IntN(1e7))})
		}
		l.Absent = i > 0 && r.IntN(5) == 0
		l.H2 = !s.Faults.NoPipeline && r.IntN(3) == 0
		if r.IntN(4) == 0 {
			l.Loss = 0.02 * r.Float64()
		}
		l.Jitter = time.Duration(r.IntN(3)*r.IntN(30)) * time.Millisecond
		if r.IntN(4) == 0 {
			l.Trace = levels(r, 10*time.Second, 0.5, 80)
		}
		if r.IntN(6) == 0 {
			l.Conns = 1 + r.IntN(2)
		}
		s.Links = append(s.Links, l)
	}
	return s
}
