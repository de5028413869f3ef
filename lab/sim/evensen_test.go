package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// eSum is the total rate of both links in Evensen 2011 chapter 4, in Mbit/s.
const eSum = 3

// watch streams 100 segments in each of the given number of runs, over links that depend on the run's seed.
func watch(runs, buffer int, dynamic bool, links func(seed uint64) []Link) (q viewed) {
	for seed := range uint64(runs) {
		d := davvi{clip: clip(seed, 100), buffer: buffer, dynamic: dynamic, rng: rand.New(rand.NewPCG(seed, 23))}
		r := d.stream(links(seed))
		for k := range q.levels {
			q.levels[k] += 100 * r.share(k) / float64(runs)
		}
		q.rate += float64(r.bytes) * 8 / 1e3 / (100 * segmentTime.Seconds()) / float64(runs)
		q.misses += float64(r.misses) / float64(runs)
		q.worst = max(q.worst, r.worst)
	}
	return q
}

// viewed is the average result for viewers over some runs.
type viewed struct {
	levels [4]float64 // percent of the segments
	rate   float64    // rate of the chosen segments in kbit/s
	misses float64    // deadlines missed per run
	worst  time.Duration
}

func (v viewed) String() string {
	return fmt.Sprintf("%.0f / %.0f / %.0f / %.0f, %.0f, %.1f (%.1f s)",
		v.levels[0], v.levels[1], v.levels[2], v.levels[3], v.rate, v.misses, v.worst.Seconds())
}

// three streams over the first link alone, with static and with dynamic subsegments.
func three(runs, buffer int, links func(seed uint64) []Link) (single, static, dynamic viewed) {
	first := func(seed uint64) []Link { return links(seed)[:1] }
	return watch(runs, buffer, false, first), watch(runs, buffer, false, links), watch(runs, buffer, true, links)
}

// fixedLinks returns a function that gives the same links for each seed.
func fixedLinks(links ...Link) func(uint64) []Link { return func(uint64) []Link { return links } }

