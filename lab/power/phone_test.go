package power_test

import (
	"testing"

	"github.com/tributary-http/tributary/lab/power"
)

// 3.74 W at 24.86 s and 0.5 W for each 3.3 s less; 14.86 s are 10 s less: 3.74 + 10 * 0.5 / 3.3 = 5.255 W.
func TestPeakWatts(t *testing.T) {
	near(t, "14.86 s", power.PeakWatts(seconds(14.86)), 5.26, 0.006)
	near(t, "24.86 s", power.PeakWatts(seconds(24.86)), 3.74, 1e-9)
}

// Skjolden 2019, table 7.9 from the rows of its tables of times and energies: joules / (median watts of the stress test * s). The
// S6 with one link by Wi-Fi: 58.68 / (4.16 * 26.06) = 0.5413.
func TestUtilisation(t *testing.T) {
	const s6, s7 = 4.16, 4.95
	for _, c := range []struct {
		what                     string
		joules, seconds, percent float64
		watts                    float64
	}{
		{"S6 Wi-Fi", 58.68, 26.06, 54.1, s6},
		{"S6 LTE", 103.10, 52.97, 46.8, s6},
		{"S6 naive", 89.16, 32.36, 66.2, s6},
		{"S6 A1", 77.67, 18.35, 101.8, s6},
		{"S6 A2", 77.07, 18.86, 98.2, s6},
		{"S6 A3", 75.53, 16.68, 108.9, s6},
		{"S7 Wi-Fi", 50.20, 26.25, 38.6, s7},
		{"S7 LTE", 66.83, 33.79, 40.0, s7},
		{"S7 naive", 58.28, 18.99, 62.0, s7},
		{"S7 A1", 59.82, 17.88, 67.6, s7},
		{"S7 A2", 62.29, 18.44, 68.2, s7},
		{"S7 A3", 62.13, 16.55, 75.8, s7},
	} {
		near(t, c.what, 100*power.Utilisation(c.joules, seconds(c.seconds), c.watts), c.percent, 0.06)
	}
}

// The two groups of Skjolden 2019 section 7.4.3, from the printed rows of the best multi-link and single-link transfer of each
// scenario: about 0.50 where both links are fast, about 0.74 where one is slow. HS on the S6: 16.68 s / 75.53 J over
// 26.06 s / 58.68 J = 0.2208 / 0.4441 = 0.497.
func TestRate(t *testing.T) {
	for _, c := range []struct {
		what                                   string
		multi, multiJoules, single, singleJ, r float64
	}{
		{"HS S6, A3 and Wi-Fi", 16.68, 75.53, 26.06, 58.68, 0.497},
		{"HS S7, A3 and Wi-Fi", 16.55, 62.13, 26.25, 50.20, 0.509},
		{"AO, A3 and LTE", 14.94, 55.75, 28.16, 53.15, 0.506},
		{"LS, A2 and LTE of HS", 29.18, 78.77, 33.79, 66.83, 0.733},
		{"TS, A3 and LTE", 22.18, 67.63, 24.86, 56.47, 0.745},
		{"TM, A3 and LTE", 27.29, 68.94, 33.32, 62.99, 0.748},
	} {
		near(t, c.what, power.Rate(seconds(c.multi), c.multiJoules, seconds(c.single), c.singleJ), c.r, 0.0006)
	}
}
