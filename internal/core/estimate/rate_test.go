package estimate_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
)

// start is an arbitrary time: the package reads no clock.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	ms = time.Millisecond
	mb = 1e6 // bytes
)

// feed adds bytes at a rate for a time, one portion every step, and returns the time of the last.
func feed(r *estimate.Rate, now time.Time, perSecond float64, d, step time.Duration) time.Time {
	due := 0.0
	for end := now.Add(d); now.Before(end); {
		now = now.Add(step)
		due += perSecond * step.Seconds()
		n := math.Floor(due)
		due -= n
		r.Add(now, int64(n))
	}
	return now
}

func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*want {
		t.Errorf("%s: %.0f, want %.0f within %g %%", what, got, want, share*100)
	}
}

func TestRateConstant(t *testing.T) {
	for _, perSecond := range []float64{12500, 0.94 * mb, 8.34 * mb, 125 * mb} {
		for _, step := range []time.Duration{ms, 7 * ms, 40 * ms, 120 * ms} {
			t.Run(fmt.Sprintf("%.0f B/s every %v", perSecond, step), func(t *testing.T) {
				var r estimate.Rate
				now := start
				for range 20 {
					now = feed(&r, now, perSecond, 500*ms, step)
					near(t, "rate", r.PerSecond(now), perSecond, 0.01)
				}
				near(t, "peak", r.Peak(), perSecond, 0.01)
			})
		}
	}
}

func TestRateNothingKnown(t *testing.T) {
	var r estimate.Rate
	if r.PerSecond(start) != 0 || r.Peak() != 0 {
		t.Errorf("rate %g, peak %g before the first byte", r.PerSecond(start), r.Peak())
	}
	r.Add(start, 64<<10) // starts the clock: the time that these bytes took is unknown
	if got := r.PerSecond(start.Add(50 * ms)); got != 0 {
		t.Errorf("rate %g after one portion", got)
	}
	r.Add(start.Add(50*ms), 50e3)
	near(t, "rate after the second portion", r.PerSecond(start.Add(50*ms)), mb, 0.01)
	if got := r.Peak(); got != 0 {
		t.Errorf("peak %g after 50 ms", got)
	}
}

func TestRateSeed(t *testing.T) {
	var r estimate.Rate
	r.Seed(5 * mb)
	near(t, "rate before the first byte", r.PerSecond(start), 5*mb, 0)
	near(t, "peak before the first byte", r.Peak(), 5*mb, 0)
	r.Add(start, 64<<10)
	near(t, "rate after one portion", r.PerSecond(start.Add(10*ms)), 5*mb, 0)
	now := feed(&r, start, mb, 500*ms, 10*ms)
	near(t, "own rate", r.PerSecond(now), mb, 0.01)
	near(t, "own peak", r.Peak(), mb, 0.01)
}

func TestRateIdle(t *testing.T) {
	var r estimate.Rate
	now := feed(&r, start, 2*mb, time.Second, 10*ms)
	for _, pause := range []time.Duration{ms, 300 * ms, 5 * time.Second, time.Hour} {
		r.Idle()
		now = now.Add(pause)
		near(t, fmt.Sprintf("after %v idle", pause), r.PerSecond(now), 2*mb, 0.01)
		r.Add(now, 700e3) // bytes that had accumulated
		near(t, "with the first bytes after it", r.PerSecond(now), 2*mb, 0.01)
		now = feed(&r, now, 2*mb, 200*ms, 10*ms)
		near(t, "when bytes come again", r.PerSecond(now), 2*mb, 0.01)
		near(t, "peak", r.Peak(), 2*mb, 0.01)
	}
}

func TestRateSilence(t *testing.T) {
	var r estimate.Rate
	now := feed(&r, start, 2*mb, 2*time.Second, 10*ms)
	last := r.PerSecond(now)
	for _, d := range []time.Duration{50 * ms, 150 * ms, 500 * ms, time.Second, 10 * time.Second} {
		got := r.PerSecond(now.Add(d))
		if got >= last {
			t.Errorf("after %v of silence %g, not below %g", d, got, last)
		}
		if d == 150*ms { // the weights add up to 150 ms
			near(t, "after 150 ms of silence", got, mb, 0.05)
		}
		last = got
	}
	if last > 0.05*mb {
		t.Errorf("after 10 s of silence %g", last)
	}
	near(t, "asking does not change the estimate", r.PerSecond(now), 2*mb, 0.01)
	near(t, "peak", r.Peak(), 2*mb, 0.01)
}

