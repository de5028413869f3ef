package health_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
)

const (
	quick   = 250 * ms
	metered = time.Second
	soon    = 50 * ms
)

// hasty makes a world in which links that failed recently are probed at the given pace.
func hasty(t *testing.T, links int8, pace time.Duration) *world {
	w := newWorld(t, links)
	w.soon, w.pace = pace, pace
	if pace == quick {
		w.soon = soon
	}
	return w
}

// dark lets time pass while link 0 loses every packet: probes are given up when their time is over. From back on, counted from the
// start, it answers probes that were sent within the round trip. It returns when the probes were sent, up to a time or until the
// link is up.
func (w *world) dark(until, back, rtt time.Duration) (sent []time.Duration) {
	w.t.Helper()
	type result struct {
		at time.Time
		p  health.Probe
		a  health.Answer
	}
	var results []result
	for {
		known := len(w.probes)
		next := w.tick()
		for _, p := range w.probes[known:] {
			at := p.At.Sub(w.start)
			sent = append(sent, at)
			r := result{p.At.Add(p.For), p, health.NoAnswer}
			if at >= back && rtt < p.For {
				r = result{p.At.Add(rtt), p, health.Answered}
			}
			results = append(results, r)
		}
		slices.SortStableFunc(results, func(a, b result) int { return a.at.Compare(b.at) })
		switch {
		case len(results) > 0 && (next.IsZero() || !results[0].at.After(next)):
			w.now = results[0].at
			w.b.Probed(w.now, results[0].p, results[0].a)
			results = results[1:]
		case next.IsZero():
			w.t.Fatal("nothing is due, ever")
		default:
			w.now = next
		}
		if s, _ := w.b.State(0); s == health.Up || w.now.Sub(w.start) >= until {
			return sent
		}
	}
}

// TestFailedLinkIsProbedOften: from the first suspicion on, a link is probed every 50 ms at first and every 250 ms later, over a
// metered link once a second. After 10 s probes become rare: a link gets few of them per minute.
func TestFailedLinkIsProbedOften(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pace   time.Duration
		minute int
	}{{"unmetered", quick, 54 + 5}, {"metered", metered, 10 + 5}} {
		for name, fail := range map[string]func(*world){"silent": (*world).silent, "no connection": (*world).dial} {
			t.Run(tt.name+", "+name, func(t *testing.T) {
				w := hasty(t, 2, tt.pace)
				fail(w)
				sent := w.dark(time.Minute, time.Hour, 0)
				var want time.Duration
				for i := 0; want < 10*time.Second; i++ {
					if sent[i] != want {
						t.Fatalf("probe %d after %v, want %v", i, sent[i], want)
					}
					want += max(w.soon, min(tt.pace, want/8))
				}
				if len(sent) != tt.minute {
					t.Errorf("%d probes in a minute, want %d: %v", len(sent), tt.minute, sent)
				}
				if n := w.b.Bans(0); n != 1 {
					t.Errorf("%d bans", n)
				}
			})
		}
	}
	t.Run("while no transfer waits for it there is none", func(t *testing.T) {
		w := hasty(t, 2, 0)
		w.silent()
		w.pass(time.Hour)
		if len(w.probes) > 0 {
			t.Errorf("probes %v", w.probes)
		}
	})
	t.Run("a slow link answers: no need to ask often", func(t *testing.T) {
		w := hasty(t, 2, quick)
		w.report(health.SlowLiteral, rates(50*kbit, 60*mbit)...)
		w.want(0, health.Banned, health.TooSlow)
		banned := w.now
		if p := w.answer(true); p.at < banned.Sub(w.start)+900*ms {
			t.Errorf("probed after %v", p.at-banned.Sub(w.start))
		}
	})
}

// TestLinkReturnsAtOnce: a link that was away is up one round trip after the first probe since its return.
func TestLinkReturnsAtOnce(t *testing.T) {
	for _, links := range []int8{1, 2} {
		for _, rtt := range []time.Duration{20 * ms, 600 * ms} {
			for back := 10 * ms; back < 9700*ms; back += 70 * ms {
				w := hasty(t, links, quick)
				w.silent()
				w.dark(time.Minute, back, rtt)
				if took := w.now.Sub(w.start) - back; took > min(quick, max(soon, back/7))+rtt {
					t.Errorf("of %d links with a round trip of %v one that is back after %v is up %v later", links, rtt, back, took)
				}
				w.want(0, health.Up, health.NoCause)
			}
		}
	}
}

