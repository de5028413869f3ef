package lanes

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/parallel"
)

// steered downloads while c decides how many lanes each link has, and returns how long the download took.
func (w *network) steered(size int, c *Connections, links ...twoWay) time.Duration {
	steps := 0
	return w.download(size, func() {
		if steps++; steps%int(parallel.SampleEvery/time.Millisecond) != 0 {
			return
		}
		for i, l := range links {
			var all []Reception
			for _, n := range w.lanes {
				if down := n.ways[1]; n.link == i {
					all = append(all, Reception{n.id, down.srtt, down.least, down.holes, int64(down.have)})
				}
			}
			name := string(rune('a' + i))
			if c.Sample(w.now, name, all); len(all) < c.Wanted(name) {
				w.add(i, l)
			}
		}
	})
}

func (w *network) count(link int) (n int) {
	for _, l := range w.lanes {
		if l.link == link {
			n++
		}
	}
	return n
}

// TestLossyLink: a link that loses packets gets more lanes, which increase goodput; one that does not keeps one.
func TestLossyLink(t *testing.T) {
	for _, c := range []struct {
		name             string
		wifi, lte        float64
		loss             float64
		least, most      int // lanes over lte
		faster, lossless float64
	}{
		{"0.05 % loss", 15e6 / 8, 82e6 / 8, 0.0005, 2, 4, 1.2, 0.75},
		{"0.5 % loss", 8e6 / 8, 10e6 / 8, 0.005, 2, 4, 1.1, 0.75},
		{"no loss", 60e6 / 8, 80e6 / 8, 0, 1, 1, 0.99, 0.95},
	} {
		if c.loss > 0.001 && !long() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			const size = 50_000_000
			run := func(most int) (first, second time.Duration, lanes int) {
				w := newNetwork(t)
				links := []twoWay{newLink(1, c.wifi, 10*time.Millisecond, 0), newLink(2, c.lte, 20*time.Millisecond, c.loss)}
				for i, l := range links {
					w.add(i, l)
				}
				for range 200 {
					w.step()
				}
				n := NewConnections(most)
				first = w.steered(size, n, links...)
				for range 1000 {
					w.step()
				}
				second = w.steered(size, n, links...)
				if got := w.count(0); got != 1 {
					t.Errorf("%d lanes over the link without losses", got)
				}
				return first, second, w.count(1)
			}
			one, oneAgain, _ := run(1)
			first, second, lanes := run(parallel.Most)
			bound := seconds(size / (c.wifi + c.lte) * 1500 / 1448)
			t.Logf("bound %s; one lane %s, then %s; as many as pay off %s, then %s: %d", bound, one, oneAgain, first, second, lanes)
			if lanes < c.least || lanes > c.most {
				t.Errorf("%d lanes", lanes)
			}
			if second.Seconds()*c.faster > oneAgain.Seconds() {
				t.Errorf("%s with %d lanes, %s with one", second, lanes, oneAgain)
			}
			if bound.Seconds() < c.lossless*second.Seconds() {
				t.Errorf("%s, of which %s are needed", second, bound)
			}
		})
	}
}

// TestPauseIsNoDip: while nothing is under way, no samples are taken. The first sample afterwards must not take the pause for
// slowness, for which another lane would be tried.
func TestPauseIsNoDip(t *testing.T) {
	c, now := NewConnections(2), time.Unix(1000, 0)
	r := Reception{Lane: 1, RTT: 20 * time.Millisecond, Least: 20 * time.Millisecond}
	sample := func(pause time.Duration) {
		now = now.Add(pause)
		r.Bytes += 1 << 20
		r.Holes++
		c.Sample(now, "lte", []Reception{r})
	}
	for range 100 {
		sample(parallel.SampleEvery)
	}
	for range 20 {
		sample(time.Minute)
		for range 10 {
			if sample(parallel.SampleEvery); c.Wanted("lte") != 1 {
				t.Fatal("another lane is tried after a pause")
			}
		}
	}
}
