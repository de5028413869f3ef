package sim

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// nPart returns a transfer of row N-part (Nika 2015 chapters 4 and 5).
func nPart(q float64, size int64) Spec {
	return Spec{
		Size: size, First: 64 << 10, Window: size + 1,
		Links: []Link{{Rate: 5 * q * mbit, RTT: 30 * ms}, {Rate: 5 * mbit, RTT: 60 * ms}},
	}
}

// nPlace returns a place of Nika 2015: Wi-Fi of 0.2 to 14.5 and LTE of 1 to 16 Mbit/s on average, each at a level that changes
// every 0.2 to 2 s within a factor of three, 5 MB. The paper gives the ranges, not the rates of its 63 places.
func nPlace(n uint64) Spec {
	r := rand.New(rand.NewPCG(n, 15))
	link := func(low, high float64, rtt time.Duration) Link {
		rate := logUniform(r, low, high)
		return Link{RTT: rtt, Trace: levels(r, 30*time.Second, rate/math.Sqrt(3), rate*math.Sqrt(3))}
	}
	return Spec{
		Size: 5e6, First: 64 << 10, Window: 5e6 + 1, Seed: n,
		Links: []Link{link(0.2, 14.5, 30*ms), link(1, 16, 60*ms)},
	}
}

// noisyShare returns how often a partition by estimates m (1 + noise g), g standard normal, of two constant rates m whose quotient
// is q reaches a share of the optimum. Estimates below a hundredth of the rate count as a hundredth.
func noisyShare(q, noise, share float64) float64 {
	const steps, width = 400, 5. // steps and width of the grid over both values of g
	var reached, all float64
	at := func(i int) (estimate, weight float64) {
		g := width * (2*(float64(i)+0.5)/steps - 1)
		return max(0.01, 1+noise*g), math.Exp(-g * g / 2)
	}
	for i := range steps {
		a, wa := at(i)
		for k := range steps {
			b, wb := at(k)
			part := a * q / (a*q + b)                 // share of the first link
			took := max(part*(1+q)/q, (1-part)*(1+q)) // time relative to the optimal time
			if all += wa * wb; 1/took >= share {
				reached += wa * wb
			}
		}
	}
	return reached / all
}

// TestNoisyShare checks that an error of 50 % leaves 69 to 75 % of the draws within 70 % of the optimum, whatever the rates, not 90
// %, and that an error of 2 % leaves all of them within 85 %.
func TestNoisyShare(t *testing.T) {
	for q, want := range map[float64]float64{0.01: 69, 0.1: 71, 0.3: 75, 1: 73.6, 3: 75, 10: 71, 100: 69} {
		if got := 100 * noisyShare(q, 0.5, 0.7); math.Abs(got-want) > 0.6 {
			t.Errorf("q = %g: %.1f %%, want %g", q, got, want)
		}
		if got := noisyShare(q, 0.02, 0.85); got < 0.9999 {
			t.Errorf("q = %g, 2 %%: %.3f", q, got)
		}
	}
}

