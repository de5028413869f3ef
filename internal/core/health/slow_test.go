package health_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
)

const (
	kbit = 1e3 / 8 // bytes per second
	mbit = 1e6 / 8
)

// report reports the speeds of links 0, 1, ... once, that of link 0 last.
func (w *world) report(check health.SlowCheck, all ...health.Speed) {
	for i, s := range slices.Backward(all) {
		w.b.Speed(w.now, int8(i), s, check)
	}
}

// rates returns speeds of links that do not hold each other up, reported every 100 ms.
func rates(all ...float64) (speeds []health.Speed) {
	for _, r := range all {
		speeds = append(speeds, health.Speed{Rate: r, Gain: r / 10})
	}
	return speeds
}

// TestSlowLiteral has vectors for both checks of Skjolden 2019 section 8.2.4 as published: a link is dropped at once under 100
// kbit/s, or under 0.2 times the mean rate.
func TestSlowLiteral(t *testing.T) {
	for _, v := range []struct {
		name   string
		rates  []float64
		banned []int8
	}{
		{"static: 90 kbit/s, though the other is no better", []float64{90 * kbit, 110 * kbit}, []int8{0}},
		{"static: 100 kbit/s is enough", []float64{100 * kbit, 110 * kbit}, nil},
		{"static: all are slow, let them finish", []float64{60 * kbit, 70 * kbit, 80 * kbit}, nil},
		{"static: the only link", []float64{50 * kbit}, nil},
		{"dynamic: 7.49 beside 66.70 Mbit/s, limit 7.42", []float64{7.49 * mbit, 66.70 * mbit}, nil},
		{"dynamic: the same after a dip", []float64{7.40 * mbit, 66.70 * mbit}, []int8{0}},
		{"dynamic: 15.30 beside 82.14, limit 9.74", []float64{15.30 * mbit, 82.14 * mbit}, nil},
		{"dynamic: 14.07 beside 66.94, limit 8.10", []float64{14.07 * mbit, 66.94 * mbit}, nil},
		{"dynamic: 52.1 beside 94.7, limit 14.7", []float64{52.1 * mbit, 94.7 * mbit}, nil},
		{"dynamic: 400 + 20, limit 42", []float64{400 * mbit, 20 * mbit}, []int8{1}},
		{"dynamic: two links, a ninth of the other", []float64{9 * mbit, 1.001 * mbit}, nil},
		{"dynamic: two links, less", []float64{9 * mbit, 0.999 * mbit}, []int8{1}},
		{"dynamic: three links, limit 10", []float64{100 * mbit, 39 * mbit, 11 * mbit}, nil},
		{"dynamic: three links, limit 10, and 14 without the third", []float64{100 * mbit, 41 * mbit, 9 * mbit}, []int8{2}},
		{"dynamic: the only link", []float64{mbit}, nil},
	} {
		t.Run(v.name, func(t *testing.T) {
			w := newWorld(t, int8(len(v.rates)))
			w.report(health.SlowLiteral, rates(v.rates...)...)
			w.report(health.SlowLiteral, rates(v.rates...)...) // only now the last link has another one beside it
			var banned []int8
			for i := range int8(len(v.rates)) {
				if s, c := w.b.State(i); s == health.Banned && c == health.TooSlow {
					banned = append(banned, i)
				}
			}
			if !slices.Equal(banned, v.banned) {
				t.Errorf("banned %v, want %v", banned, v.banned)
			}
		})
	}
}

