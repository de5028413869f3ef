package health_test

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
)

// TestLeaveOut: a link that adds nothing returns by itself, later each time, and at once when it is needed.
func TestLeaveOut(t *testing.T) {
	out := func(w *world) { w.b.LeaveOut(w.now, 0) }
	t.Run("it comes back without a probe", func(t *testing.T) {
		w := newWorld(t, 2)
		for _, wait := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
			out(w)
			w.want(0, health.Banned, health.NoGain)
			w.pass(wait*time.Second - ms)
			w.want(0, health.Banned, health.NoGain)
			w.pass(2 * ms)
			w.want(0, health.Up, health.NoCause)
		}
		if len(w.probes) != 0 {
			t.Errorf("probes %v", w.probes)
		}
	})
	t.Run("no sooner though links that have failed are probed often", func(t *testing.T) {
		w := hasty(t, 2, quick)
		out(w)
		w.pass(10*time.Second - ms)
		w.want(0, health.Banned, health.NoGain)
		w.pass(2 * ms)
		w.want(0, health.Up, health.NoCause)
		if len(w.probes) != 0 {
			t.Errorf("probes %v", w.probes)
		}
	})
	t.Run("nor does a probe from before end it", func(t *testing.T) {
		w := hasty(t, 2, quick)
		w.silent()
		w.tick()
		p := w.last()
		w.alive()
		out(w)
		w.b.Probed(w.now, p, health.Answered)
		w.pass(9 * time.Second)
		w.want(0, health.Banned, health.NoGain)
	})
	t.Run("nor does one of another origin", func(t *testing.T) {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		pace := func(int8) (least, most time.Duration) { return quick, quick }
		var all health.Boards
		all.Present(now, 0, true)
		all.Present(now, 1, true)
		one, other := all.Join(), all.Join()
		one.LeaveOut(now, 0)
		other.Silent(now, 0)
		other.Tick(now, pace) // this one is lost
		now = now.Add(quick)
		p, _ := other.Tick(now, pace)
		all.Probed(now, other, p[0], health.Answered)
		if s, _ := other.State(0); s != health.Up {
			t.Fatalf("the other origin's link is %v", s)
		}
		one.Tick(now, pace)
		if s, c := one.State(0); s != health.Banned || c != health.NoGain {
			t.Errorf("the link is %v (%v)", s, c)
		}
	})
	t.Run("taken back", func(t *testing.T) {
		w := newWorld(t, 2)
		out(w)
		w.b.TakeBack(w.now, 0)
		w.want(0, health.Up, health.NoCause)
	})
	t.Run("taken back after another ban", func(t *testing.T) {
		w := newWorld(t, 2)
		w.dial()
		w.b.TakeBack(w.now, 0)
		w.want(0, health.Banned, health.DialFailed)
	})
	for name, fails := range map[string]func(*world){
		"silent": func(w *world) { w.b.Silent(w.now, 1) },
		"dead":   func(w *world) { w.b.Failed(w.now, 1, health.DialFailed) },
		"gone":   func(w *world) { w.b.Present(w.now, 1, false) },
	} {
		t.Run("the other one is "+name, func(t *testing.T) {
			w := newWorld(t, 2)
			out(w)
			fails(w)
			w.want(0, health.Up, health.NoCause)
		})
	}
	t.Run("a third link is up", func(t *testing.T) {
		w := newWorld(t, 3)
		out(w)
		w.b.Silent(w.now, 1)
		w.want(0, health.Banned, health.NoGain)
	})
	t.Run("the last link is not left out", func(t *testing.T) {
		w := newWorld(t, 1)
		out(w)
		w.want(0, health.Up, health.NoCause)
		w = newWorld(t, 2)
		w.b.Silent(w.now, 1)
		out(w)
		w.want(0, health.Up, health.NoCause)
	})
	t.Run("nor is one that is not up", func(t *testing.T) {
		w := newWorld(t, 2)
		w.silent()
		out(w)
		w.want(0, health.Suspect, health.Silence)
	})
}