func TestRateFollows(t *testing.T) {
	for _, f := range []float64{10, 3, 1.0 / 3, 0.1} {
		t.Run(fmt.Sprintf("x %.2f", f), func(t *testing.T) {
			var r estimate.Rate
			now := feed(&r, start, mb, 3*time.Second, 10*ms)
			now = feed(&r, now, f*mb, time.Second, 10*ms)
			near(t, "1 s after a step", r.PerSecond(now), f*mb, 0.2)
			now = feed(&r, now, f*mb, time.Second, 10*ms)
			near(t, "2 s after a step", r.PerSecond(now), f*mb, 0.01)
		})
	}
	// LTE ramps up from a third of its rate within 2.5 s.
	t.Run("ramp", func(t *testing.T) {
		var r estimate.Rate
		now := start
		for now.Before(start.Add(2500 * ms)) {
			now = now.Add(10 * ms)
			at := mb * (1 + 2*now.Sub(start).Seconds()/2.5)
			r.Add(now, int64(at*0.01))
			if behind := at - r.PerSecond(now); now.Sub(start) > time.Second && behind > 0.8*mb { // 1 s of the ramp
				t.Fatalf("%v on the way up %g B/s behind", now.Sub(start), behind)
			}
		}
		now = feed(&r, now, 3*mb, time.Second, 10*ms)
		near(t, "1 s after the ramp", r.PerSecond(now), 3*mb, 0.02)
	})
}

func TestPeakWindow(t *testing.T) {
	var r estimate.Rate
	now := feed(&r, start, 8*mb, 2*time.Second, 10*ms)
	high := now
	for now.Sub(high) < 30*time.Second {
		now = feed(&r, now, mb, 500*ms, 10*ms)
		switch age := now.Sub(high); {
		case age < 9*time.Second:
			near(t, fmt.Sprintf("peak of %v ago", age), r.Peak(), 8*mb, 0.01)
		case age > 20*time.Second:
			near(t, fmt.Sprintf("peak without that of %v ago", age), r.Peak(), mb, 0.01)
		}
	}
}

// The rate of a link before a pause is the best guess of its rate after it.
func TestPeakKeptWhileIdle(t *testing.T) {
	var r estimate.Rate
	now := feed(&r, start, 8*mb, 2*time.Second, 10*ms)
	r.Idle()
	now = feed(&r, now.Add(time.Minute), mb, 2*time.Second, 10*ms)
	near(t, "peak of before a minute of idleness", r.Peak(), 8*mb, 0.01)
	feed(&r, now, mb, 20*time.Second, 10*ms)
	near(t, "peak after 20 s of less", r.Peak(), mb, 0.01)
}

func TestPeakIgnoresTheFirstBurst(t *testing.T) {
	var r estimate.Rate
	now := start
	for range 10 { // bytes in the socket buffer arrive at the speed of memory
		now = now.Add(ms)
		r.Add(now, 64<<10)
	}
	feed(&r, now, mb, 3*time.Second, 10*ms)
	if r.Peak() > 10*mb {
		t.Errorf("peak %g of a link at %g", r.Peak(), mb)
	}
}

// TestSustained checks that the long average forgets the ramp-up of a link, and is 0 for links that were not busy for long.
func TestSustained(t *testing.T) {
	var r estimate.Rate
	r.Seed(7 * mb)
	if got := r.Sustained(); got != 0 {
		t.Errorf("a seed is a sample: %.0f", got)
	}
	now := feed(&r, start, mb, 290*ms, ms)
	if got := r.Sustained(); got != 0 {
		t.Errorf("after 290 ms: %.0f", got)
	}
	now = feed(&r, now, mb, 20*ms, ms)
	if got := r.Sustained(); !within(got, mb, 1) {
		t.Errorf("after 310 ms: %.0f", got)
	}
	now = feed(&r, now, 4*mb, 6*time.Second, ms)
	if got := r.Sustained(); !within(got, 4*mb, 5) {
		t.Errorf("6 s after it is four times as fast: %.0f", got)
	}
	feed(&r, now, mb, 200*ms, ms)
	if got, short := r.Sustained(), r.PerSecond(now.Add(200*ms)); got < 3*mb || short > 2*mb {
		t.Errorf("a dip: %.0f sustained, %.0f now", got, short)
	}
	// A link that waits for the client most of the time: the bytes after a pause come from buffers.
	r = estimate.Rate{}
	now = start
	for range 20 {
		now = feed(&r, now, 100*mb, 50*ms, ms)
		r.Idle()
		now = now.Add(50 * ms)
	}
	if got := r.Sustained(); got != 0 {
		t.Errorf("busy half of the time: %.0f", got)
	}
}

// TestRecalled checks that a rate is recalled until bytes have shown another.
func TestRecalled(t *testing.T) {
	var r estimate.Rate
	if r.Recalled(start) {
		t.Error("nothing is remembered")
	}
	r.Seed(mb)
	r.Add(start, 1000)
	if now := start.Add(10 * ms); !r.Recalled(now) || r.PerSecond(now) != mb {
		t.Errorf("the first bytes show no rate: %v, %.0f", r.Recalled(now), r.PerSecond(now))
	}
	now := start.Add(20 * ms)
	r.Add(now, 1000)
	if r.Recalled(now) || r.PerSecond(now) == mb {
		t.Errorf("it has shown a rate: %.0f", r.PerSecond(now))
	}
}
