package sim

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrinted recomputes the figures that docs/REPRODUCTION.md shows beside ours from the times printed in the thesis (sections 5.1
// to 5.5).
func TestPrinted(t *testing.T) {
	for name, p := range map[string]struct {
		alone [2]float64    // seconds over Wi-Fi alone and over LTE alone
		times [4][2]float64 // times of Wi-Fi and LTE: naive, Algorithms 1 to 3
	}{
		"S-HS6": {[2]float64{26.06, 52.97}, [4][2]float64{{13.19, 32.36}, {18.34, 18.35}, {18.86, 15.77}, {16.68, 16.29}}},
		"S-HS7": {[2]float64{26.25, 33.79}, [4][2]float64{{13.27, 18.99}, {17.88, 17.67}, {18.44, 15.89}, {16.55, 16.05}}},
		// the thesis has no LTE time for LS, and compares with that of HS-S7
		"S-LS": {[2]float64{278.18, 33.79}, [4][2]float64{{139.26, 17.34}, {29.63, 29.22}, {29.18, 28.49}, {29.01, 29.33}}},
		"S-TS": {[2]float64{135.05, 24.86}, [4][2]float64{{65.59, 14.25}, {32.91, 32.09}, {26.06, 21.77}, {22.51, 21.67}}},
		"S-TM": {[2]float64{131.59, 33.32}, [4][2]float64{{71.78, 16.54}, {29.16, 28.41}, {29.07, 26.50}, {27.29, 26.60}}},
		"S-AO": {[2]float64{37.24, 28.16}, [4][2]float64{{18.43, 13.84}, {21.76, 21.50}, {17.93, 13.36}, {14.85, 14.94}}},
	} {
		found := false
		for _, r := range thesisRows {
			if r.name != name {
				continue
			}
			found = true
			ideal := 1 / (1/p.alone[0] + 1/p.alone[1])
			for i, times := range p.times {
				if share := 100 * ideal / max(times[0], times[1]); math.Abs(share-r.share[i]) > 0.51 {
					t.Errorf("%s, %s: %.1f %% of the ideal, the table says %.0f", name, published[i], share, r.share[i])
				}
				if d := math.Abs(times[0] - times[1]); math.Abs(d-r.delta[i]) > 0.006 {
					t.Errorf("%s, %s: delta %.2f s, the table says %.2f", name, published[i], d, r.delta[i])
				}
			}
		}
		if !found {
			t.Errorf("no row %s", name)
		}
	}

	// The statements in docs/REPRODUCTION.md about these figures.
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "REPRODUCTION.md"))
	if err != nil {
		t.Fatal(err)
	}
	behind, low, high := map[string]float64{}, math.Inf(1), 0.
	for _, r := range thesisRows {
		if r.share[0] > 0 {
			behind[r.name] = 100 * r.printed[3][1].rate / r.printed[5][1].rate
			low, high = min(low, r.delta[3]), max(high, r.delta[3])
		}
	}
	for _, want := range []string{
		fmt.Sprintf("%.0f, %.0f and %.0f %% of its rate under Algorithm 3", behind["S-HS7"], behind["S-TS"], behind["S-AO"]),
		fmt.Sprintf("prints %.2f to %.2f s", low, high),
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/REPRODUCTION.md does not say %q", want)
		}
	}
}

// correlations lists the correlations of Skjolden 2019 whose pairs the thesis prints.
var correlations = []struct {
	what    string
	x, y    []float64
	printed float64
}{
	{
		"LTE rate and its sigma, HS on the S7 (LTE alone, naive, A1 to A3; table 5.3)",
		[]float64{61.37, 57.53, 42.10, 47.85, 51.60},
		[]float64{11.31, 11.55, 2.73, 5.93, 4.34},
		0.91,
	},
	{
		"time and peak power, A3 on the S7 (HS, LS, TS, TM, AO; table 7.6, labels of TS and TM put right)",
		[]float64{16.55, 29.33, 22.18, 27.29, 14.94},
		[]float64{5.36, 3.86, 4.79, 4.25, 6.08},
		-0.97,
	},
	{
		"time and 90th percentile of power, the same (printed as -0.82, with the labels mixed up)",
		[]float64{16.55, 29.33, 22.18, 27.29, 14.94},
		[]float64{3.94, 2.96, 3.39, 2.97, 4.14},
		-0.98,
	},
}

// correlationsTable recomputes them.
func correlationsTable(t *testing.T) string {
	table := "| pairs | the source's | recomputed | verdict |\n| --- | ---: | ---: | --- |\n"
	for _, c := range correlations {
		got := pearson(c.x, c.y)
		table += fmt.Sprintf("| %s | %.2f | %.3f | %s |\n", c.what, c.printed, got, verdict(math.Abs(got-c.printed) <= 0.02))
		if math.Abs(got-c.printed) > 0.02 {
			t.Errorf("%s: %.3f, want %.2f", c.what, got, c.printed)
		}
	}
	return table
}
