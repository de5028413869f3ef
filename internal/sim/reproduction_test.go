package sim

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// runs is how often a row of the reproduction is run, each time with other noise (sources.md section 3.5).
const runs = 10

// defaultWindow is the reorder window of a fresh installation.
const defaultWindow = 16 << 20

// radio is a link with normally distributed rates, one a second, after a ramp.
type radio struct {
	mean, sigma float64 // Mbit/s
	rtt, ramp   time.Duration
	events      []LinkEvent
}

// draw makes a link of it.
func (r radio) draw(rnd *rand.Rand) Link {
	l := Link{Rate: r.mean * mbit, RTT: r.rtt, Ramp: r.ramp, Events: r.events}
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

// thesis is a row of Skjolden 2019: the links of sources.md section 3.5, and the shares of the ideal time and the Link
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

// cell is what a scheme did in a row: medians.
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

// published are the schemes of the thesis, Algorithms 2 and 3 with the links' mean rates as their constants, as published;
// alg3 has guards, and measures instead.
var published = []string{"naive", "alg1", "alg2-known", "alg3-known", "alg3", "confluence"}

// at runs every scheme on a row with a window.
func (r thesis) at(t *testing.T, window int64) map[string]cell {
	all := map[string]cell{}
	took, delta, share, bans := map[string][]time.Duration{}, map[string][]time.Duration{}, map[string][]float64{}, map[string]int{}
	for seed := range uint64(runs) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		s := Spec{Size: r.size, First: 256 << 10, Window: window, Seed: seed, Links: []Link{r.wifi.draw(rnd), r.lte.draw(rnd)}}
		var alone [2]time.Duration
		for i, name := range []string{"wifi", "lte"} {
			one := s
			one.Scheduler, one.Window, one.Links = "single", r.size+1, slices.Clone(s.Links[i:i+1])
			one.Links[0].Events = nil
			alone[i] = reproduce(t, r.name, one).Took
			took[name] = append(took[name], alone[i])
		}
		ideal := 1 / (1/alone[0].Seconds() + 1/alone[1].Seconds())
		for _, name := range published {
			s.Scheduler = name
			got := reproduce(t, r.name, s)
			took[name], delta[name] = append(took[name], got.Took), append(delta[name], got.Delta())
			share[name], bans[name] = append(share[name], ideal/got.Took.Seconds()), bans[name]+got.Bans
		}
	}
	for name := range took {
		c := cell{took: median(took[name]), bans: bans[name]}
		if len(share[name]) > 0 {
			c.share, c.delta = median(share[name]), median(delta[name])
		}
		all[name] = c
	}
	return all
}

func reproduce(t *testing.T, row string, s Spec) Result {
	r, err := Run(s)
	if err != nil {
		t.Errorf("%s, %s: %v", row, s.Scheduler, err)
	}
	return r
}

func verdict(ok bool) string {
	if ok {
		return "pass"
	}
	return "differs"
}

// TestReproduction writes the sources' tables beside Tributary's figures into docs/REPRODUCTION.md:
// go test ./internal/sim -run Reproduction -update. The text around them says where one differs, and why.
func TestReproduction(t *testing.T) {
	parts := make([]string, len(thesisRows)+1)
	t.Run("rows", func(t *testing.T) {
		for i, r := range thesisRows {
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				parts[i] = r.write(t)
			})
		}
		t.Run("others", func(t *testing.T) {
			t.Parallel()
			parts[len(thesisRows)] = failures(t) + capped(t) + partitions(t) + ratios(t)
		})
	})
	if t.Failed() {
		return
	}
	inDoc(t, filepath.Join("..", "..", "docs", "REPRODUCTION.md"), "reproduction", "### Skjolden 2019\n\n"+
		"| row | scheme | reported: share, delta | window = object: time, share, delta | default window: time, share, delta |\n"+
		"| --- | --- | ---: | ---: | ---: |\n"+strings.Join(parts, ""))
}