// evensenTable writes the rows E-ratio, E-lat and E-dyn.
func evensenTable(t *testing.T) string {
	var b strings.Builder
	head := func(first string) {
		fmt.Fprintf(&b, "| %s | buffer | faster link alone | static, both links | dynamic, both links |\n| --- | ---: | ---: | ---: | ---: |\n",
			first)
	}
	found := func() { b.WriteString("\n| finding | reported | here | verdict |\n| --- | ---: | ---: | --- |\n") }
	line := func(what, reported, here string, ok bool) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", what, reported, here, verdict(ok))
	}

	b.WriteString("### Ratios (section 4.5), E-ratio\n\n3 Mbit/s in all, 0.1 ms, ten runs.\n\n")
	head("ratio")
	var flat []float64 // rates of dynamic subsegments
	var single, static, dynamic viewed
	for _, part := range []float64{0.5, 0.6, 0.7, 0.8} {
		single, static, dynamic = three(10, 2, fixedLinks(
			Link{Rate: eSum * part * mbit, RTT: ms / 10}, Link{Rate: eSum * (1 - part) * mbit, RTT: ms / 10}))
		flat = append(flat, dynamic.rate)
		fmt.Fprintf(&b, "| %.0f:%.0f | 2 | %v | %v | %v |\n", 100*part, 100-100*part, single, static, dynamic)
	}
	spread := 100 * (percentile(flat, 1)/percentile(flat, 0) - 1)
	found()
	line("dynamic: the same quality at every ratio", "yes", fmt.Sprintf("rates within %.0f %%", spread), spread <= 5)
	line("static at 80:20: lower quality than the faster link alone", "yes",
		fmt.Sprintf("%.0f against %.0f kbit/s", static.rate, single.rate), static.rate < single.rate)
	fmt.Fprintf(&b, "| static at 80:20: deadlines missed, beside those over the faster link alone | | %.1f against %.1f a run | |\n",
		static.misses, single.misses)
	line("dynamic: deadlines missed by at most", "about 0.3 s",
		fmt.Sprintf("%.1f s", dynamic.worst.Seconds()), dynamic.worst <= 400*ms)

	b.WriteString("\n### Round trips (section 4.5), E-lat\n\nTwice 1.5 Mbit/s, the first link at 10 ms, ten runs.\n\n")
	head("second link's round trip")
	rates := map[int][]float64{}
	var missed float64
	for _, buffer := range []int{2, 3} {
		for _, rtt := range []time.Duration{10 * ms, 40 * ms, 100 * ms} {
			single, static, dynamic = three(10, buffer, fixedLinks(
				Link{Rate: eSum / 2. * mbit, RTT: 10 * ms}, Link{Rate: eSum / 2. * mbit, RTT: rtt}))
			rates[0], rates[1] = append(rates[0], static.rate), append(rates[1], dynamic.rate)
			if buffer == 3 {
				missed = max(missed, static.misses, dynamic.misses)
			}
			fmt.Fprintf(&b, "| %v | %d | %v | %v | %v |\n", rtt, buffer, single, static, dynamic)
		}
	}
	most := 0.
	for _, all := range rates {
		for _, one := range [][]float64{all[:3], all[3:]} {
			most = max(most, 100*(percentile(one, 1)/percentile(one, 0)-1))
		}
	}
	found()
	line("quality nearly unaffected", "yes", fmt.Sprintf("rates within %.1f %%", most), most <= 2)
	line("deadlines missed with a buffer of 3", "none", fmt.Sprintf("up to %.1f a run", missed), missed == 0)

	b.WriteString("\n### Dynamics (section 4.4.2), E-dyn\n\n" +
		"3 Mbit/s in all, the first link 0.5 to 2.5 Mbit/s, changing every 2 to 10 s; 0 to 20 and 20 to 80 ms; 30 runs.\n\n")
	head("")
	single, static, dynamic = three(30, 6, func(seed uint64) []Link {
		first, second := MovingShares(seed, eSum*mbit, 0.5*mbit, 300*time.Second)
		return []Link{{Trace: first, Jitter: 20 * ms}, {Trace: second, RTT: 20 * ms, Jitter: 60 * ms}}
	})
	fmt.Fprintf(&b, "| here | 6 | %v | %v | %v |\n", single, static, dynamic)
	b.WriteString("| table 4.5 | 6 | 31 / 27 / 28 / 15 | 4 / 4 / 11 / 81 | 3 / 3 / 10 / 83 |\n" +
		"| section 4.4.2, 40 runs | 6 | 18 / 35 / 20 / 26 | super 95 | |\n")
	found()
	line("segments at super over both links", "81 to 95 %",
		fmt.Sprintf("%.0f and %.0f %%", static.levels[super], dynamic.levels[super]),
		min(static.levels[super], dynamic.levels[super]) >= 80)
	line("over the first link alone", "15 to 26 %",
		fmt.Sprintf("%.0f %%", single.levels[super]), single.levels[super] >= 15 && single.levels[super] <= 26)
	line("deadlines missed over both links", "none",
		fmt.Sprintf("%.1f and %.1f a run", static.misses, dynamic.misses), static.misses+dynamic.misses == 0)
	return b.String()
}

// TestMovingShares checks that the sum stays the same, that shares stay within their bounds, and that a seed always gives the same
// script.
func TestMovingShares(t *testing.T) {
	first, second := MovingShares(7, 3e6, 0.5e6, time.Minute)
	again, _ := MovingShares(7, 3e6, 0.5e6, time.Minute)
	length, rates := time.Duration(0), map[float64]bool{}
	for i, r := range first {
		s := second[i]
		if r != again[i] || r.For != s.For || r.Rate+s.Rate != 3e6 || min(r.Rate, s.Rate) < 0.5e6 ||
			r.For < 2*time.Second || r.For > 10*time.Second {
			t.Errorf("%v and %v, again %v", r, s, again[i])
		}
		length += r.For
		rates[r.Rate] = true
	}
	if length < time.Minute || len(rates) != len(first) || len(first) < 6 {
		t.Errorf("%v in %d pieces", length, len(first))
	}
	if other, _ := MovingShares(8, 3e6, 0.5e6, time.Minute); other[0] == first[0] {
		t.Error("another seed gives the same script")
	}
}
