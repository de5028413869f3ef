package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

const (
	mbit          = 1e6 / 8  // bytes per second
	defaultWindow = 16 << 20 // bytes: the reorder window of a fresh installation
)

// Class is a kind of situation. At returns its nth scenario, always the same. Schedulers are compared over classes,
// since each of them is good somewhere.
type Class struct {
	Name string
	What string // a short description
	At   func(n uint64) Spec
}

// Classes returns the classes over which schedulers are compared. The window is the default one unless the class
// specifies another.
func Classes() []Class {
	class := func(name, what string, at func(r *rand.Rand) Spec) Class {
		return Class{name, what, func(n uint64) Spec {
			s := at(rand.New(rand.NewPCG(n, 3)))
			s.Seed = n
			if s.Window == 0 {
				s.Window = defaultWindow
			}
			if s.First == 0 {
				s.First = 256 << 10
			}
			return s
		}}
	}
	return []Class{
		class("alike", "two links within 1:1.5, 5 to 80 Mbit/s, 20 MB", func(r *rand.Rand) Spec {
			rate := logUniform(r, 5, 80)
			return Spec{Size: 20e6, Links: []Link{wifi(r, rate), lte(r, rate*between(r, 0.67, 1.5))}}
		}),
		class("unlike", "two links from 1:4 to 1:10, 20 MB", func(r *rand.Rand) Spec {
			rate, ratio := logUniform(r, 20, 100), between(r, 4, 10)
			if r.IntN(2) == 0 {
				return Spec{Size: 20e6, Links: []Link{wifi(r, rate), lte(r, rate/ratio)}}
			}
			return Spec{Size: 20e6, Links: []Link{wifi(r, rate/ratio), lte(r, rate)}}
		}),
		class("ramp", "Wi-Fi and an LTE link that takes 2.5 s to build up, 50 MB", func(r *rand.Rand) Spec {
			l := lte(r, between(r, 40, 80))
			l.Ramp = 2500 * time.Millisecond
			return Spec{Size: 50e6, Links: []Link{wifi(r, between(r, 10, 80)), l}}
		}),
		class("lossy", "0.05 to 0.5 % loss on one link, 20 MB", func(r *rand.Rand) Spec {
			w := wifi(r, between(r, 8, 40))
			w.Loss = between(r, 0.0005, 0.005)
			return Spec{Size: 20e6, Links: []Link{w, lte(r, between(r, 8, 80))}}
		}),
		class("lossy, Reno", "as lossy, with Reno at the origin", func(r *rand.Rand) Spec {
			w, l := wifi(r, between(r, 8, 40)), lte(r, between(r, 8, 80))
			w.Loss, w.Reno, l.Reno = between(r, 0.0005, 0.005), true, true
			return Spec{Size: 20e6, Links: []Link{w, l}}
		}),
		class("varying", "an LTE link whose rate changes every 0.2 to 2 s by up to ten times, 20 MB",
			func(r *rand.Rand) Spec {
				l := lte(r, 0)
				l.Trace = levels(r, 20*time.Second, 2, 40)
				return Spec{Size: 20e6, Links: []Link{wifi(r, between(r, 8, 20)), l}}
			}),
		class("outage", "one of two links is dark for 2 to 5 s, 20 MB", func(r *rand.Rand) Spec {
			rate := between(r, 10, 30)
			links := []Link{wifi(r, rate), lte(r, rate*between(r, 0.5, 2))}
			at := time.Duration(between(r, 0.5, 2) * float64(time.Second))
			i := r.IntN(2)
			links[i].Events = []LinkEvent{
				{At: at, What: Blackhole},
				{At: at + time.Duration(between(r, 2, 5)*float64(time.Second)), What: Restore},
			}
			return Spec{Size: 20e6, Links: links}
		}),
		class("far", "one link has a round trip of 150 to 300 ms, 20 MB", func(r *rand.Rand) Spec {
			l := lte(r, between(r, 20, 60))
			l.RTT = time.Duration(between(r, 150, 300)) * time.Millisecond
			return Spec{Size: 20e6, Links: []Link{wifi(r, between(r, 10, 60)), l}}
		}),
		class("short", "512 kB to 4 MB over 2 to 20 Mbit/s", func(r *rand.Rand) Spec {
			size := int64(512e3) << r.IntN(4)
			return Spec{Size: size, First: 64 << 10, Links: []Link{
				wifi(r, logUniform(r, 2, 20)),
				lte(r, logUniform(r, 2, 20)),
			}}
		}),
		class("small window", "as alike, with 1 MiB for reordering", func(r *rand.Rand) Spec {
			rate := logUniform(r, 5, 80)
			return Spec{Size: 20e6, Window: 1 << 20, Links: []Link{wifi(r, rate), lte(r, rate*between(r, 0.67, 1.5))}}
		}),
		class("one by one", "the server closes connections on which requests are pipelined, 20 MB",
			func(r *rand.Rand) Spec {
				rate := logUniform(r, 5, 80)
				s := Spec{Size: 20e6, Links: []Link{wifi(r, rate), lte(r, rate*between(r, 0.67, 1.5))}}
				s.Faults.NoPipeline = true
				return s
			}),
		class("HTTP/2", "as alike, over HTTP/2", func(r *rand.Rand) Spec {
			rate := logUniform(r, 5, 80)
			links := []Link{wifi(r, rate), lte(r, rate*between(r, 0.67, 1.5))}
			links[0].H2, links[1].H2 = true, true
			return Spec{Size: 20e6, Links: links}
		}),
		class("four links", "four links of 5 to 50 Mbit/s, 40 MB", func(r *rand.Rand) Spec {
			var links []Link
			for range 2 {
				links = append(links, wifi(r, logUniform(r, 5, 50)), lte(r, logUniform(r, 5, 50)))
			}
			return Spec{Size: 40e6, Links: links}
		}),
		class("slow client", "a client that reads at half the rate of the links, 20 MB", func(r *rand.Rand) Spec {
			rate := logUniform(r, 5, 40)
			links := []Link{wifi(r, rate), lte(r, rate*between(r, 0.67, 1.5))}
			return Spec{Size: 20e6, Links: links, Client: (links[0].Rate + links[1].Rate) / 2}
		}),
	}
}

func between(r *rand.Rand, low, high float64) float64 { return low + (high-low)*r.Float64() }

// logUniform returns a random number whose logarithm is uniform: 1 to 10 is as likely as 10 to 100.
func logUniform(r *rand.Rand, low, high float64) float64 {
	return low * math.Pow(high/low, r.Float64())
}

// wifi and lte return links with a rate in Mbit/s and the round-trip times that are typical of such links.
func wifi(r *rand.Rand, rate float64) Link {
	return Link{
		Rate: rate * mbit, RTT: time.Duration(between(r, 8, 30) * float64(time.Millisecond)),
		Jitter: 2 * time.Millisecond,
	}
}

func lte(r *rand.Rand, rate float64) Link {
	return Link{
		Rate: rate * mbit, RTT: time.Duration(between(r, 35, 70) * float64(time.Millisecond)),
		Jitter: 8 * time.Millisecond,
	}
}

// levels returns a trace whose rate steps between levels in Mbit/s.
func levels(r *rand.Rand, length time.Duration, low, high float64) (trace []Rate) {
	for at := time.Duration(0); at < length; {
		d := time.Duration(logUniform(r, 200, 2000)) * time.Millisecond
		trace = append(trace, Rate{For: d, Rate: logUniform(r, low, high) * mbit})
		at += d
	}
	return trace
}
