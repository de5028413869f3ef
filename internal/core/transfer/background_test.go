package transfer

import (
	"testing"
	"time"
)

// slowLink is a link of 1 MB/s with a round trip of 50 ms: bytes outstanding beyond 50 kB queue, as does other traffic. A
// background transfer requests half of its window at once.
type slowLink struct {
	y   yielding
	now time.Time
}

// step lets one response arrive in addition to others bytes of other traffic.
func (l *slowLink) step(others float64) {
	const rate, least = 1e6, 0.05
	w := float64(l.y.outstanding())
	delay := least + max(0, w+others-rate*least)/rate
	l.now = l.now.Add(time.Duration(max(w/2/rate, delay/2) * 1e9))
	if l.y.next.After(l.now) {
		l.now = l.y.next
	}
	l.y.responded(l.now, time.Duration(delay*1e9), rate)
}

// during takes steps for a while and checks the window after each.
func (l *slowLink) during(d time.Duration, others float64, ok func(after time.Duration, window int64) bool) func(t *testing.T, what string) {
	return func(t *testing.T, what string) {
		t.Helper()
		for began := l.now; l.now.Sub(began) < d; {
			l.step(others)
			if after, w := l.now.Sub(began), l.y.outstanding(); !ok(after, w) {
				t.Fatalf("%s, after %v: %d bytes outstanding", what, after, w)
			}
		}
	}
}

// TestYielding: a lone background transfer keeps its link busy with a queue of some 15 ms, takes next to nothing of the link within
// a second after other traffic starts, and is back within five seconds after that ends.
func TestYielding(t *testing.T) {
	l := &slowLink{now: time.Unix(1000, 0)}
	busy := func(after time.Duration) func(time.Duration, int64) bool {
		return func(now time.Duration, w int64) bool { return now < after || w >= 45_000 && w <= 75_000 }
	}
	l.during(10*time.Second, 0, busy(2*time.Second))(t, "alone")
	l.during(5*time.Second, 100_000, func(after time.Duration, w int64) bool {
		return after < time.Second || w == leastRange && l.y.window < leastRange
	})(t, "beside others")
	l.during(10*time.Second, 0, busy(5*time.Second))(t, "alone again")
}

// TestYieldingBounded: a window that something else limits does not grow forever. One slow response among fast ones, from an origin
// that thinks now and then, does not shrink it.
func TestYieldingBounded(t *testing.T) {
	y, now := yielding{}, time.Unix(1000, 0)
	if y.outstanding() != firstWindow {
		t.Errorf("at first %d bytes", y.outstanding())
	}
	for i := range 100 {
		delay := 50 * time.Millisecond
		if i%3 == 0 {
			delay = time.Second
		}
		now = now.Add(delay)
		y.responded(now, delay, 1e6)
	}
	if n := y.outstanding(); n != 2*64_442 {
		t.Errorf("%d bytes, want twice what the link brings in 50 ms and the 14.4 ms that may queue", n)
	}
}

// TestYieldsToCrossTraffic: a background transfer immediately leaves a link to other traffic of an eighth of its rate, lets nothing queue next
// to an occasional packet, and takes half of the link as soon as the other traffic ends.
func TestYieldsToCrossTraffic(t *testing.T) {
	l := &slowLink{now: time.Unix(1000, 0)}
	l.during(10*time.Second, 0, func(time.Duration, int64) bool { return true })(t, "alone")
	for _, c := range []struct{ others, most int64 }{{-1, 75_000}, {0, 42_500}, {50_000, 30_000}, {62_500, 25_000}, {125_000, leastRange}} {
		l.y.crossTraffic(l.now, c.others, 1e6)
		if w := l.y.outstanding(); w > c.most || w < c.most*9/10 && c.others >= 0 {
			t.Errorf("beside %d bytes per second: %d outstanding, want at most %d", c.others, w, c.most)
		}
	}
	if wait := l.y.next.Sub(l.now); wait < 7*49*time.Millisecond {
		t.Errorf("a link that others fill is asked again after %v", wait)
	}
	l.during(2*time.Second, 125_000, func(time.Duration, int64) bool { return l.y.allowed() == leastWindow })(t, "beside others")
	l.y.crossTraffic(l.now, -1, 1e6)
	if w := l.y.outstanding(); w < 24_000 || l.y.next.After(l.now) {
		t.Errorf("as soon as others are quiet: %d outstanding, in %v", w, l.y.next.Sub(l.now))
	}
	l.during(time.Second, 0, func(after time.Duration, w int64) bool { return after < 900*time.Millisecond || w >= 45_000 })(t, "alone again")

	var fresh yielding
	if fresh.crossTraffic(l.now, 1_000_000, 0); fresh.outstanding() != firstWindow {
		t.Errorf("a link of which nothing is known yet: %d outstanding", fresh.outstanding())
	}
}
