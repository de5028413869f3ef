package energy

import "slices"

// CPU is the full-load power of a processor with two cores, by the frequencies of both (Nika 2015 section 3.2).
type CPU struct {
	Core0MHz   []float64   `toml:"core0_mhz"`
	Core1MHz   []float64   `toml:"core1_mhz"` // 0 = off
	Milliwatts [][]float64 `toml:"mw"`        // by core 0, then core 1
}

// Watts returns the power at the given frequencies and utilisations (0 to 1) of the cores. The paper does not say how
// two different utilisations combine. Here the first core takes its utilisation times its power alone, and the second
// takes its utilisation times the power that it adds. An unmeasured frequency counts as the nearest measured one.
func (c *CPU) Watts(core0MHz, core1MHz, core0Use, core1Use float64) float64 {
	row := c.Milliwatts[nearest(c.Core0MHz, core0MHz)]
	alone, both := row[0], row[nearest(c.Core1MHz, core1MHz)]
	return (alone*core0Use + (both-alone)*core1Use) / 1000
}

// nearest returns the index of the value nearest to x in an ascending list.
func nearest(values []float64, x float64) int {
	i, _ := slices.BinarySearch(values, x)
	if i == len(values) || i > 0 && x-values[i-1] < values[i]-x {
		i--
	}
	return i
}
