package health_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
)

// TestRandom drives boards with random events and checks after each that not every present link is banned, that no deadline is
// forgotten, and that the reported changes add up to the states.
func TestRandom(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		n := 1 + rnd.IntN(4)
		w := newWorld(t, int8(n))
		told := make([]health.State, n)
		w.pace = []time.Duration{250 * ms, time.Second, health.Seldom}[seed%3]
		out := make([][]health.Probe, n) // probes under way, by link
		for step := range 400 {
			i := int8(rnd.IntN(n))
			switch rnd.IntN(11) {
			case 0:
				w.b.Present(w.now, i, rnd.IntN(3) > 0)
			case 1:
				w.b.Silent(w.now, i)
			case 2:
				w.b.Alive(w.now, i)
			case 3:
				w.b.Failed(w.now, i, []health.Cause{health.DialFailed, health.BindFailed}[rnd.IntN(2)])
			case 4:
				if len(out[i]) > 0 {
					k := rnd.IntN(len(out[i]))
					p := out[i][k]
					out[i] = slices.Delete(out[i], k, k+1)
					w.b.Probed(w.now, p, []health.Answer{health.Answered, health.NoAnswer, health.NotSent}[rnd.IntN(3)])
				}
			case 5:
				r := []float64{10 * kbit, 60 * mbit}[rnd.IntN(2)]
				for range 1 + rnd.IntN(100) {
					w.now = w.now.Add(100 * ms)
					for j := range int8(n) {
						is := health.Speed{Rate: map[bool]float64{true: r, false: 20 * mbit}[i == j], Gain: 1e6 * float64(rnd.IntN(3)-1)}
						w.b.Speed(w.now, j, is, []health.SlowCheck{health.SlowGuarded, health.SlowLiteral}[seed%2])
					}
				}
			case 6:
				w.b.LeaveOut(w.now, i)
			case 7:
				w.b.TakeBack(w.now, i)
			default:
				w.now = w.now.Add(time.Duration(rnd.IntN(2000)) * ms)
			}
			before := len(w.probes)
			next := w.tick()
			for _, c := range w.b.Changes() {
				if told[c.Link] == c.State && c.State != health.Suspect {
					t.Fatalf("seed %d step %d: told twice: %v", seed, step, c)
				}
				told[c.Link] = c.State
				if c.State == health.Down || c.State == health.Up { // probes under way are forgotten
					out[c.Link] = nil
				}
			}
			for _, p := range w.probes[before:] {
				if s, _ := w.b.State(p.Link); s == health.Down || s == health.Up {
					t.Fatalf("seed %d step %d: a probe of link %d, which is %v", seed, step, p.Link, s)
				}
				out[p.Link] = append(out[p.Link], p)
			}
			for j, o := range out {
				if len(o) > 16 {
					t.Fatalf("seed %d step %d: %d probes of link %d are under way", seed, step, len(o), j)
				}
			}
			present, banned := 0, 0
			for j := range int8(n) {
				s, c := w.b.State(j)
				if s != told[j] {
					t.Fatalf("seed %d step %d: link %d is %v, told %v", seed, step, j, s, told[j])
				}
				if (c == health.NoCause) != (s == health.Up) {
					t.Fatalf("seed %d step %d: link %d is %v because %q", seed, step, j, s, c)
				}
				if s != health.Down {
					present++
				}
				if s == health.Banned || s == health.Probing {
					banned++
				}
				if (s == health.Banned || s == health.Suspect) && len(out[j]) == 0 && next.IsZero() {
					t.Fatalf("seed %d step %d: link %d is %v and nothing is due", seed, step, j, s)
				}
			}
			if present > 0 && banned == present {
				t.Fatalf("seed %d step %d: all %d links that are there are banned", seed, step, present)
			}
		}
	}
}
