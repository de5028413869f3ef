package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/lab/literature"
)

// runs is the number of runs of a row of the reproduction, each with different noise (docs/REPRODUCTION.md).
const runs = 10

// published lists the schemes of the thesis. Algorithms 2 and 3 have the links' mean rates as constants, as published; alg3 has
// guards and measures the rates instead.
var published = []string{"naive", "alg1", "alg2-known", "alg3-known", "alg3", "confluence"}

// both runs every scheme on a row, in a window as large as the object and in the default one. Each link alone, and schemes that
// always have a window as large as the object, run once.
func (r thesis) both(t *testing.T) (large, small map[string]cell) {
	alone := make([][2]time.Duration, runs)
	large = r.at(t, r.size+1, published, alone)
	small = r.at(t, defaultWindow, slices.DeleteFunc(slices.Clone(published), knows), alone)
	for _, name := range published {
		if knows(name) {
			small[name] = large[name]
		}
	}
	return large, small
}

// at runs schemes on a row with a window. It adds the time of each link alone, unless it is known already.
func (r thesis) at(t *testing.T, window int64, schemes []string, alone [][2]time.Duration) map[string]cell {
	all := map[string]cell{}
	took, delta, share, bans := map[string][]time.Duration{}, map[string][]time.Duration{}, map[string][]float64{}, map[string]int{}
	rates := map[string]*[2][]rate{}
	seen := func(name string, link int, of Received, at int) {
		if rates[name] == nil {
			rates[name] = &[2][]rate{}
		}
		if r := ratesOf(of.Rates(at, 10)); r.p50 > 0 {
			rates[name][link] = append(rates[name][link], r)
		}
	}
	for seed := range uint64(runs) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		s := r.quiet()
		s.Window, s.Seed, s.Links = window, seed, []Link{r.wifi.draw(rnd), r.lte.draw(rnd)}
		for i, name := range []string{"wifi", "lte"} {
			if alone[seed][i] == 0 {
				one := s
				one.Window, one.Links = r.size+1, slices.Clone(s.Links[i:i+1])
				one.Links[0].Events = nil
				got := run(t, "single", one)
				alone[seed][i] = got.Took
				seen(name, i, got.Received, 0)
			}
			took[name] = append(took[name], alone[seed][i])
		}
		ideal := 1 / (1/alone[seed][0].Seconds() + 1/alone[seed][1].Seconds())
		for _, name := range schemes {
			got := run(t, name, s)
			took[name], delta[name] = append(took[name], got.Took), append(delta[name], got.Delta())
			share[name], bans[name] = append(share[name], ideal/got.Took.Seconds()), bans[name]+got.Bans
			for i := range s.Links {
				seen(name, i, got.Received, i)
			}
		}
	}
	for name := range took {
		c := cell{took: median(took[name]), bans: bans[name]}
		if len(share[name]) > 0 {
			c.share, c.delta = median(share[name]), median(delta[name])
		}
		for i := range c.rates {
			if rates[name] != nil {
				c.rates[i] = medianOf(rates[name][i])
			}
		}
		all[name] = c
	}
	return all
}

// rate summarizes the rates of one link in one run, each over 1 s, in Mbit/s.
type rate struct{ p05, p50, p90, sigma, cv float64 }

func ratesOf(rates []float64) rate {
	for i := range rates {
		rates[i] /= mbit
	}
	r := rate{p05: percentile(rates, 0.05), p50: percentile(rates, 0.5), p90: percentile(rates, 0.9), sigma: sigma(rates)}
	if m := mean(rates); m > 0 {
		r.cv = r.sigma / m
	}
	return r
}

// medianOf returns the median of each figure over the runs, as in the thesis (section 3.4).
func medianOf(runs []rate) rate {
	of := func(figure func(rate) float64) float64 {
		var all []float64
		for _, r := range runs {
			all = append(all, figure(r))
		}
		return percentile(all, 0.5)
	}
	return rate{
		of(func(r rate) float64 { return r.p05 }), of(func(r rate) float64 { return r.p50 }), of(func(r rate) float64 { return r.p90 }),
		of(func(r rate) float64 { return r.sigma }), of(func(r rate) float64 { return r.cv }),
	}
}

