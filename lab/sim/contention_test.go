package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// onAir returns a transfer of 30 s over two links on one channel.
func onAir(rate float64, rtt [2]time.Duration) Spec {
	link := func(i int) Link { return Link{Rate: rate * mbit, RTT: rtt[i], Jitter: 2 * ms, Channel: 1} }
	return Spec{
		Size: int64(rate * mbit * 30), Links: []Link{link(0), link(1)}, Scheduler: schedule.Default, Window: defaultWindow, First: 256 << 10,
	}
}

// verdicts runs a transfer and returns which links were found to add nothing, and when.
func verdicts(t *testing.T, s Spec) (r Result, said []string, at []time.Duration) {
	t.Helper()
	s.Log = func(now time.Duration, what string) {
		if strings.HasSuffix(what, "adds nothing") || strings.HasSuffix(what, "is missed") {
			said, at = append(said, what), append(at, now)
		}
	}
	r, err := Run(s)
	if err != nil {
		t.Fatal(err)
	}
	return r, said, at
}

// TestOneChannel checks that one of two links on one channel is left out within 6 s after it joined, and within 15 s if both were
// there from the start and the senders shift between them. The transfer takes at most 0.5 % longer than over one link alone.
func TestOneChannel(t *testing.T) {
	for _, rate := range []float64{10, 40, 100} {
		for _, rtt := range [][2]time.Duration{{8 * ms, 12 * ms}, {10 * ms, 10 * ms}, {12 * ms, 8 * ms}} {
			for join, most := range map[time.Duration]time.Duration{0: 15 * time.Second, 8 * time.Second: 6 * time.Second} {
				s := onAir(rate, rtt)
				if join > 0 {
					s.Links[1].Absent, s.Links[1].Events = true, []LinkEvent{{At: join, What: Back}}
				}
				name := fmt.Sprintf("%.0f Mbit/s, %v, the second joins after %v", rate, rtt, join)
				r, said, at := verdicts(t, s)
				one := s
				one.Links = s.Links[:1]
				alone := run(t, "single", one).Took
				t.Logf("%s: %v after %v; %.3f s, one alone %.3f s, %v", name, said, at, r.Took.Seconds(), alone.Seconds(), r.Bytes)
				switch {
				case join == 0 && rate != 40: // the shift between the senders is random
				case len(said) == 0 || at[0] > join+most, join > 0 && said[0] != "link 1 adds nothing":
					t.Errorf("%s: %v after %v", name, said, at)
				}
				if r.TakenBack > 0 || r.Took > alone*1005/1000 {
					t.Errorf("%s: %v; %v, one alone %v", name, said, r.Took, alone)
				}
			}
		}
	}
}

// TestOneChannelMetered checks that the metered link is left out, whichever it is and however much it delivers.
func TestOneChannelMetered(t *testing.T) {
	for i := range 2 {
		s := onAir(40, [2]time.Duration{8 * ms, 12 * ms})
		s.Links[i].Metered = true
		if _, said, _ := verdicts(t, s); len(said) == 0 || said[0] != fmt.Sprintf("link %d adds nothing", i) {
			t.Errorf("link %d is metered: %v", i, said)
		}
	}
}

// TestOneChannelDies checks that a link that was left out is back at once when the other one falls silent.
func TestOneChannelDies(t *testing.T) {
	s := onAir(40, [2]time.Duration{8 * ms, 12 * ms})
	_, said, at := verdicts(t, s)
	if len(said) == 0 {
		t.Fatal("no verdict")
	}
	stays := 0
	if said[0] == "link 0 adds nothing" {
		stays = 1
	}
	s.Links[stays].Events = []LinkEvent{{At: at[0] + 3*time.Second, What: Blackhole}}
	if r, _, _ := verdicts(t, s); r.Pause > 600*ms {
		t.Errorf("nothing came for %v", r.Pause)
	}
}

// varied returns a random transfer of about a minute over two or three independent links that all vary, by steps of rate, losses or
// fades. The client may read a little slower or a little faster than the links deliver.
func varied(n uint64) Spec {
	r := rand.New(rand.NewPCG(n, 14))
	s := Spec{Seed: n, Window: []int64{1 << 20, 4 << 20, defaultWindow}[r.IntN(3)], First: 256 << 10, Scheduler: schedule.Default}
	s.Faults.NoPipeline = r.IntN(4) == 0
	var sum float64
	for range 2 + r.IntN(2) {
		rate := logUniform(r, 5, 40)
		l := lte(r, rate)
		switch r.IntN(3) {
		case 0:
			l.Trace = levels(r, 60*time.Second, rate/3, 3*rate)
		case 1:
			l.Loss = between(r, 0.0005, 0.005)
		case 2:
			l.Trace = levels(r, 60*time.Second, rate/1.5, 1.5*rate)
		}
		l.H2 = !s.Faults.NoPipeline && r.IntN(3) == 0
		s.Links, sum = append(s.Links, l), sum+l.Rate
	}
	s.Size = int64(60 * sum)
	if r.IntN(2) == 0 {
		s.Client = sum * between(r, 0.85, 1.15)
	}
	return s
}

// TestIndependent checks that links that are independent of one another are not left out, even if all of them vary.
func TestIndependent(t *testing.T) {
	n := uint64(10)
	if os.Getenv("SIM_LONG") != "" {
		n = 500
	}
	for i := range n {
		if r, said, at := verdicts(t, varied(i)); r.LeftOut > 0 {
			t.Errorf("scenario %d: %v after %v of %v", i, said, at, r.Took)
		}
	}
}

// TestOrdinary checks that no link of an ordinary transfer is ever left out. The transfers are those of the classes, eight times as
// long.
func TestOrdinary(t *testing.T) {
	n := uint64(3)
	if os.Getenv("SIM_LONG") != "" {
		n = 80
	}
	scheduler := cmp.Or(os.Getenv("SIM_SCHEDULER"), schedule.Default)
	for _, c := range Classes() {
		for i := range n {
			s := c.At(i)
			s.Size *= 8
			s.Scheduler = scheduler
			if r, said, at := verdicts(t, s); r.LeftOut > 0 {
				t.Errorf("%s, scenario %d: %v after %v of %v", c.Name, i, said, at, r.Took)
			}
		}
	}
}
