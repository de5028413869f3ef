package lanes

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"
)

// network is two ends whose lanes are connections with congestion control.
type network struct {
	testing.TB
	now    time.Time
	ends   [2]*Mux // client, server
	lanes  []*tcpLane
	others []*conn // connections that share wires with lanes; their receivers read everything
}

// tcpLane is a connection in each direction; one end sees both.
type tcpLane struct {
	id   uint32
	link int
	ways [2]*conn // from the client, from the server
	rest [2][]byte
}

// twoWay is the two wires of a link.
type twoWay struct{ up, down *wire }

func newLink(seed uint64, rate float64, delay time.Duration, loss float64) twoWay {
	rnd := rand.New(rand.NewPCG(seed, 7))
	return twoWay{&wire{rate: rate, delay: delay, rnd: rnd}, &wire{rate: rate, delay: delay, loss: loss, rnd: rnd}}
}

func newNetwork(t testing.TB) *network {
	const budget = 64 << 20
	return &network{TB: t, now: start, ends: [2]*Mux{
		New(Config{Client: true, Budget: budget, MaxStreams: 100}), New(Config{Budget: budget, MaxStreams: 100}),
	}}
}

func (w *network) add(link int, l twoWay) *tcpLane {
	n := &tcpLane{id: uint32(len(w.lanes) + 1), link: link, ways: [2]*conn{newConn(l.up, l.down.delay), newConn(l.down, l.up.delay)}}
	w.lanes = append(w.lanes, n)
	for _, m := range w.ends {
		m.AddLane(w.now, n.id)
	}
	return n
}

// beside starts another download over a link.
func (w *network) beside(l twoWay) *conn {
	c := newConn(l.down, l.up.delay)
	c.endless = true
	w.others = append(w.others, c)
	return c
}

// step lets a millisecond pass.
func (w *network) step() {
	w.now = w.now.Add(time.Millisecond)
	for _, c := range w.others {
		c.receive(w.now)
		c.ready = c.ready[:0]
		c.send(w.now)
	}
	for _, l := range w.lanes {
		for way, c := range l.ways {
			c.receive(w.now)
			l.rest[way] = append(l.rest[way], c.ready...)
			c.ready = c.ready[:0]
			for {
				f, n, err := Decode(l.rest[way])
				if err != nil {
					w.Fatal(err)
				}
				if n == 0 {
					break
				}
				f.Data = bytes.Clone(f.Data)
				l.rest[way] = l.rest[way][n:]
				if err := w.ends[1-way].Receive(w.now, l.id, f); err != nil {
					w.Fatal(err)
				}
			}
		}
	}
	for _, l := range w.lanes {
		for end, m := range w.ends {
			c := l.ways[end]
			c.send(w.now)
			for c.room() > 0 {
				m.Observe(w.now, l.id, c.path())
				b, _ := m.Next(w.now, l.id, nil)
				if len(b) == 0 {
					break
				}
				c.unsent = append(c.unsent, b...)
				c.send(w.now)
			}
		}
	}
	for _, m := range w.ends {
		m.Tick(w.now)
	}
}

// download sends bytes from the server, and returns how long it took. each, if not nil, is called every millisecond.
func (w *network) download(size int, each func()) time.Duration {
	w.Helper()
	began := w.now
	id, _ := w.ends[0].Open(w.now, "host:443")
	buf := make([]byte, 64<<10)
	left, got := size, 0
	for got < size {
		if s := w.ends[1].streams[id]; s != nil && s.to != "" {
			w.ends[1].Connect(w.now, id)
			for left > 0 && s.queued < MaxQueue {
				n := min(left, 32<<10)
				w.ends[1].Write(w.now, id, make([]byte, n))
				left -= n
			}
		}
		for {
			n, _ := w.ends[0].Read(w.now, id, buf)
			if got += n; n == 0 {
				break
			}
		}
		if each != nil {
			each()
		}
		if w.step(); w.now.Sub(began) > 2*time.Minute {
			w.Fatalf("%d of %d bytes after two minutes", got, size)
		}
	}
	for end := range w.ends {
		w.ends[end].Reset(w.now, id, CauseClosed)
	}
	return w.now.Sub(began)
}

// plainShare is the share taken by a connection that starts three seconds after another and sends as much as it can for some time.
func (w *network) plainShare(rate float64, delay, took time.Duration) float64 {
	n := newNetwork(w.TB)
	wifi := newLink(1, rate, delay, 0)
	other := n.beside(wifi)
	for range 3000 {
		n.step()
	}
	mine, theirs := n.beside(wifi), other.have
	for range took.Milliseconds() {
		n.step()
	}
	return float64(mine.have) / float64(mine.have+other.have-theirs)
}

// TestBeside: next to a download that fills a link, its lane takes as much as a plain connection would.
func TestBeside(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  float64
		delay time.Duration
		size  int
		short bool // the other one keeps its queue short
	}{
		{"20 Mbit/s", 2.5e6, 15 * time.Millisecond, 15_000_000, false},
		{"20 Mbit/s, long", 2.5e6, 15 * time.Millisecond, 100_000_000, false},
		{"60 Mbit/s", 7.5e6, 22 * time.Millisecond, 40_000_000, false},
		{"8 Mbit/s", 1e6, 10 * time.Millisecond, 10_000_000, false},
		{"a short queue", 2.5e6, 15 * time.Millisecond, 20_000_000, true},
	} {
		if c.size > 20_000_000 && !long() {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			w := newNetwork(t)
			wifi, lte := newLink(1, c.rate, c.delay, 0), newLink(2, c.rate, 2*c.delay, 0)
			l := w.add(0, wifi)
			w.add(1, lte)
			other := w.beside(wifi)
			if c.short {
				other.cwnd, other.fixed = c.rate*2*c.delay.Seconds(), true
			}
			for range 3000 {
				w.step()
			}
			ours, theirs := l.ways[1].have, other.have
			took := w.download(c.size, nil)
			ours, theirs = l.ways[1].have-ours, other.have-theirs
			share := float64(ours) / float64(ours+theirs)
			plain := w.plainShare(c.rate, c.delay, took)
			t.Logf("%.0f %% of the link, %s, plain %.0f", 100*share, took, 100*plain)
			if share < 0.7*plain && !c.short || c.short && share < 0.4 || !c.short && share > 0.6 {
				t.Errorf("the lane took %.0f %% of its link, a plain connection takes %.0f", 100*share, 100*plain)
			}
		})
	}
}