// sampledRows is how many rows apart those are that run if the table is not computed as a whole.
const sampledRows = 4

// skjoldenTable returns the rows of chapter 5: times, then rates.
func skjoldenTable(t *testing.T) string {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "REPRODUCTION.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]struct{ times, rates string }, len(thesisRows))
	slower := make([]float64, len(thesisRows)) // naive in the default window, compared with a window as large as the object
	t.Run("rows", func(t *testing.T) {
		for i, r := range thesisRows {
			if !whole() && i%sampledRows != 0 {
				continue
			}
			t.Run(r.name, func(t *testing.T) {
				t.Parallel()
				large, small := r.both(t)
				rows[i].times, rows[i].rates = r.times(large, small), r.rates(large)
				if shown := string(text); !whole() && !(strings.Contains(shown, rows[i].times) && strings.Contains(shown, rows[i].rates)) {
					t.Errorf("docs/REPRODUCTION.md shows something else than\n%s%s", rows[i].times, rows[i].rates)
				}
				slower[i] = small["naive"].took.Seconds() / large["naive"].took.Seconds()
			})
		}
	})
	if !whole() {
		return "" // the rows that ran were compared one by one
	}
	var times, rates strings.Builder
	for _, r := range rows {
		times.WriteString(r.times)
		rates.WriteString(r.rates)
	}
	return "| row | scheme | printed delta, computed share | window = object: time, share, delta | default window: time, share, delta |\n" +
		"| --- | --- | ---: | ---: | ---: |\n" + times.String() +
		fmt.Sprintf("\nIn the default window naive takes %.2f to %.2f times as long as in one as large as the object: the slower link holds the\n"+
			"head. alg1, alg3 and confluence do not notice.\n", slices.Min(slower), slices.Max(slower)) +
		capsOfAlg1(t) +
		"\nRates in Mbit/s, over 1 s each, as the thesis samples them; window = object:\n\n" +
		"| row | scheme | printed: Wi-Fi, sigma | here: p50 (p05 to p90), sigma, Cv | printed: LTE, sigma | here: p50 (p05 to p90), sigma, Cv |\n" +
		"| --- | --- | ---: | ---: | ---: | ---: |\n" + rates.String()
}

// capsOfAlg1 tries caps of Algorithm 1 on S-HS7 without noise.
func capsOfAlg1(t *testing.T) string {
	s := thesisRows[0].quiet()
	var times []string
	for _, mb := range []int64{1, 2, 4, 8, 16} {
		s.with = &literature.Alg1{Cap: mb * 1e6}
		times = append(times, fmt.Sprintf("%.1f", run(t, "alg1", s).Took.Seconds()))
	}
	return "\nThe thesis does not name Algorithm 1's cap, and has 4 MB in an example. With 1, 2, 4, 8 and 16 MB it takes " +
		strings.Join(times, ", ") + " s on S-HS7\nwithout noise.\n"
}

