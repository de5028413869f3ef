package health_test

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/health"
)

const (
	kbit = 1e3 / 8 // bytes per second
	mbit = 1e6 / 8
)

// report reports the rates of links 0, 1, ... every 100 ms for a time.
func (w *world) report(d time.Duration, rates ...float64) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.pass(100 * ms)
		for i, r := range rates {
			w.b.Rate(w.now, int8(i), r, health.PaperLimits)
		}
	}
}

// Vectors for the slow-link checks of Skjolden 2019 section 8.2.4.
func TestSlowVectors(t *testing.T) {
	t.Run("90 kbit/s beside 110 stays: the other is no better", func(t *testing.T) {
		w := newWorld(t, 2)
		w.report(time.Minute, 90*kbit, 110*kbit)
		w.want(0, health.Up, health.NoCause)
		w.want(1, health.Up, health.NoCause)
	})
	t.Run("7.49 beside 66.70 Mbit/s survives a dip of 1 %", func(t *testing.T) {
		w := newWorld(t, 2)
		w.report(20*time.Second, 7.49*mbit, 66.70*mbit)
		w.report(time.Minute, 0.99*7.49*mbit, 66.70*mbit) // the limit is 0.2 x the mean: 7.41 to 7.42 Mbit/s
		w.report(time.Minute, 0.97*7.49*mbit, 66.70*mbit)
		w.want(0, health.Up, health.NoCause)
	})
	for _, v := range []struct{ slow, fast float64 }{{15.30, 82.14}, {14.07, 66.94}, {52.1, 94.7}} {
		w := newWorld(t, 2)
		w.report(time.Minute, v.slow*mbit, v.fast*mbit)
		w.want(0, health.Up, health.NoCause)
	}
	t.Run("50 kbit/s beside 60 Mbit/s is banned after warm-up and patience", func(t *testing.T) {
		w := newWorld(t, 2)
		w.report(7900*ms, 50*kbit, 60*mbit)
		w.want(0, health.Up, health.NoCause)
		w.report(300*ms, 50*kbit, 60*mbit)
		w.want(0, health.Banned, health.TooSlow)
		w.want(1, health.Up, health.NoCause)
	})
	t.Run("the last link stays", func(t *testing.T) {
		w := newWorld(t, 1)
		w.report(time.Minute, 50*kbit)
		w.want(0, health.Up, health.NoCause)
	})
	t.Run("the last link stays though another is banned", func(t *testing.T) {
		w := newWorld(t, 2)
		w.b.Failed(w.now, 1, health.DialFailed)
		w.report(time.Minute, 50*kbit, 60*mbit) // its last bytes
		w.want(0, health.Up, health.NoCause)
	})
	t.Run("two links are compared: the limit is a ninth of the other", func(t *testing.T) { // x < 0.2 (x+y)/2
		for share, want := range map[float64]health.State{1.0 / 9: health.Up, 0.8 / 9.9: health.Banned} {
			w := newWorld(t, 2)
			w.report(20*time.Second, share*90*mbit, 90*mbit)
			if s, _ := w.b.State(0); want == health.Up && s != want || want == health.Banned && w.b.Bans(0) == 0 {
				t.Errorf("at %.3f of the other link: %v", share, s)
			}
		}
	})
}

func TestSlowGuards(t *testing.T) {
	t.Run("all slow: let them finish", func(t *testing.T) {
		w := newWorld(t, 3)
		w.report(time.Minute, 40*kbit, 50*kbit, 60*kbit)
		for i := range int8(3) {
			w.want(i, health.Up, health.NoCause)
		}
	})
	t.Run("warm-up: LTE needs 2.5 s on average", func(t *testing.T) {
		w := newWorld(t, 2)
		w.report(4*time.Second, 500*kbit, 60*mbit)
		w.report(20*time.Second, 20*mbit, 60*mbit)
		w.want(0, health.Up, health.NoCause)
	})
	t.Run("a dip shorter than 3 s", func(t *testing.T) {
		w := newWorld(t, 2)
		for range 5 {
			w.report(10*time.Second, 20*mbit, 60*mbit)
			w.report(2800*ms, 50*kbit, 60*mbit)
		}
		w.want(0, health.Up, health.NoCause)
	})
	t.Run("a dip longer than 3 s", func(t *testing.T) {
		w := newWorld(t, 2)
		w.report(10*time.Second, 20*mbit, 60*mbit)
		w.report(3200*ms, 50*kbit, 60*mbit)
		w.want(0, health.Banned, health.TooSlow)
	})
	t.Run("a pause begins a new warm-up", func(t *testing.T) {
		w := newWorld(t, 2)
		for range 5 {
			w.report(6*time.Second, 50*kbit, 60*mbit)
			w.pass(2 * time.Second)
		}
		w.want(0, health.Up, health.NoCause)
	})
	t.Run("a link that is not reported does not count", func(t *testing.T) {
		w := newWorld(t, 2)
		w.report(100*ms, 20*mbit, 60*mbit)
		w.report(time.Minute, 50*kbit)
		w.want(0, health.Up, health.NoCause)
	})
	t.Run("a suspect does not count", func(t *testing.T) {
		w := newWorld(t, 2)
		w.b.Silent(w.now, 1)
		w.report(2900*ms, 50*kbit, 60*mbit)
		w.want(0, health.Up, health.NoCause)
	})
	t.Run("a link that comes back is warmed up again", func(t *testing.T) {
		w := newWorld(t, 2)
		w.report(8200*ms, 50*kbit, 60*mbit)
		w.want(0, health.Banned, health.TooSlow)
		w.answer(true)
		w.report(7900*ms, 50*kbit, 60*mbit)
		w.want(0, health.Up, health.NoCause)
		w.report(300*ms, 50*kbit, 60*mbit)
		w.want(0, health.Banned, health.TooSlow)
	})
	t.Run("without limits nothing is slow", func(t *testing.T) {
		w := newWorld(t, 2)
		for range 300 {
			w.pass(100 * ms)
			w.b.Rate(w.now, 0, 1, health.Limits{})
			w.b.Rate(w.now, 1, 60*mbit, health.Limits{})
		}
		w.want(0, health.Up, health.NoCause)
	})
	t.Run("the static limit alone", func(t *testing.T) {
		w := newWorld(t, 2)
		for range 100 {
			w.pass(100 * ms)
			w.b.Rate(w.now, 0, 70*kbit, health.Limits{Static: health.PaperLimits.Static})
			w.b.Rate(w.now, 1, 300*kbit, health.Limits{Static: health.PaperLimits.Static})
		}
		if w.b.Bans(0) != 1 || w.b.Bans(1) != 0 {
			t.Errorf("bans %d and %d", w.b.Bans(0), w.b.Bans(1))
		}
	})
}
