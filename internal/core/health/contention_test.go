package health_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
)

// air feeds a Contention with what a transfer receives over links whose rates a test sets.
type air struct {
	t     *testing.T
	c     health.Contention
	now   time.Time
	links []health.Traffic
	stood time.Duration
	rnd   *rand.Rand
	said  []health.Verdict
	after []time.Duration // of each, since the start
	began time.Time
}

func newAir(t *testing.T, links int) *air {
	a := &air{t: t, now: time.Unix(1_000_000, 0), links: make([]health.Traffic, links), rnd: rand.New(rand.NewPCG(1, 2))}
	a.began = a.now
	for i := range a.links {
		a.links[i].Usable = true
	}
	return a
}

// pass gives the links these rates in Mbit/s, each with 1 % of noise, for a time. It stops at a verdict and carries it out.
func (a *air) pass(d time.Duration, rates ...float64) bool {
	for end := a.now.Add(d); a.now.Before(end); {
		a.now = a.now.Add(250 * ms)
		for i, r := range rates {
			if a.links[i].Usable {
				a.links[i].Got += int64(r * mbit / 4 * (1 + 0.01*a.rnd.NormFloat64()))
			}
		}
		if v, ok := a.c.Observe(a.now, a.links, a.stood); ok {
			a.links[v.Link].Usable = !v.Out
			a.said, a.after = append(a.said, v), append(a.after, a.now.Sub(a.began))
			return true
		}
	}
	return false
}

// swing lets two links on one channel shift between them for a time, as their senders do, and stops at a verdict.
func (a *air) swing(d time.Duration, total float64, more ...float64) bool {
	for end := a.now.Add(d); a.now.Before(end); {
		part := 0.3 + 0.4*a.rnd.Float64()
		if a.pass(time.Second, append([]float64{part * total, (1 - part) * total}, more...)...) {
			return true
		}
	}
	return false
}

// want checks the verdicts so far.
func (a *air) want(all ...health.Verdict) {
	a.t.Helper()
	if !slices.Equal(a.said, all) {
		a.t.Errorf("verdicts %v after %v, want %v", a.said, a.after, all)
	}
}