// partitionsTable writes the row N-part: R is a scheme's throughput as a share of bundling's, the replayed sum of both
// links (section 2.2), as in section 5.1.
func partitionsTable(t *testing.T) string {
	var b strings.Builder
	names := []string{"naive", "probe", "noisy-2", "noisy-50", "optimal", "best", "confluence"}
	b.WriteString("| q | object | even (naive) | naive (probe) | noisy-2 | noisy-50 | optimal | best | best by formula | confluence |\n" +
		"| ---: | ---: |" + strings.Repeat(" ---: |", 8) + "\n")
	worst := 0. // of best against the formula, 5 MB
	for _, q := range []float64{0.1, 0.3, 1, 3, 10} {
		for _, size := range []int64{500e3, 5e6} {
			s := nPart(q, size)
			limit, carried, err := Limit(s)
			if err != nil {
				t.Fatal(err)
			}
			s.carried = carried
			fmt.Fprintf(&b, "| %g | %.1f MB |", q, float64(size)/1e6)
			for _, name := range names {
				var all []float64
				for s.Seed = range uint64(runs) {
					all = append(all, limit.Seconds()/run(t, name, s).Took.Seconds())
					if !strings.HasPrefix(name, "noisy") {
						break // nothing is random
					}
				}
				r := percentile(all, 0.5)
				if fmt.Fprintf(&b, " %.2f |", r); name == "best" {
					formula := max(q, 1) / (1 + q)
					fmt.Fprintf(&b, " %.2f |", formula)
					if size == 5e6 {
						worst = max(worst, math.Abs(r-formula))
					}
				}
			}
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "\n| finding | reported | here | verdict |\n| --- | ---: | ---: | --- |\n"+
		"| R of the better radio is max(q, 1) / (1 + q) | yes | within %.2f at 5 MB | %s |\n", worst, verdict(worst <= 0.06))
	return b.String()
}

// places is the number of places in Nika 2015.
const places = 63

// placesTable writes the comparisons of Nika 2015 sections 5.1 and 5.2 over the same number of places.
func placesTable(t *testing.T) string {
	names := []string{
		"wifi", "lte", "best", "switching", "switching-free", "naive", "probe", "noisy-2", "noisy-50", "optimal", "alg3", "confluence",
	}
	share, gain, tail, joules := map[string][]float64{}, map[string][]float64{}, map[string][]float64{}, map[string][]float64{}
	var ratios []float64 // q
	for n := range uint64(places) {
		s := withRadios(t, nPlace(n))
		ratios = append(ratios, s.Links[0].Mean()/s.Links[1].Mean())
		both, err := Bundle(s)
		if err != nil {
			t.Fatal(err)
		}
		s.carried = both.Bytes
		for _, name := range names {
			one, scheduler := s, name
			switch name {
			case "wifi":
				one.Links, scheduler = s.Links[:1], "single"
			case "lte":
				one.Links, scheduler = s.Links[1:], "single"
			}
			r := run(t, scheduler, one)
			share[name] = append(share[name], both.Took.Seconds()/r.Took.Seconds())
			gain[name] = append(gain[name], r.Took.Seconds()/both.Took.Seconds())
			sum := 0.
			for _, j := range r.Joules {
				sum += j.Radio()
			}
			joules[name] = append(joules[name], sum)
			tail[name] = append(tail[name], both.Received.Tail()/max(r.Received.Tail(), 1e3))
		}
	}
	over := func(all []float64, least float64) float64 {
		n := 0
		for _, v := range all {
			if v >= least {
				n++
			}
		}
		return 100 * float64(n) / float64(len(all))
	}
	var b strings.Builder
	b.WriteString("| scheme | R: median (p10 to p90) | R >= 0.85 in | R >= 0.7 in | bundling, mean rate: median, most | bundling, tail: median, most | Cost: median (p10 to p90) |\n" +
		"| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	most := func(all []float64) string {
		top := percentile(all, 1)
		if top > 100 {
			return fmt.Sprintf("%.1f, > 100 times", percentile(all, 0.5))
		}
		return fmt.Sprintf("%.1f, %.1f times", percentile(all, 0.5), top)
	}
	cost := map[string][]float64{}
	for _, name := range names {
		for i, j := range joules[name] {
			cost[name] = append(cost[name], joules["optimal"][i]/j)
		}
		fmt.Fprintf(&b, "| %s | %.2f (%.2f to %.2f) | %.0f %% | %.0f %% | %s | %s | %.2f (%.2f to %.2f) |\n", name, percentile(share[name], 0.5),
			percentile(share[name], 0.1), percentile(share[name], 0.9), over(share[name], 0.85), over(share[name], 0.7), most(gain[name]), most(tail[name]),
			percentile(cost[name], 0.5), percentile(cost[name], 0.1), percentile(cost[name], 0.9))
	}
	b.WriteString("\n| finding | reported | here | verdict |\n| --- | ---: | ---: | --- |\n")
	line := func(what, reported, here string, ok bool) {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", what, reported, here, verdict(ok))
	}
	top := func(name string) float64 { return percentile(gain[name], 1) }
	line("bundling against the better radio, mean rate", "up to 2 times",
		fmt.Sprintf("up to %.1f", top("best")), top("best") >= 1.7 && top("best") <= 2.3)
	line("against switching", "up to 5 times",
		fmt.Sprintf("up to %.1f", top("switching")), top("switching") >= 4 && top("switching") <= 6)
	line("against switching without cost", "up to 2 times",
		fmt.Sprintf("up to %.1f", top("switching-free")), top("switching-free") <= 2.5)
	line("tail rate, against switching", "up to 10 times",
		fmt.Sprintf("> 10 times in %.0f %%", over(tail["switching"], 10)), percentile(tail["switching"], 1) >= 10)
	line("tail rate, against the better radio", "> 10 times at any q",
		fmt.Sprintf("> 10 times in %.0f %%", over(tail["best"], 10)), percentile(tail["best"], 1) > 10)
	two, fifty := over(share["noisy-2"], 0.85), over(share["noisy-50"], 0.7)
	line("an error of 2 % reaches 85 %", "in 90 % of cases", fmt.Sprintf("in %.0f %%", two), two >= 90)
	line("an error of 50 % reaches 70 %", "in 90 % of cases", fmt.Sprintf("in %.0f %%", fifty), fifty >= 90)
	line("Cost of bundling against LTE alone", "below 1",
		fmt.Sprintf("%.2f, below 1 in %.0f %%", percentile(cost["lte"], 0.5), 100-over(cost["lte"], 1)), percentile(cost["lte"], 0.5) < 1)
	var weak, strong []float64
	for i, q := range ratios {
		switch c := cost["wifi"][i]; {
		case q < 0.2:
			weak = append(weak, c)
		case q > 1:
			strong = append(strong, c)
		}
	}
	line("against Wi-Fi alone, with weak Wi-Fi (here a fifth of LTE's rate at most)", "about 1",
		fmt.Sprintf("%.2f", percentile(weak, 0.5)), math.Abs(percentile(weak, 0.5)-1) < 0.2)
	line("against Wi-Fi alone, with Wi-Fi faster than LTE", "above 2",
		fmt.Sprintf("%.2f, above 2 in %.0f %%", percentile(strong, 0.5), over(strong, 2)), percentile(strong, 0.5) > 2)
	line("Cost against LTE alone falls as the gain rises", "yes", fmt.Sprintf("correlation %.2f", pearson(cost["lte"], gain["lte"])), pearson(cost["lte"], gain["lte"]) < -0.5)
	var lteTail []float64
	for i, q := range ratios {
		if q >= 0.1 && q <= 0.2 {
			lteTail = append(lteTail, tail["lte"][i])
		}
	}
	line("tail rate, against LTE alone where it is 5 to 10 times as fast", "> 19 times",
		fmt.Sprintf("up to %.1f", percentile(lteTail, 1)), percentile(lteTail, 1) > 19)
	sizes := bySize(t)
	line("R of a split by exact rates from 0.5 to 5 MB", "steady, slightly higher at 0.5 and 1 MB",
		fmt.Sprintf("%.2f, %.2f, %.2f", sizes[0].share, sizes[1].share, sizes[2].share), sizes[0].share >= sizes[2].share && sizes[0].share < sizes[2].share+0.1)
	line("LTE's tail, of bundling's energy, up to 1 MB", "median 25 to 35 %, up to 60 %", fmt.Sprintf("median %.0f %%, up to %.0f %%", sizes[1].tail, sizes[1].tailMost),
		sizes[1].tail >= 20 && sizes[1].tail <= 40 && sizes[1].tailMost <= 65)
	line("the same at 5 MB", "median 10 %, up to 30 %", fmt.Sprintf("median %.0f %%, up to %.0f %%", sizes[2].tail, sizes[2].tailMost),
		sizes[2].tail >= 5 && sizes[2].tail <= 15 && sizes[2].tailMost <= 35)
	line("Cost against Wi-Fi alone at 0.5 MB", "median 2.5, up to 4.5", fmt.Sprintf("median %.1f, up to %.1f", sizes[0].cost, sizes[0].costMost),
		sizes[0].cost >= 2 && sizes[0].cost <= 3 && sizes[0].costMost <= 5)
	low, high := benchedMPTCP(t)
	line("MPTCP, of bundling (docs/BENCHMARKS.md: real kernels, other rates)", "40 to 85 %",
		fmt.Sprintf("%.0f to %.0f %%", low, high), low >= 40 && high <= 85)
	return b.String()
}

// ofSize holds the results for one object size: medians and maxima over the places.
type ofSize struct{ share, tail, tailMost, cost, costMost float64 }

// bySize compares objects of 0.5, 1 and 5 MB, each split once by exact rates. The tail of LTE is the energy that its radio takes
// after its last byte, in percent of both radios' joules.
func bySize(t *testing.T) (all [3]ofSize) {
	for i, size := range []int64{500e3, 1e6, 5e6} {
		var share, tail, cost []float64
		for n := range uint64(places) {
			s := withRadios(t, nPlace(n))
			s.Size = size
			both, err := Bundle(s)
			if err != nil {
				t.Fatal(err)
			}
			s.carried = both.Bytes
			split := run(t, "optimal", s)
			share = append(share, both.Took.Seconds()/split.Took.Seconds())
			sum := split.Joules[0].Radio() + split.Joules[1].Radio()
			tail = append(tail, 100*split.Joules[1].Tail/sum)
			s.Links = s.Links[:1]
			alone := run(t, "single", s)
			cost = append(cost, sum/alone.Joules[0].Radio())
		}
		all[i] = ofSize{percentile(share, 0.5), percentile(tail, 0.5), percentile(tail, 1), percentile(cost, 0.5), percentile(cost, 1)}
	}
	return all
}

// benchedMPTCP returns the lowest and the highest median of MPTCP's share of the limit in the rows of docs/BENCHMARKS.md.
func benchedMPTCP(t *testing.T) (low, high float64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "bench", "results.json"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Contenders []struct {
			Name    string
			Percent struct{ Median float64 }
		}
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	low = math.Inf(1)
	for _, r := range rows {
		for _, c := range r.Contenders {
			if c.Name == "mptcp" && c.Percent.Median > 0 {
				low, high = min(low, c.Percent.Median), max(high, c.Percent.Median)
			}
		}
	}
	if high == 0 {
		t.Fatal("results.json has no row with mptcp")
	}
	return low, high
}
