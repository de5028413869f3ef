package parallel

import (
	"math"
	"testing"
	"time"
)

// limited is a link to an origin that may limit each connection.
type limited struct {
	link   float64       // what the link carries, in bytes per second
	each   float64       // what each connection gets at most
	all    float64       // what all connections get at most
	burst  float64       // bytes that each connection gets at the link's rate first
	piece  float64       // bytes that the origin sends at a time, 0 = packet by packet
	queues time.Duration // what waits in front of the link while it is full
	always bool          // it does so all the time; otherwise only in the first 200 ms, as with BBR
	grows  bool          // goodput doubles each 250 ms
	lossy  bool
}

// steer lets a controller decide over such a link for a while. It returns how many connections were wanted every 100 ms.
func (p limited) steer(k *Controller, d time.Duration, lasts time.Duration) (wanted []int) {
	const rtt = 20 * ms
	start := k.limit.since
	var got, recent float64
	var tokens [MostLimited]float64
	for i := range tokens {
		tokens[i] = p.burst
	}
	working := 1
	for at := SampleEvery; at <= d; at += SampleEvery {
		now := start.Add(at)
		var sum float64
		for i := range working {
			n := p.each + tokens[i]/SampleEvery.Seconds()
			n = min(n, p.link/float64(working))
			tokens[i] -= max(0, n-p.each) * SampleEvery.Seconds()
			sum += n
		}
		if p.all > 0 {
			sum = min(sum, p.all)
		}
		if p.grows {
			sum = min(sum, 20e3*math.Exp2(float64(at)/float64(250*ms)))
		}
		full := sum > 0.99*p.link
		got += sum * SampleEvery.Seconds()
		recent += (sum - recent) / 2
		s := Sample{RTT: rtt, Least: rtt, Data: rtt, Holes: p.lossy, Link: Link{
			Got: int64(got), Working: working, Recent: recent, Peak: p.link, Lasts: lasts,
		}}
		if full && (p.always || at <= 200*ms) {
			s.Data += p.queues
			s.RTT += p.queues
		}
		if p.piece > 0 && !full {
			s.Gap = time.Duration(p.piece / p.each * 1e9)
			if s.Data += s.Gap; s.Gap > 33*ms {
				s.Silent = SampleEvery * 9 / 10
			}
		}
		for range working {
			k.Sample(now, s)
		}
		wanted = append(wanted, k.N)
		working = k.N
	}
	return wanted
}

// steerUntil begins a controller that decides over such a link just until something holds.
func (p limited) steerUntil(k *Controller, holds func() bool) {
	for at := SampleEvery; !holds(); at += SampleEvery {
		k.Begin(time.Unix(1000, 0), 1, 1, MostLimited, 0)
		p.steer(k, at, time.Minute)
	}
}