// TestSlowGuarded: a link under a published limit is banned only if the others have waited for it for 200 ms more than it has made
// up for.
func TestSlowGuarded(t *testing.T) {
	// hinder reports for d that a link with this rate holds up a faster one for a part of the time.
	hinder := func(w *world, check health.SlowCheck, d time.Duration, slow, fast, part float64) {
		for end := w.now.Add(d); w.now.Before(end); {
			w.pass(100 * ms)
			w.report(check, health.Speed{Rate: slow, Gain: slow/10 - part*fast/10}, health.Speed{Rate: fast, Gain: (1 - part) * fast / 10})
		}
	}
	up := func(t *testing.T, w *world) {
		t.Helper()
		if w.b.Bans(0) > 0 || w.b.Bans(1) > 0 {
			t.Errorf("bans %d and %d, want none", w.b.Bans(0), w.b.Bans(1))
		}
	}
	for name, v := range map[string]struct{ slow, fast, part float64 }{
		"400 + 20, nobody waits":               {20 * mbit, 400 * mbit, 0},
		"100 + 1, nobody waits":                {1 * mbit, 100 * mbit, 0},
		"50 + 0.09, nobody waits":              {90 * kbit, 50 * mbit, 0},
		"90 kbit/s beside 110":                 {90 * kbit, 110 * kbit, 0},
		"400 + 20, the wait costs less":        {20 * mbit, 400 * mbit, 0.045},
		"not under a limit, though all wait":   {50 * mbit, 400 * mbit, 1},
		"7.5 beside 66.7, always waited for":   {7.5 * mbit, 66.7 * mbit, 1},
		"90 beside 110 kbit/s, as long a wait": {110 * kbit, 120 * kbit, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			hinder(w, health.SlowGuarded, time.Minute, v.slow, v.fast, v.part)
			up(t, w)
		})
	}
	for name, v := range map[string]struct {
		slow, fast, part float64
		after            time.Duration
	}{
		"400 + 20, the wait costs more than it brings": {20 * mbit, 400 * mbit, 0.06, 20 * time.Second},
		"400 + 1, 40 % of the time":                    {1 * mbit, 400 * mbit, 0.4, 600 * ms},
		"60 + 0.05, all the time":                      {50 * kbit, 60 * mbit, 1, 300 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			hinder(w, health.SlowGuarded, v.after-100*ms, v.slow, v.fast, v.part)
			up(t, w)
			hinder(w, health.SlowGuarded, 100*ms, v.slow, v.fast, v.part)
			w.want(0, health.Banned, health.TooSlow)
			w.want(1, health.Up, health.NoCause)
		})
	}
	t.Run("a wait now and then", func(t *testing.T) {
		w := newWorld(t, 2)
		for range 5 {
			hinder(w, health.SlowGuarded, 200*ms, 20*mbit, 400*mbit, 0.9)
			hinder(w, health.SlowGuarded, 5*time.Second, 20*mbit, 400*mbit, 0)
		}
		up(t, w)
	})
	t.Run("a dip of a link that has brought much", func(t *testing.T) {
		w := newWorld(t, 2)
		hinder(w, health.SlowGuarded, 10*time.Second, 40*mbit, 40*mbit, 0)
		hinder(w, health.SlowGuarded, 2*time.Second, 1*mbit, 40*mbit, 1) // as long as its earlier bytes make up for
		up(t, w)
		hinder(w, health.SlowGuarded, 400*ms, 1*mbit, 40*mbit, 1)
		w.want(0, health.Banned, health.TooSlow)
	})
	t.Run("the last link stays", func(t *testing.T) {
		w := newWorld(t, 1)
		w.report(health.SlowGuarded, health.Speed{Rate: 50 * kbit, Gain: -1e9})
		w.want(0, health.Up, health.NoCause)
	})
	t.Run("a link that is not reported does not count", func(t *testing.T) {
		w := newWorld(t, 2)
		w.report(health.SlowGuarded, rates(20*mbit, 60*mbit)...)
		w.pass(1100 * ms)
		w.report(health.SlowGuarded, health.Speed{Rate: 50 * kbit, Gain: -1e9})
		w.want(0, health.Up, health.NoCause)
	})
	t.Run("a suspect does not count", func(t *testing.T) {
		w := newWorld(t, 2)
		w.b.Silent(w.now, 1)
		hinder(w, health.SlowGuarded, time.Second, 50*kbit, 60*mbit, 1)
		w.want(0, health.Up, health.NoCause)
	})
	t.Run("a banned link comes back later each time, and on probation", func(t *testing.T) {
		w := newWorld(t, 2)
		for n, wait := range []time.Duration{5, 10, 20, 30, 30} {
			if n == 0 {
				hinder(w, health.SlowGuarded, 200*ms, 50*kbit, 60*mbit, 1)
				up(t, w)
			}
			hinder(w, health.SlowGuarded, 100*ms, 50*kbit, 60*mbit, 1)
			w.want(0, health.Banned, health.TooSlow)
			banned := w.now
			w.answer(true)
			if got := w.now.Sub(banned); got != wait*time.Second {
				t.Errorf("ban %d took %v, want %v s", n, got, int64(wait))
			}
		}
	})
	t.Run("probation ends", func(t *testing.T) {
		w := newWorld(t, 2)
		hinder(w, health.SlowGuarded, 300*ms, 20*mbit, 400*mbit, 1)
		w.want(0, health.Banned, health.TooSlow)
		w.answer(true)
		hinder(w, health.SlowGuarded, 5*time.Second, 20*mbit, 400*mbit, 0)
		hinder(w, health.SlowGuarded, 200*ms, 20*mbit, 400*mbit, 1)
		w.want(0, health.Up, health.NoCause)
		hinder(w, health.SlowGuarded, 100*ms, 20*mbit, 400*mbit, 1)
		w.want(0, health.Banned, health.TooSlow)
	})
	t.Run("off", func(t *testing.T) {
		w := newWorld(t, 2)
		hinder(w, health.SlowOff, time.Minute, 50*kbit, 60*mbit, 1)
		up(t, w)
	})
}
