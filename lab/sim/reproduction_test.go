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

// runs is how often a row of the reproduction is run, each time with other noise (docs/REPRODUCTION.md).
const runs = 10

// published are the schemes of the thesis, Algorithms 2 and 3 with the links' mean rates as their constants, as published;
// alg3 has guards, and measures instead.
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

// at runs schemes on a row with a window. It adds the time of each link alone, unless that is there already.
func (r thesis) at(t *testing.T, window int64, schemes []string, alone [][2]time.Duration) map[string]cell {
	all := map[string]cell{}
	took, delta, share, bans := map[string][]time.Duration{}, map[string][]time.Duration{}, map[string][]float64{}, map[string]int{}
	for seed := range uint64(runs) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		s := r.quiet()
		s.Window, s.Seed, s.Links = window, seed, []Link{r.wifi.draw(rnd), r.lte.draw(rnd)}
		for i, name := range []string{"wifi", "lte"} {
			if alone[seed][i] == 0 {
				one := s
				one.Window, one.Links = r.size+1, slices.Clone(s.Links[i:i+1])
				one.Links[0].Events = nil
				alone[seed][i] = run(t, "single", one).Took
			}
			took[name] = append(took[name], alone[seed][i])
		}
		ideal := 1 / (1/alone[seed][0].Seconds() + 1/alone[seed][1].Seconds())
		for _, name := range schemes {
			got := run(t, name, s)
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

func verdict(ok bool) string {
	if ok {
		return "pass"
	}
	return "differs"
}

// TestReproduction writes the sources' tables beside Tributary's figures into docs/REPRODUCTION.md:
// go test -C lab ./sim -run Reproduction -update. The text around them says where one differs, and why.
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
	large, small := r.both(t)
	for _, alone := range []string{"wifi", "lte"} {
		fmt.Fprintf(&b, "| %s | %s alone | | %.1f s | |\n", r.name, alone, large[alone].took.Seconds())
	}
	for i, name := range published {
		reported := ""
		switch {
		case r.share[0] == 0: // the thesis has no such row
		case i < 4:
			reported = fmt.Sprintf("%.0f %%, %.2f s", r.share[i], r.delta[i])
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
		r := run(t, scheduler, Spec{
			Size: size, First: 256 << 10, Window: defaultWindow, Restart: restart, Links: []Link{first, lte},
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
	for _, rates := range kCapRates {
		for _, size := range kCapSizes {
			s := kCap(rates, size)
			fmt.Fprintf(&b, "| %.0f + %.0f | %.1f MB |", rates[0], rates[1], float64(size)/1e6)
			best := time.Hour
			for _, f := range fixed {
				d := run(t, f, s).Took
				best = min(best, d)
				fmt.Fprintf(&b, " %.2f s |", d.Seconds())
			}
			for _, f := range []string{"mphttp", "confluence"} {
				d := run(t, f, s).Took
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
			s := nPart(q, size)
			took := func(name string) float64 {
				var all []time.Duration
				for s.Seed = range uint64(runs) {
					all = append(all, run(t, name, s).Took)
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
		fmt.Fprintf(&b, "| %.0f:%.0f |", 100*r, 100-100*r)
		for _, c := range []struct {
			name   string
			window int64
		}{{"best", 4 * piece}, {"static", 4 * piece}, {"dynamic", 4 * piece}, {"confluence", 4 * piece}, {"static", 12 * piece}, {"confluence", defaultWindow}} {
			fmt.Fprintf(&b, " %.0f %% |", 100*ofLimit(t, c.name, eRatio(r, c.window)))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