func TestLimitedConnections(t *testing.T) {
	const quick = 14 // samples after which all connections deliver
	for _, c := range []struct {
		name string
		path limited
		end  int
		by   int // sample by which it is reached
		more int // samples with more than that, at most
	}{
		{"the origin limits each", limited{link: 12e6, each: 1e6}, 8, quick, 0},
		{"it sends pieces", limited{link: 12e6, each: 1e6, piece: 16e3}, 8, quick, 0},
		{"it sends pieces and waits long", limited{link: 12e6, each: 200e3, piece: 16e3}, 8, 3 * quick, 0},
		{"it limits each after a first burst", limited{link: 12e6, each: 1e6, burst: 2e6, queues: 20 * ms}, 8, 4 * quick, 0},
		{"the link carries three of them", limited{link: 3e6, each: 1e6, queues: 40 * ms, always: true}, 4, quick, 10},
		{"the origin limits all together", limited{link: 12e6, each: 1e6, all: 1e6}, 1, 0, 60},
		{"a full link", limited{link: 1e6, each: 9e6, queues: 60 * ms, always: true}, 1, 0, 0},
		{"a full link whose queue was seen once (BBR)", limited{link: 1e6, each: 9e6, queues: 20 * ms}, 1, 0, 0},
		{"slow start", limited{link: 900e6, each: 900e6, grows: true}, 1, 0, 0},
		{"losses", limited{link: 12e6, each: 1e6, lossy: true}, 1, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := &Controller{}
			k.Begin(time.Unix(1000, 0), 1, 1, MostLimited, 0)
			d := 20 * time.Second
			if c.path.grows {
				d = 3 * time.Second
			}
			all := c.path.steer(k, d, time.Minute)
			more, by := 0, 0
			for i, n := range all {
				if n > c.end {
					more++
				}
				if n < c.end {
					by = i + 1
				}
			}
			if k.N != c.end || by > c.by || more > c.more {
				t.Errorf("%d connections at the end, want %d; after %d samples; %d with more: %v", k.N, c.end, by, more, all)
			}
			if each := k.Limit(); (each > 0) != (c.end > 1) || c.end == 8 && (each < 0.7*c.path.each || each > 1.3*c.path.each) {
				t.Errorf("limit %.0f", each)
			}
		})
	}
	t.Run("a transfer that ends soon", func(t *testing.T) {
		k := &Controller{}
		k.Begin(time.Unix(1000, 0), 1, 1, MostLimited, 0)
		p := limited{link: 12e6, each: 1e6}
		if p.steer(k, 20*time.Second, time.Second); k.N != 1 {
			t.Errorf("%d connections", k.N)
		}
	})
	t.Run("refused", func(t *testing.T) {
		k := &Controller{}
		p := limited{link: 12e6, each: 1e6}
		p.steerUntil(k, func() bool { return k.N >= 2 })
		k.Refused()
		for _, n := range p.steer(k, 40*time.Second, time.Minute) {
			if n != 1 {
				t.Fatalf("%d after a refusal", n)
			}
		}
	})
	t.Run("packets wait in front of the link", func(t *testing.T) {
		k := &Controller{}
		p := limited{link: 12e6, each: 1e6}
		p.steerUntil(k, func() bool { return k.Doubling() })
		if k.Queued(k.limit.since, 22*ms, 1e6) || !k.Doubling() {
			t.Error("a quick handshake ended the trial")
		}
		if k.Queued(k.limit.since, 60*ms, 5e6) || !k.Doubling() {
			t.Error("the queue of a first burst ended the trial")
		}
		if !k.Queued(k.limit.since, 60*ms, 1e6) || k.N != 1 {
			t.Error("a slow handshake did not end it")
		}
	})
	t.Run("a trial that is interrupted begins again", func(t *testing.T) {
		k := &Controller{}
		p := limited{link: 12e6, each: 1e6}
		p.steerUntil(k, func() bool { return k.N >= 4 })
		k.Interrupted(k.limit.since.Add(time.Hour), 0) // the link carried nothing for an hour
		if p.steer(k, time.Second, time.Minute); k.N != 8 {
			t.Errorf("%d connections", k.N)
		}
	})
	t.Run("what another link has found", func(t *testing.T) {
		for _, c := range []struct {
			name   string
			recent float64
			filled float64
			want   int
		}{
			{"alike", 1.1e6, 0, 6},
			{"slower", 0.5e6, 0, 1},
			{"faster", 2e6, 0, 1},
			{"alike, and full", 1.1e6, 1.1e6, 1},
		} {
			k := &Controller{}
			now := time.Unix(1000, 0)
			k.Begin(now, 1, 1, MostLimited, 0)
			k.limit.filled, k.limit.full = c.filled, now
			k.Sample(now.Add(50*ms), Sample{RTT: 20 * ms, Least: 20 * ms, Data: 20 * ms, Link: Link{
				Got: 50e3, Working: 1, Recent: c.recent, Lasts: time.Minute, Limit: 1e6, Conns: 6,
			}})
			if k.N != c.want {
				t.Errorf("%s: %d connections, want %d", c.name, k.N, c.want)
			}
		}
	})
}
