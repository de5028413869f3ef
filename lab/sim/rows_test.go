package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/health"
	"github.com/tributary-http/tributary/internal/schedule"
)

// The scenarios of docs/REPRODUCTION.md.

const (
	ms   = time.Millisecond
	ramp = 2500 * ms
)

// run runs a scenario under a scheduler. Schedulers of the literature run as published, without a check for slow links, unless the
// scenario has one.
func run(t *testing.T, scheduler string, s Spec) Result {
	t.Helper()
	s.Scheduler = scheduler
	if s.Slow == "" && !slices.Contains(schedule.Names(), scheduler) {
		s.Slow = health.SlowOff
	}
	r, err := Run(s)
	if err != nil {
		t.Fatalf("%s: %v", scheduler, err)
	}
	return r
}

// radio is a link with normally distributed rates, one a second, after a ramp.
type radio struct {
	mean, sigma float64 // Mbit/s
	rtt, ramp   time.Duration
	events      []LinkEvent
}

// steady makes a link of it that has the mean rate after the ramp.
func (r radio) steady() Link {
	return Link{Rate: r.mean * mbit, RTT: r.rtt, Ramp: r.ramp, Events: r.events}
}

// draw makes a link of it.
func (r radio) draw(rnd *rand.Rand) Link {
	l := r.steady()
	if r.sigma == 0 {
		return l
	}
	for at := time.Duration(0); at < r.ramp; at += 100 * ms {
		l.Trace = append(l.Trace, Rate{100 * ms, r.mean * mbit * (1./3 + 2./3*at.Seconds()/r.ramp.Seconds())})
	}
	for range 300 {
		l.Trace = append(l.Trace, Rate{time.Second, max(0.05*r.mean, r.mean+r.sigma*rnd.NormFloat64()) * mbit})
	}
	return l
}

// thesis is a row of Skjolden 2019: the links of docs/REPRODUCTION.md, and the shares of the ideal time and the Link
// deltas of section 3.1 for naive and Algorithms 1 to 3.
type thesis struct {
	name      string
	wifi, lte radio
	size      int64
	share     [4]float64 // percent
	delta     [4]float64 // seconds
	pass      string
	passes    func(c map[string]cell, a3 string) bool
}

// cell is the result of a scheme in a row: medians.
type cell struct {
	took, delta time.Duration
	share       float64 // ideal time / time
	bans        int
}

