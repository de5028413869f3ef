package lanes

import (
	"slices"
	"testing"
	"time"
)

// scheduler is how a Mux chooses the lane for the next bytes.
type scheduler struct {
	name   string
	yields func() func(m *Mux, l *lane) bool // of one Mux, see Config; nil = ours
}

// schedulers are ours and those of the literature. The latter know neither the in-flight cap nor classes: a lane takes as much as its
// congestion window has room for.
var schedulers = []scheduler{
	{"earliest-arrival", nil},
	// to the lane with the shortest smoothed round trip that has room (the default of MPTCP)
	{"min-rtt", func() func(m *Mux, l *lane) bool {
		return func(m *Mux, l *lane) bool {
			return !l.room() || slices.ContainsFunc(m.lanes, func(o *lane) bool { return o.path.RTT < l.path.RTT && o.room() })
		}
	}},
	// frames in turn to the lanes that have room
	{"round-robin", func() func(m *Mux, l *lane) bool {
		var last uint32 // lane that last sent data
		return func(m *Mux, l *lane) bool {
			at := slices.IndexFunc(m.lanes, func(o *lane) bool { return o.id == last }) + 1
			for i := range m.lanes {
				if o := m.lanes[(at+i)%len(m.lanes)]; o.room() {
					if o == l {
						last = l.id
					}
					return o != l
				}
			}
			return true
		}
	}},
}

// use makes m use a scheduler.
func (s scheduler) use(m *Mux) {
	if s.yields != nil {
		m.cfg.yields = s.yields()
	}
}

// room reports whether the congestion window lets a lane send.
func (l *lane) room() bool { return !l.suspect && l.path.InFlight+l.path.Unsent < l.path.CWnd }

// TestSchedulers: the default is no slower than the schedulers from the literature, and nine in ten small messages arrive sooner.
func TestSchedulers(t *testing.T) {
	type result struct {
		took, echo time.Duration // echo: of nine in ten messages
		held       int64         // most bytes held for reordering
	}
	run := func(t *testing.T, s scheduler, size int, links ...twoWay) (r result) {
		w := newNetwork(t)
		for i, l := range links {
			w.add(i, l)
		}
		for _, m := range w.ends {
			s.use(m)
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
			for _, s := range schedulers {
				r := run(t, s, c.size, c.links()...)
				t.Logf("%-17s %.2f s, holds %.2f MB at most, nine in ten messages come within %s", s.name, r.took.Seconds(), float64(r.held)/1e6, r.echo)
				if s.yields == nil {
					ours = r
				}
				if ours.took > r.took+r.took/50 || ours.echo > r.echo {
					t.Errorf("%s is better than %+v: %+v", s.name, ours, r)
				}
			}
		})
	}
}
