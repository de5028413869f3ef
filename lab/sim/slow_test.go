package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
)

// unequal returns a transfer of 20 s over links with the given rates in Mbit/s. The first link has the round-trip time near, the
// others far.
func unequal(near, far time.Duration, rates ...float64) Spec {
	s := Spec{Window: defaultWindow, First: 256 << 10}
	for i, r := range rates {
		l := Link{Rate: r * mbit, RTT: far}
		if i == 0 {
			l.RTT = near
		}
		s.Links = append(s.Links, l)
		s.Size += int64(20 * l.Rate)
	}
	return s
}

// slowPairs are rates in Mbit/s; under the published limits all but the fastest link are too slow, or nearly.
var slowPairs = [][]float64{
	{400, 20}, {400, 1}, {66.7, 7.49}, {100, 1}, {50, 0.09}, {20, 1}, {5, 0.09}, {1, 0.09}, {100, 50, 1}, {50, 0.09, 0.09},
}

// TestSlowLinks checks the promises of the guarded check. With it, a transfer takes at most 0.5 % and two of the longest round
// trips longer than without. Under the default scheduler it takes at most 1 %, two round trips, and half a second for each time
// that a link was tried longer than over the best link alone. Links are tried after 0, 5, 15, 35 s and then every 30 s.
func TestSlowLinks(t *testing.T) {
	schedulers := []string{schedule.Default}
	if os.Getenv("SIM_LONG") != "" {
		schedulers = append(schedulers, "alg3", "mphttp", "alg1", "dynamic", "static", "fixed", "msplayer")
	}
	for _, rates := range slowPairs {
		for _, rtt := range [][2]time.Duration{{10 * ms, 45 * ms}, {45 * ms, 10 * ms}, {10 * ms, 300 * ms}} {
			s := unequal(rtt[0], rtt[1], rates...)
			one := s
			one.Links = s.Links[:1]
			alone := run(t, "single", one).Took
			trips := 2 * max(rtt[0], rtt[1])
			line := fmt.Sprintf("%v Mbit/s, %v: alone %.2f s", rates, rtt, alone.Seconds())
			for _, name := range schedulers {
				s.Slow = health.SlowOff
				off := run(t, name, s)
				s.Slow = health.SlowGuarded
				guarded := run(t, name, s)
				line += fmt.Sprintf("; %s %.2f, guarded %.2f (%d bans)", name, off.Took.Seconds(), guarded.Took.Seconds(), guarded.Bans)
				if most := off.Took*1005/1000 + trips; guarded.Took > most {
					t.Errorf("%v, %v, %s: %v, without the check %v", rates, rtt, name, guarded.Took, off.Took)
				}
				if most := alone*101/100 + trips + time.Duration(guarded.Bans)*500*ms; name == schedule.Default && guarded.Took > most {
					t.Errorf("%v, %v, %s: %v, the best link alone %v", rates, rtt, name, guarded.Took, alone)
				}
				if guarded.Bans > 3*(len(rates)-1) {
					t.Errorf("%v, %v, %s: %d bans", rates, rtt, name, guarded.Bans)
				}
			}
			t.Log(line)
		}
	}
}

// TestSlowLinkHelps checks that 20 Mbit/s beside 400 are fully used, except with the check as published.
func TestSlowLinkHelps(t *testing.T) {
	s := unequal(10*ms, 45*ms, 400, 20)
	took := map[health.SlowCheck]time.Duration{}
	for _, check := range []health.SlowCheck{health.SlowOff, health.SlowGuarded, health.SlowLiteral} {
		s.Slow = check
		r := run(t, schedule.Default, s)
		took[check] = r.Took
		if banned := r.Bans > 0; banned != (check == health.SlowLiteral) {
			t.Errorf("%s: %d bans", check, r.Bans)
		}
	}
	t.Log(took)
	if took[health.SlowGuarded] != took[health.SlowOff] || took[health.SlowLiteral] < took[health.SlowGuarded]*103/100 {
		t.Errorf("%v", took)
	}
}

