package lanes

import (
	"slices"
	"testing"
	"time"
)

// TestSchedulers: the default is no slower than the schedulers from the literature, and nine in ten small messages arrive sooner.
func TestSchedulers(t *testing.T) {
	type result struct {
		took, echo time.Duration // echo: of nine in ten messages
		held       int64         // most bytes held for reordering
	}
	run := func(t *testing.T, scheduler Scheduler, size int, links ...twoWay) (r result) {
		w := newNetwork(t)
		for i, l := range links {
			w.add(i, l)
		}
		for _, m := range w.ends {
			m.cfg.Scheduler = scheduler
		}
		ssh, _ := w.ends[0].Open(w.now, "ssh:22")
		var asked time.Time
		var echoes []time.Duration
		buf := make([]byte, 64)
		r.took = w.download(size, func() {
			r.held = max(r.held, w.ends[0].Held())
			if w.ends[1].Destination(ssh) == "" {
				return
			}
			n, _ := w.ends[0].Read(w.now, ssh, buf)
			switch {
			case asked.IsZero():
				w.ends[1].Write(w.now, ssh, []byte("echo"))
				asked = w.now
			case n > 0:
				echoes = append(echoes, w.now.Sub(asked))
				asked = time.Time{}
			}
		})
		slices.Sort(echoes)
		r.echo = echoes[len(echoes)*9/10]
		return r
	}
	for _, c := range []struct {
		name  string
		size  int
		links func() []twoWay
	}{
		{"80 + 60 Mbit/s", 30_000_000, func() []twoWay {
			return []twoWay{newLink(1, mbit(80), 5*time.Millisecond, 0), newLink(2, mbit(60), 22*time.Millisecond, 0)}
		}},
		{"8 + 66 Mbit/s", 20_000_000, func() []twoWay {
			return []twoWay{newLink(1, mbit(8), 5*time.Millisecond, 0), newLink(2, mbit(66), 22*time.Millisecond, 0)}
		}},
		{"5 + 10 Mbit/s", 4_000_000, func() []twoWay {
			return []twoWay{newLink(1, mbit(5), 25*time.Millisecond, 0), newLink(2, mbit(10), 35*time.Millisecond, 0)}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var ours result
			for _, s := range []Scheduler{EarliestArrival, MinRTT, RoundRobin} {
				r := run(t, s, c.size, c.links()...)
				t.Logf("%-17s %.2f s, holds %.2f MB at most, nine in ten messages come within %s", s, r.took.Seconds(), float64(r.held)/1e6, r.echo)
				if s == EarliestArrival {
					ours = r
				}
				if ours.took > r.took+r.took/50 || ours.echo > r.echo {
					t.Errorf("%s is better than %+v: %+v", s, ours, r)
				}
			}
		})
	}
}