func (r thesis) write(t *testing.T) string {
	var b strings.Builder
	whole, small := r.at(t, r.size+1), r.at(t, defaultWindow)
	for _, alone := range []string{"wifi", "lte"} {
		fmt.Fprintf(&b, "| %s | %s alone | | %.1f s | |\n", r.name, alone, whole[alone].took.Seconds())
	}
	for i, name := range published {
		reported := ""
		switch {
		case r.share[0] == 0: // the thesis has no such row
		case i < 4:
			reported = fmt.Sprintf("%.0f %%, %.2f s", r.share[i], r.delta[i])
		}
		fmt.Fprintf(&b, "| | %s | %s |", name, reported)
		for k, c := range []cell{whole[name], small[name]} {
			if k == 1 && knows(name) { // always with a window as large as the object
				b.WriteString(" |")
				continue
			}
			fmt.Fprintf(&b, " %.1f s, %.0f %%, %.2f s |", c.took.Seconds(), 100*c.share, c.delta.Seconds())
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "| | *%s* | | alg3-known: %s; alg3: %s | alg3: %s |\n", r.pass, verdict(r.passes(whole, "alg3-known")),
		verdict(r.passes(whole, "alg3")), verdict(r.passes(small, "alg3")))
	return b.String()
}

// failures are the rows fail-1 and fail-2.
func failures(t *testing.T) string {
	var b strings.Builder
	b.WriteString("\n### Failing links (Skjolden 2019 chapter 6), default window\n\n" +
		"| row | object | scheme | time | refetched | first link in all | bans | pass line |\n" +
		"| --- | ---: | --- | ---: | ---: | ---: | ---: | --- |\n")
	wifi, lte := Link{Rate: 80 * mbit, RTT: 20 * ms}, Link{Rate: 60 * mbit, RTT: 40 * ms}
	row := func(name, scheduler string, size int64, restart bool, line string, pass func(Result) bool, events ...LinkEvent) {
		first, how := wifi, scheduler
		first.Events = events
		r := reproduce(t, name, Spec{
			Size: size, First: 256 << 10, Window: defaultWindow, Scheduler: scheduler, Restart: restart, Links: []Link{first, lte},
		})
		if restart {
			how += ", restart"
		}
		if pass != nil {
			line += ": " + verdict(pass(r))
		}
		fmt.Fprintf(&b, "| %s | %d MB | %s | %.1f s | %.2f MB | %.1f MB | %d | %s |\n", name, size/1e6, how, r.Took.Seconds(),
			float64(r.Waste)/1e6, float64(r.Bytes[0])/1e6, r.Bans, line)
	}
	const five, back = 5 * time.Second, 25 * time.Second
	goes := []LinkEvent{{At: five, What: Gone}, {At: back, What: Back}}
	dark := []LinkEvent{{At: five, What: Blackhole}, {At: back, What: Restore}}
	again := func(r Result) bool { return r.Waste < 1e6 && r.Bytes[0] > 52e6 }
	for _, name := range []string{"alg3", "confluence"} {
		row("no failure", name, 250e6, false, "", nil)
		row("fail-1, interface down from 5 to 25 s", name, 250e6, false, "refetched about 0, readmitted", again, goes...)
		row("fail-1, interface down from 5 to 25 s", name, 250e6, true, "refetched > 0", func(r Result) bool { return r.Waste > 0 }, goes...)
		row("fail-1, silent from 5 to 25 s", name, 500e6, false, "refetched about 0, readmitted", again, dark...)
		row("fail-2, 50 kbit/s from 5 s on", name, 250e6, false, "banned", func(r Result) bool { return r.Bans > 0 },
			LinkEvent{At: five, What: SetRate, Rate: 50e3 / 8})
	}
	return b.String()
}

// capped is the row K-cap.
func capped(t *testing.T) string {
	var b strings.Builder
	b.WriteString("\n### Capped links (Nikravesh 2018 section 6.6), 25 and 50 ms\n\n" +
		"| Mbit/s | object | 128 kB | 256 kB | 512 kB | mphttp | against the best of these | confluence | against the best of these |\n" +
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, rates := range [][2]float64{{10, 5}, {5, 10}, {5, 5}} {
		for _, size := range []int64{512e3, 1e6, 2e6, 4e6} {
			s := Spec{
				Size: size, First: 64 << 10, Window: size + 1,
				Links: []Link{{Rate: rates[0] * mbit, RTT: 25 * ms}, {Rate: rates[1] * mbit, RTT: 50 * ms}},
			}
			took := func(name string) time.Duration {
				s.Scheduler = name
				return reproduce(t, "K-cap", s).Took
			}
			fmt.Fprintf(&b, "| %.0f + %.0f | %.1f MB |", rates[0], rates[1], float64(size)/1e6)
			best := time.Hour
			for _, f := range []string{"fixed-128k", "fixed", "fixed-512k"} {
				d := took(f)
				best = min(best, d)
				fmt.Fprintf(&b, " %.2f s |", d.Seconds())
			}
			for _, f := range []string{"mphttp", "confluence"} {
				d := took(f)
				fmt.Fprintf(&b, " %.2f s | %+.1f %% |", d.Seconds(), 100*(d.Seconds()/best.Seconds()-1))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// partitions is the row N-part.
func partitions(t *testing.T) string {
	var b strings.Builder
	names := []string{"naive", "probe", "noisy-2", "noisy-50", "best", "switching", "switching-free", "confluence"}
	b.WriteString("\n### Partitions (Nika 2015 chapters 4 and 5), 5q + 5 Mbit/s, 30 and 60 ms, share of the optimal partition's speed\n\n" +
		"| q | object | even (naive) | naive (probe) | noisy-2 | noisy-50 | best | best by formula | switching | switching-free | confluence |\n" +
		"| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, q := range []float64{0.1, 0.3, 1, 3, 10} {
		for _, size := range []int64{500e3, 5e6} {
			s := Spec{
				Size: size, First: 64 << 10, Window: size + 1,
				Links: []Link{{Rate: 5 * q * mbit, RTT: 30 * ms}, {Rate: 5 * mbit, RTT: 60 * ms}},
			}
			took := func(name string) float64 {
				var all []time.Duration
				s.Scheduler = name
				for s.Seed = range uint64(runs) {
					all = append(all, reproduce(t, "N-part", s).Took)
				}
				return median(all).Seconds()
			}
			optimal := took("optimal")
			fmt.Fprintf(&b, "| %g | %.1f MB |", q, float64(size)/1e6)
			for _, name := range names {
				fmt.Fprintf(&b, " %.2f |", optimal/took(name))
				if name == "best" {
					fmt.Fprintf(&b, " %.2f |", max(q, 1)/(1+q))
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// ratios is the row E-ratio.
func ratios(t *testing.T) string {
	var b strings.Builder
	const piece = 100e3
	b.WriteString("\n### Ratios (Evensen 2011 section 4.5), 3 Mbit/s in all, 10 MB, share of the sum\n\n" +
		"| ratio | one link | static, 4 pieces held | dynamic, 4 | confluence, 4 | static, 12 | confluence, default window |\n" +
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range []float64{0.5, 0.6, 0.7, 0.8} {
		s := Spec{Size: 10e6, First: 64 << 10, Links: []Link{{Rate: 3 * r * mbit, RTT: 10 * ms}, {Rate: 3 * (1 - r) * mbit, RTT: 10 * ms}}}
		limit, _, err := Limit(s)
		if err != nil {
			t.Error(err)
			return ""
		}
		fmt.Fprintf(&b, "| %.0f:%.0f |", 100*r, 100-100*r)
		for _, c := range []struct {
			name   string
			window int64
		}{{"best", 4 * piece}, {"static", 4 * piece}, {"dynamic", 4 * piece}, {"confluence", 4 * piece}, {"static", 12 * piece}, {"confluence", defaultWindow}} {
			s.Scheduler, s.Window = c.name, c.window
			fmt.Fprintf(&b, " %.0f %% |", 100*limit.Seconds()/reproduce(t, "E-ratio", s).Took.Seconds())
		}
		b.WriteByte('\n')
	}
	return b.String()
}
