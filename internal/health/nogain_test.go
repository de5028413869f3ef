package health_test

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/health"
)

// TestLeaveOut: a link that adds nothing comes back by itself, later each time, and at once when it is needed.
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