// TestOriginStalls: a link on which the first probe is answered was not away. Neither a new connection nor frequent probes would
// help: the ban starts and ends as it would without probes.
func TestOriginStalls(t *testing.T) {
	for _, rtt := range []time.Duration{20 * ms, 600 * ms} {
		w := hasty(t, 2, quick)
		w.soon = min(max(rtt, soon), quick) // as in the engine
		w.silent()
		sent := w.dark(3999*ms, 0, rtt)
		w.want(0, health.Banned, health.Silence)
		if n := int(rtt/quick) + 1; len(sent) != n {
			t.Errorf("round trip %v: probes at %v, want %d", rtt, sent, n)
		}
		w.dark(time.Minute, 0, rtt)
		if up := w.now.Sub(w.start); up != 4*time.Second+rtt {
			t.Errorf("round trip %v: up after %v", rtt, up)
		}
	}
	t.Run("the last link: as often as ever", func(t *testing.T) {
		w := hasty(t, 1, quick)
		w.silent()
		w.dark(time.Minute, 0, 20*ms)
		if up := w.now.Sub(w.start); up != 4*time.Second+20*ms {
			t.Errorf("up after %v", up)
		}
	})
	t.Run("the next time it is asked anew", func(t *testing.T) {
		w := hasty(t, 2, quick)
		w.silent()
		w.dark(time.Second, 0, 20*ms)
		w.alive()
		w.silent()
		if n := len(w.probes); n != 1 {
			t.Fatalf("%d probes", n)
		}
		if w.tick(); len(w.probes) != 2 {
			t.Errorf("%d probes, want 2", len(w.probes))
		}
	})
}

// TestProbeOvertakesALostOne has answers to some of three probes: a later one that is answered first shows that the link was away.
func TestProbeOvertakesALostOne(t *testing.T) {
	const y, n, x = health.Answered, health.NoAnswer, health.NotSent
	type result struct {
		probe int
		a     health.Answer
	}
	for _, tt := range []struct {
		name    string
		results []result
		want    health.State
	}{
		{"the first", []result{{0, y}}, health.Suspect},
		{"all in order", []result{{0, y}, {1, y}, {2, y}}, health.Suspect},
		{"the second before the first", []result{{1, y}}, health.Up},
		{"the third before the second", []result{{0, y}, {2, y}}, health.Up},
		{"after one that was given up", []result{{0, n}, {1, y}}, health.Up},
		{"given up", []result{{0, n}, {1, n}, {2, n}}, health.Suspect},
		{"that could not be made", []result{{0, x}, {1, x}, {2, x}}, health.Suspect},
		{"after one that could not be made", []result{{0, x}, {1, y}}, health.Suspect},
		{"after one that could not be made and a lost one", []result{{0, x}, {2, y}}, health.Up},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := hasty(t, 2, quick)
			w.silent()
			w.pass(2 * quick)
			for _, r := range tt.results {
				w.b.Probed(w.now, w.probes[r.probe], r.a)
			}
			if s, _ := w.b.State(0); s != tt.want {
				t.Errorf("the link is %v, want %v", s, tt.want)
			}
		})
	}
}

// TestReturnIsNewsForOtherOrigins: what one origin's probe finds, the probes of the others find next, however rare theirs are.
func TestReturnIsNewsForOtherOrigins(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var all health.Boards
	all.Present(now, 0, true)
	all.Present(now, 1, true)
	one, other := all.Join(), all.Join()
	one.Silent(now, 0)
	other.Silent(now, 0)
	pace := func(d time.Duration) health.Pace { return func(int8) (least, most time.Duration) { return d, d } }
	lost, _ := one.Tick(now, pace(quick))
	other.Tick(now, pace(5*time.Second))
	now = now.Add(quick)
	p, _ := one.Tick(now, pace(quick))
	if len(lost) != 1 || len(p) != 1 {
		t.Fatalf("probes %v, %v", lost, p)
	}
	if early, next := other.Tick(now, pace(5*time.Second)); len(early) != 0 || !next.After(now) {
		t.Fatalf("probes %v, then at %v", early, next)
	}
	all.Probed(now, one, p[0], health.Answered)
	if s, _ := one.State(0); s != health.Up {
		t.Fatalf("the link is %v", s)
	}
	if p, _ := other.Tick(now, pace(5*time.Second)); len(p) != 1 {
		t.Errorf("%d probes of the other origin's", len(p))
	}
}

// TestLasting: when a failure has lasted as long as a suspicion may.
func TestLasting(t *testing.T) {
	w := hasty(t, 1, quick)
	lasts := func(want bool) {
		t.Helper()
		if w.b.Lasting(w.now, 0) != want {
			t.Errorf("after %v: %v", w.now.Sub(w.start), !want)
		}
	}
	w.pass(time.Minute)
	lasts(false)
	w.silent()
	w.pass(3*time.Second - ms)
	lasts(false)
	w.pass(ms)
	lasts(true)
	w.down()
	lasts(false)
}