var thesisRows = []thesis{
	{
		name: "S-HS7", wifi: radio{mean: 80, rtt: 20 * ms}, lte: radio{62, 6.2, 40 * ms, ramp, nil}, size: 250e6,
		share: [4]float64{78, 83, 80, 89}, delta: [4]float64{5.72, 0.21, 2.55, 0.50},
		pass: "A3 >= 89 % of the ideal, fastest of the four, delta < 1 s",
		passes: func(c map[string]cell, a3 string) bool {
			a := c[a3]
			return a.share >= 0.89 && a.delta < time.Second && a.took <= min(c["naive"].took, c["alg1"].took, c["alg2-known"].took)
		},
	},
	{
		name: "S-HS6", wifi: radio{mean: 80, rtt: 20 * ms}, lte: radio{40, 4, 40 * ms, ramp, nil}, size: 250e6,
		share: [4]float64{54, 95, 93, 105}, delta: [4]float64{19.17, 0.01, 3.09, 0.39},
		pass: "naive slower than link 1 alone; A3 takes 64 to 70 % of link 1's time",
		passes: func(c map[string]cell, a3 string) bool {
			r := c[a3].took.Seconds() / c["wifi"].took.Seconds()
			return c["naive"].took > c["wifi"].took && r >= 0.64 && r <= 0.70
		},
	},
	{
		name: "S-LS", wifi: radio{mean: 7.5, rtt: 20 * ms}, lte: radio{66, 6.5, 40 * ms, ramp, nil}, size: 250e6,
		share: [4]float64{22, 102, 103, 103}, delta: [4]float64{121.92, 0.41, 0.69, 0.32},
		pass: "A1 to A3 within 2 %, >= 97 % of the ideal; naive takes about 4.7 times as long; Wi-Fi not banned",
		passes: func(c map[string]cell, a3 string) bool {
			all := []float64{c["alg1"].share, c["alg2-known"].share, c[a3].share}
			n := c["naive"].took.Seconds() / c[a3].took.Seconds()
			return slices.Max(all)/slices.Min(all) <= 1.02 && slices.Min(all) >= 0.97 && n > 4 && n < 5.4 && c[a3].bans == 0
		},
	},
	{
		name: "S-TS", wifi: radio{15.3, 2, 20 * ms, 0, nil}, lte: radio{80, 7, 40 * ms, ramp, nil}, size: 250e6,
		share: [4]float64{32, 64, 81, 93}, delta: [4]float64{51.34, 0.82, 4.29, 0.84},
		pass: "A3 >= 93 % of the ideal; A1 clearly behind",
		passes: func(c map[string]cell, a3 string) bool {
			return c[a3].share >= 0.93 && c["alg1"].share < c[a3].share-0.05
		},
	},
	{
		name: "S-TM", wifi: radio{15.9, 6, 20 * ms, 0, nil}, lte: radio{67, 2, 40 * ms, 0, nil}, size: 250e6,
		share: [4]float64{37, 91, 91, 97}, delta: [4]float64{55.24, 0.75, 2.57, 0.69},
		pass:   "A3 >= 97 % of the ideal",
		passes: func(c map[string]cell, a3 string) bool { return c[a3].share >= 0.97 },
	},
	{
		name: "S-TM, outages", wifi: radio{15.9, 6, 20 * ms, 0, []LinkEvent{
			{At: 6 * time.Second, What: Blackhole},
			{At: 7 * time.Second, What: Restore},
			{At: 18 * time.Second, What: Blackhole},
			{At: 19 * time.Second, What: Restore},
		}}, lte: radio{67, 2, 40 * ms, 0, nil}, size: 250e6,
		pass:   "A3 >= 90 % of the ideal",
		passes: func(c map[string]cell, a3 string) bool { return c[a3].share >= 0.90 },
	},
	{
		name: "S-AO", wifi: radio{57, 1, 20 * ms, 0, nil}, lte: radio{82, 28, 40 * ms, 0, nil}, size: 250e6,
		share: [4]float64{87, 74, 89, 107}, delta: [4]float64{4.59, 0.26, 4.57, 0.09},
		pass: "A3 <= 1.1 times the ideal time, delta < 0.5 s",
		passes: func(c map[string]cell, a3 string) bool {
			return c[a3].share >= 1/1.1 && c[a3].delta < 500*ms
		},
	},
}

// quiet is a row without noise, in a window as large as the object.
func (r thesis) quiet() Spec {
	return Spec{Size: r.size, First: 256 << 10, Window: r.size + 1, Links: []Link{r.wifi.steady(), r.lte.steady()}}
}

// kCap is a transfer of row K-cap (Nikravesh 2018 section 6.6); rates in Mbit/s.
func kCap(rates [2]float64, size int64) Spec {
	return Spec{
		Size: size, First: 64 << 10, Window: size + 1,
		Links: []Link{{Rate: rates[0] * mbit, RTT: 25 * ms}, {Rate: rates[1] * mbit, RTT: 50 * ms}},
	}
}

var (
	kCapRates = [][2]float64{{10, 5}, {5, 10}, {5, 5}}
	kCapSizes = []int64{512e3, 1e6, 2e6, 4e6}
	fixed     = []string{"fixed-128k", "fixed", "fixed-512k"} // baselines of MP-HTTP
)

// nPart is a transfer of row N-part (Nika 2015 chapters 4 and 5).
func nPart(q float64, size int64) Spec {
	return Spec{
		Size: size, First: 64 << 10, Window: size + 1,
		Links: []Link{{Rate: 5 * q * mbit, RTT: 30 * ms}, {Rate: 5 * mbit, RTT: 60 * ms}},
	}
}

// eRatio is a transfer of row E-ratio (Evensen 2011 section 4.5): the first link has the given part of 3 Mbit/s.
func eRatio(part float64, window int64) Spec {
	return Spec{
		Size: 10e6, First: 64 << 10, Window: window,
		Links: []Link{{Rate: 3 * part * mbit, RTT: 10 * ms}, {Rate: 3 * (1 - part) * mbit, RTT: 10 * ms}},
	}
}

// ofLimit returns the share of the bundling limit that a scheduler reaches.
func ofLimit(t *testing.T, scheduler string, s Spec) float64 {
	t.Helper()
	limit, _, err := Limit(s)
	if err != nil {
		t.Fatal(err)
	}
	return limit.Seconds() / run(t, scheduler, s).Took.Seconds()
}
