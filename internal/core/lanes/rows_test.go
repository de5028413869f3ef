package lanes

import (
	"math/rand/v2"
	"testing"
	"time"
)

// drive changes the rate of a link as an LTE modem in a moving car sees it: in steps of 100 ms, from a tenth of the mean to
// twice the mean, mostly near the previous step.
func drive(seed uint64, mean float64, l twoWay) (each func(step int)) {
	rnd := rand.New(rand.NewPCG(seed, 11))
	share := 1.0
	return func(step int) {
		if step%100 != 1 {
			return
		}
		share = min(max(share+0.25*rnd.NormFloat64()+0.1*(1-share), 0.1), 2)
		l.down.rate = mean * share
	}
}

// TestRows: over the links of the benchmarks' rows 1 to 6, and over others with random rates, the receiver holds at most 4 MB,
// and at most 1 % of the bytes are copies, 0.2 % where rates are constant and no link dies.
func TestRows(t *testing.T) {
	const ms = time.Millisecond
	type row struct {
		name  string
		size  int
		links [2]twoWay
		each  func(step int)
		waste float64
	}
	rows := []row{
		{name: "1", size: 50_000_000, links: [2]twoWay{newLink(1, mbit(80), 5*ms, 0), newLink(2, mbit(60), 22*ms, 0)}, waste: 0.002},
		{name: "2", size: 30_000_000, links: [2]twoWay{newLink(1, mbit(8), 5*ms, 0), newLink(2, mbit(66), 22*ms, 0)}, waste: 0.002},
		{name: "3", size: 50_000_000, links: [2]twoWay{newLink(1, mbit(15), 15*ms, 0), newLink(2, mbit(82), 20*ms, 0.0005)}, waste: 0.002},
	}
	traces := 4
	if long() {
		traces = 100
	}
	for seed := range uint64(traces) {
		four := row{name: "4", size: 20_000_000, links: [2]twoWay{newLink(1, mbit(20), 10*ms, 0.001), newLink(seed, mbit(17), 22*ms, 0)}, waste: 0.01}
		four.each = drive(seed, mbit(17), four.links[1])
		five := row{name: "5", size: 10_000_000, links: [2]twoWay{newLink(1, mbit(8), 20*ms, 0.005), newLink(seed, mbit(10), 35*ms, 0)}, waste: 0.01}
		five.each = drive(seed, mbit(10), five.links[1])
		rows = append(rows, four, five)
	}
	six := row{name: "6", size: 20_000_000, links: [2]twoWay{newLink(1, mbit(20), 15*ms, 0), newLink(2, mbit(20), 25*ms, 0)}, waste: 0.01}
	six.each = func(step int) {
		if step == 2000 {
			six.links[1].up.loss, six.links[1].down.loss = 1, 1
		}
	}
	for _, r := range append(rows, six) {
		t.Run(r.name, func(t *testing.T) {
			w := newNetwork(t)
			for i, l := range r.links {
				w.add(i, l)
			}
			step, held, copied, capacity := 0, int64(0), 0, 0.0
			took := w.download(r.size, func() {
				if step++; r.each != nil {
					r.each(step)
				}
				for _, l := range r.links {
					if l.down.loss < 1 {
						capacity += l.down.rate / 1000
					}
				}
				held = max(held, w.ends[0].Held())
				for _, s := range w.ends[1].streams {
					copied = max(copied, s.copied)
				}
			})
			waste := float64(copied) / float64(r.size)
			t.Logf("%s, %.0f %% of what the links can carry; %d bytes held, %.2f %% copies", took, 100*float64(r.size)/capacity, held, 100*waste)
			if held > 4_000_000 || waste > r.waste {
				t.Errorf("%d bytes held, %.2f %% copies", held, 100*waste)
			}
		})
	}
}
