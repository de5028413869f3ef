package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
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

// steady returns a link that has the mean rate after the ramp.
func (r radio) steady() Link {
	return Link{Rate: r.mean * mbit, RTT: r.rtt, Ramp: r.ramp, Events: r.events}
}

// draw returns a link with random rates.
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

// thesis is a row of Skjolden 2019: the links of docs/REPRODUCTION.md, and the results in the thesis. The Link deltas and rates are
// printed (tables 5.1 to 5.11); the shares of the ideal time are computed from printed times (docs/REPRODUCTION.md).
type thesis struct {
	name      string
	wifi, lte radio
	size      int64
	share     [4]float64    // percent
	delta     [4]float64    // seconds
	printed   [6][2]printed // of Wi-Fi and LTE alone, naive, Algorithms 1 to 3, over Wi-Fi and LTE
	pass      string
	passes    func(c map[string]cell, a3 string) bool
}

// printed is a printed rate and its standard deviation in Mbit/s.
type printed struct{ rate, sigma float64 }

// cell is the result of a scheme in a row: medians.
type cell struct {
	took, delta time.Duration
	share       float64 // ideal time / time
	bans        int     // total over all runs
	rates       [2]rate
}

var thesisRows = []thesis{
	{
		name: "S-HS7", wifi: radio{mean: 80, rtt: 20 * ms}, lte: radio{62, 6.2, 40 * ms, ramp, nil}, size: 250e6,
		share: [4]float64{78, 83, 80, 89}, delta: [4]float64{5.72, 0.21, 2.55, 0.50},
		printed: [6][2]printed{{{78.99, 0.74}, {}}, {{}, {61.37, 11.31}}, {{78.96, 0.13}, {57.53, 11.55}}, {{78.90, 0.03}, {42.10, 2.73}}, {{78.90, 0.43}, {47.85, 5.93}}, {{78.97, 0.05}, {51.60, 4.34}}},
		pass:    "A3 >= 89 % of the ideal, fastest of the four, delta < 1 s",
		passes: func(c map[string]cell, a3 string) bool {
			a := c[a3]
			return a.share >= 0.89 && a.delta < time.Second && a.took <= min(c["naive"].took, c["alg1"].took, c["alg2-known"].took)
		},
	},
	{
		name: "S-HS6", wifi: radio{mean: 80, rtt: 20 * ms}, lte: radio{40, 4, 40 * ms, ramp, nil}, size: 250e6,
		share: [4]float64{54, 95, 93, 105}, delta: [4]float64{19.17, 0.01, 3.09, 0.39},
		printed: [6][2]printed{{{79.01, 0.02}, {}}, {{}, {39.28, 3.85}}, {{79.01, 0.05}, {33.79, 7.26}}, {{79.01, 0.03}, {36.29, 9.09}}, {{78.98, 24.93}, {41.36, 8.03}}, {{78.98, 0.05}, {49.81, 10.92}}},
		pass:    "naive slower than link 1 alone; A3 takes 64 to 70 % of link 1's time",
		passes: func(c map[string]cell, a3 string) bool {
			r := c[a3].took.Seconds() / c["wifi"].took.Seconds()
			return c["naive"].took > c["wifi"].took && r >= 0.64 && r <= 0.70
		},
	},
	{
		name: "S-LS", wifi: radio{mean: 7.5, rtt: 20 * ms}, lte: radio{66, 6.5, 40 * ms, ramp, nil}, size: 250e6,
		share: [4]float64{22, 102, 103, 103}, delta: [4]float64{121.92, 0.41, 0.69, 0.32},
		printed: [6][2]printed{{{7.49, 0}, {}}, {}, {{7.49, 0}, {64.90, 6.58}}, {{7.49, 0}, {65.24, 7.39}}, {{7.49, 0}, {66.66, 4.62}}, {{7.49, 0}, {66.70, 6.44}}},
		pass:    "A1 to A3 within 2 %, >= 97 % of the ideal; naive takes about 4.7 times as long; Wi-Fi not banned",
		passes: func(c map[string]cell, a3 string) bool {
			all := []float64{c["alg1"].share, c["alg2-known"].share, c[a3].share}
			n := c["naive"].took.Seconds() / c[a3].took.Seconds()
			return slices.Max(all)/slices.Min(all) <= 1.02 && slices.Min(all) >= 0.97 && n > 4 && n < 5.4 && c[a3].bans == 0
		},
	},
	{
		name: "S-TS", wifi: radio{15.3, 2, 20 * ms, 0, nil}, lte: radio{80, 7, 40 * ms, ramp, nil}, size: 250e6,
		share: [4]float64{32, 64, 81, 93}, delta: [4]float64{51.34, 0.82, 4.29, 0.84},
		printed: [6][2]printed{{{15.27, 2.11}, {}}, {{}, {80.14, 6.90}}, {{15.43, 0.77}, {77.62, 19.31}}, {{15.27, 1.48}, {49.14, 11.67}}, {{14.73, 3.35}, {76.28, 11.33}}, {{15.30, 1.82}, {82.14, 6.50}}},
		pass:    "A3 >= 93 % of the ideal; A1 clearly behind",
		passes: func(c map[string]cell, a3 string) bool {
			return c[a3].share >= 0.93 && c["alg1"].share < c[a3].share-0.05
		},
	},
	{
		name: "S-TM", wifi: radio{15.9, 6, 20 * ms, 0, nil}, lte: radio{67, 2, 40 * ms, 0, nil}, size: 250e6,
		share: [4]float64{37, 91, 91, 97}, delta: [4]float64{55.24, 0.75, 2.57, 0.69},
		printed: [6][2]printed{{{16.59, 6.76}, {}}, {{}, {67.30, 1.30}}, {{14.34, 5.10}, {68.13, 8.43}}, {{14.76, 4.30}, {64.96, 11.68}}, {{13.89, 36.07}, {66.77, 2.62}}, {{14.07, 3.78}, {66.94, 2.40}}},
		pass:    "A3 >= 97 % of the ideal",
		passes:  func(c map[string]cell, a3 string) bool { return c[a3].share >= 0.97 },
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
		printed: [6][2]printed{{{57.28, 1.13}, {}}, {{}, {70.44, 22.66}}, {{57.25, 4.80}, {75.11, 29.34}}, {{55.01, 5.73}, {41.68, 21.53}}, {{54.96, 12.71}, {96.99, 34.53}}, {{52.10, 6.07}, {94.70, 30.85}}},
		pass:    "A3 <= 1.1 times the ideal time, delta < 0.5 s",
		passes: func(c map[string]cell, a3 string) bool {
			return c[a3].share >= 1/1.1 && c[a3].delta < 500*ms
		},
	},
}

// quiet returns a row without noise, in a window as large as the object.
func (r thesis) quiet() Spec {
	return Spec{Size: r.size, First: 256 << 10, Window: r.size + 1, Links: []Link{r.wifi.steady(), r.lte.steady()}}
}