func TestContention(t *testing.T) {
	out := func(i int8) health.Verdict { return health.Verdict{Link: i, Out: true} }
	back := func(i int8) health.Verdict { return health.Verdict{Link: i} }

	t.Run("a link joins and the other loses as much", func(t *testing.T) {
		a := newAir(t, 2)
		a.pass(8500*ms, 40, 0)
		a.pass(5*time.Second, 22, 18)
		a.want(out(1))
		a.pass(time.Minute, 40, 0)
		a.want(out(1))
	})
	t.Run("links that shift from the start on", func(t *testing.T) {
		a := newAir(t, 2)
		if a.swing(15*time.Second, 40); len(a.said) != 1 {
			t.Errorf("verdicts %v", a.said)
		}
	})
	t.Run("not during the start", func(t *testing.T) {
		a := newAir(t, 2)
		for i := range 4 {
			a.pass(500*ms, 40-10*float64(i), 10*float64(i))
		}
		a.pass(time.Minute, 10, 30)
		a.want()
	})
	t.Run("a third link is not concerned", func(t *testing.T) {
		a := newAir(t, 3)
		a.pass(8500*ms, 40, 0, 30)
		a.pass(5*time.Second, 22, 18, 30)
		a.want(out(1))
	})
	t.Run("the metered one is left out", func(t *testing.T) {
		for i := range int8(2) {
			a := newAir(t, 2)
			a.links[i].Metered = true
			a.swing(15*time.Second, 40)
			a.want(out(i))
		}
	})
	t.Run("a metered link never takes over", func(t *testing.T) {
		a := newAir(t, 3)
		a.links[0].Metered, a.links[2].Metered = true, true
		a.pass(8500*ms, 40, 0, 0)
		a.pass(20*time.Second, 22, 18, 0)
		a.want(out(0)) // though link 1 brings less
	})

	for name, r := range map[string][2][]float64{
		"the total rises by all of it":         {{40, 0}, {40, 20}},
		"a slow link, 5 % of the total":        {{100, 0}, {100, 5}},
		"the total rises by half of it":        {{40, 0}, {30, 20}},
		"the total rises by 3/8 of it":         {{40, 0}, {27.5, 20}},
		"as much is lost, a window later":      {{40, 0}, {40, 20}},
		"another link loses by itself":         {{40, 20}, {20, 20}},
		"nothing changes":                      {{20, 20}, {20, 20}},
		"changes within noise, and they match": {{20, 20}, {20.6, 19.4}},
	} {
		t.Run("no verdict: "+name, func(t *testing.T) {
			a := newAir(t, 2)
			for range 4 {
				a.pass(8500*ms, r[0]...)
				a.pass(8500*ms, r[1]...)
			}
			a.want()
		})
	}
	t.Run("no verdict: one change may be a coincidence", func(t *testing.T) {
		a := newAir(t, 2)
		a.pass(8*time.Second, 40, 0) // windows end with the seconds
		a.pass(time.Minute, 22, 18)
		a.want()
	})
	t.Run("no verdict: so may a few", func(t *testing.T) {
		a := newAir(t, 2)
		a.pass(4*time.Second, 20, 20)
		for range 2 {
			a.pass(time.Second, 28, 12)
			a.pass(time.Second, 20, 20)
		}
		a.pass(time.Minute, 20, 30)
		a.want()
	})
	t.Run("no verdict: changes are small", func(t *testing.T) {
		a := newAir(t, 2)
		a.pass(8*time.Second, 20, 20)
		a.pass(time.Second, 22, 18)
		a.pass(time.Minute, 20, 20)
		a.want()
	})
	t.Run("no verdict: both vary, each by itself", func(t *testing.T) {
		a := newAir(t, 2)
		for range 2000 {
			a.pass(time.Second, 10+30*a.rnd.Float64(), 10+30*a.rnd.Float64())
		}
		a.want()
	})
	t.Run("no verdict: the client bounds the total", func(t *testing.T) {
		a := newAir(t, 2)
		for range 50 {
			part := 0.3 + 0.4*a.rnd.Float64()
			for range 4 {
				a.stood += 30 * ms
				a.pass(250*ms, 40*part, 40-40*part)
			}
		}
		a.want()
	})

	t.Run("a link that is missed is taken back, and left alone for a while", func(t *testing.T) {
		a := newAir(t, 2)
		for n, least := range []time.Duration{0, 20 * time.Second, 40 * time.Second} { // the origin bounds the total, above the rate of either link
			began := a.now
			if !a.swing(5*time.Minute, 60) || !a.said[2*n].Out {
				t.Fatalf("verdicts %v", a.said)
			}
			if took := a.now.Sub(began); took < least {
				t.Errorf("verdict %d comes after %v, not %v", n, took, least)
			}
			left, link := a.now, a.said[2*n].Link
			a.pass(10*time.Second, 40, 40)
			if took := a.now.Sub(left); len(a.said) != 2*n+2 || a.said[2*n+1] != back(link) || took > 2*time.Second {
				t.Fatalf("verdicts %v, the last after %v", a.said, took)
			}
		}
	})
	t.Run("the other link needs a moment to take over", func(t *testing.T) {
		a := newAir(t, 2)
		a.pass(8500*ms, 40, 0)
		a.pass(5*time.Second, 22, 18)
		a.pass(500*ms, 22, 0)
		a.pass(5*time.Second, 40, 0)
		a.want(out(1))
	})
	t.Run("no verdict: a metered link would remain", func(t *testing.T) {
		a := newAir(t, 2)
		a.links[1].Metered = true
		for i := range 40 { // enough to be sure of link 0, but not of the other one
			a.pass(time.Second, 15+10*float64(i%2), 25-10*float64(i%2)-2.97*float64(i/2%2))
		}
		a.want()
	})
	t.Run("whoever stops takes back what is left out", func(t *testing.T) {
		a := newAir(t, 2)
		if v, ok := a.c.Stop(); ok {
			t.Errorf("at first: %v", v)
		}
		a.pass(8500*ms, 40, 0)
		a.pass(5*time.Second, 22, 18)
		a.want(out(1))
		if v, ok := a.c.Stop(); !ok || v != back(1) {
			t.Errorf("%v, %v", v, ok)
		}
		if v, ok := a.c.Stop(); ok {
			t.Errorf("twice: %v", v)
		}
	})
	t.Run("a link comes back and is judged anew", func(t *testing.T) {
		a := newAir(t, 2)
		a.pass(8500*ms, 40, 0)
		a.pass(5*time.Second, 22, 18)
		a.want(out(1))
		a.pass(10250*ms, 40, 0)
		a.links[1].Usable = true
		a.pass(10*time.Second, 40, 20) // it is on another channel now
		a.want(out(1))
	})
}