// TestSlowTable compares the three checks in docs/SIMULATOR.md: go test -C lab ./sim -run SlowTable -update.
func TestSlowTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| links | best alone | scheduler | off | guarded | literal |\n| --- | ---: | --- | ---: | ---: | ---: |\n")
	row := func(what string, s Spec, best Link) {
		one := s
		one.Links = []Link{best}
		alone := run(t, "single", one).Took
		for i, name := range []string{schedule.Default, "alg3"} {
			if i == 0 {
				fmt.Fprintf(&b, "| %s | %.1f s |", what, alone.Seconds())
			} else {
				b.WriteString("| | |")
			}
			fmt.Fprintf(&b, " %s |", name)
			for _, s.Slow = range []health.SlowCheck{health.SlowOff, health.SlowGuarded, health.SlowLiteral} {
				r := run(t, name, s)
				fmt.Fprintf(&b, " %.1f s", r.Took.Seconds())
				if r.Bans > 0 {
					fmt.Fprintf(&b, ", bans: %d", r.Bans)
				}
				b.WriteString(" |")
			}
			b.WriteByte('\n')
		}
	}
	for _, rates := range slowPairs[:5] {
		s := unequal(10*ms, 45*ms, rates...)
		row(fmt.Sprintf("%g + %g Mbit/s", rates[0], rates[1]), s, s.Links[0])
	}
	far := unequal(10*ms, 300*ms, 100, 1)
	row("100 + 1 Mbit/s, far", far, far.Links[0])
	falls := unequal(20*ms, 40*ms, 80, 60)
	falls.Links[0].Events = []LinkEvent{{At: 5 * time.Second, What: SetRate, Rate: 0.05 * mbit}}
	row("80, from 5 s on 0.05, + 60 Mbit/s", falls, falls.Links[1])
	inDoc(t, filepath.Join("..", "..", "docs", "SIMULATOR.md"), "slow links", b.String())
}

// TestLinkBecomesSlow checks that, when the first link falls to a hundredth of its rate in mid-transfer, the bytes that it owes do
// not delay the other link for long (row fail-2 of docs/REPRODUCTION.md).
func TestLinkBecomesSlow(t *testing.T) {
	for _, rate := range []float64{0.8, 0.2, 0.05} {
		s := unequal(20*ms, 40*ms, 80, 60)
		s.Links[0].Events = []LinkEvent{{At: 5 * time.Second, What: SetRate, Rate: rate * mbit}}
		s.Slow = health.SlowOff
		off := run(t, schedule.Default, s)
		s.Slow = ""
		guarded := run(t, schedule.Default, s)
		t.Logf("%g Mbit/s: %.2f s, pause %v; without the check %.2f s, pause %v", rate, guarded.Took.Seconds(), guarded.Pause, off.Took.Seconds(), off.Pause)
		if guarded.Pause > time.Second || guarded.Bans == 0 {
			t.Errorf("%g Mbit/s: a pause of %v, %d bans", rate, guarded.Pause, guarded.Bans)
		}
	}
}

// TestSlowInClasses checks that no link of the classes is banned for being slow: if links are alike, vary or are lossy, none delays
// the transfer.
func TestSlowInClasses(t *testing.T) {
	n := uint64(2)
	if os.Getenv("SIM_LONG") != "" {
		n = 80
	}
	for _, c := range Classes() {
		for i := range n {
			s := c.At(i)
			s.Scheduler = schedule.Default
			s.Log = func(now time.Duration, what string) {
				if strings.HasSuffix(what, health.TooSlow.String()) {
					t.Errorf("%s, scenario %d, after %v: %s", c.Name, i, now, what)
				}
			}
			if _, err := Run(s); err != nil {
				t.Fatal(err)
			}
		}
	}
}