// times returns a row's part of the table of times.
func (r thesis) times(large, small map[string]cell) string {
	var b strings.Builder
	for _, alone := range []string{"wifi", "lte"} {
		fmt.Fprintf(&b, "| %s | %s alone | | %.1f s | |\n", r.name, alone, large[alone].took.Seconds())
	}
	for i, name := range published {
		reported := ""
		switch {
		case r.share[0] == 0: // the thesis has no such row
		case i < 4:
			reported = fmt.Sprintf("%.2f s, %.0f %%", r.delta[i], r.share[i])
		}
		fmt.Fprintf(&b, "| | %s | %s |", name, reported)
		for k, c := range []cell{large[name], small[name]} {
			if k == 1 && knows(name) { // always with a window as large as the object
				b.WriteString(" |")
				continue
			}
			fmt.Fprintf(&b, " %.1f s, %.0f %%, %.2f s |", c.took.Seconds(), 100*c.share, c.delta.Seconds())
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "| | *%s* | | alg3-known: %s; alg3: %s | alg3: %s |\n", r.pass, verdict(r.passes(large, "alg3-known")),
		verdict(r.passes(large, "alg3")), verdict(r.passes(small, "alg3")))
	return b.String()
}

// rates returns a row's part of the table of rates.
func (r thesis) rates(large map[string]cell) string {
	var b strings.Builder
	row := r.name
	for i, name := range append([]string{"wifi", "lte"}, published...) {
		fmt.Fprintf(&b, "| %s | %s |", row, strings.NewReplacer("wifi", "wifi alone", "lte", "lte alone").Replace(name))
		row = ""
		for link, rate := range large[name].rates {
			if len(r.printed) > i && r.printed[i][link].rate > 0 {
				fmt.Fprintf(&b, " %.2f, %.2f |", r.printed[i][link].rate, r.printed[i][link].sigma)
			} else {
				b.WriteString(" |")
			}
			if rate.p50 > 0 {
				fmt.Fprintf(&b, " %.1f (%.1f to %.1f), %.1f, %.2f |", rate.p50, rate.p05, rate.p90, rate.sigma, rate.cv)
			} else {
				b.WriteString(" |")
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// failingTable returns the rows fail-1 and fail-2. Nothing in them is random, so each has one run.
func failingTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| row | object | scheme | time | refetched | first link in all | bans | proposed |\n" +
		"| --- | ---: | --- | ---: | ---: | ---: | ---: | --- |\n")
	wifi, lte := Link{Rate: 80 * mbit, RTT: 20 * ms}, Link{Rate: 60 * mbit, RTT: 40 * ms}
	row := func(name, scheduler string, size int64, restart bool, line string, pass func(Result) bool, events ...LinkEvent) {
		first, how := wifi, scheduler
		first.Events = events
		check := health.SlowGuarded
		switch {
		case scheduler == "alg3-known" && strings.HasPrefix(name, "fail-2"):
			check = health.SlowLiteral // the check of that section
		case scheduler == "alg3-known":
			check = health.SlowOff // as published
		}
		r := run(t, scheduler, Spec{
			Size: size, First: 256 << 10, Window: defaultWindow, Restart: restart, Slow: check, Links: []Link{first, lte},
		})
		if restart {
			how += ", restart"
		}
		if pass != nil {
			line += ": " + map[bool]string{true: "holds", false: "does not hold"}[pass(r)]
		}
		fmt.Fprintf(&b, "| %s | %d MB | %s | %.1f s | %.0f kB | %.1f MB | %d | %s |\n", name, size/1e6, how, r.Took.Seconds(),
			float64(r.Waste)/1e3, float64(r.Bytes[0])/1e6, r.Bans, line)
	}
	const five, back = 5 * time.Second, 25 * time.Second
	goes := []LinkEvent{{At: five, What: Gone}, {At: back, What: Back}}
	dark := []LinkEvent{{At: five, What: Blackhole}, {At: back, What: Restore}}
	again := func(r Result) bool { return r.Waste < 1e6 && r.Bytes[0] > 52e6 } // by 5 s the link delivered 50 MB
	for _, name := range []string{"alg3-known", "alg3", "confluence"} {
		row("no failure", name, 250e6, false, "", nil)
		row("fail-1, interface down from 5 to 25 s", name, 250e6, false, "refetched about 0, readmitted", again, goes...)
		row("fail-1, interface down from 5 to 25 s", name, 250e6, true, "refetched > 0.1 MB", func(r Result) bool { return r.Waste > 1e5 }, goes...)
		row("fail-1, silent from 5 to 25 s", name, 250e6, false, "refetched about 0, readmitted", again, dark...)
		row("fail-1, silent from 5 to 25 s", name, 500e6, false, "refetched about 0, readmitted", again, dark...)
		row("fail-2, 50 kbit/s from 5 s on", name, 250e6, false, "banned", func(r Result) bool { return r.Bans > 0 },
			LinkEvent{At: five, What: SetRate, Rate: 50e3 / 8})
	}
	return b.String()
}
