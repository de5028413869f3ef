package energy

import "slices"

// CPU is the power of a processor with two cores at full load, by the frequencies of both (Nika 2015 section 3.2).
type CPU struct {
	Core0MHz   []float64   `toml:"core0_mhz"`
	Core1MHz   []float64   `toml:"core1_mhz"` // 0 = off
	Milliwatts [][]float64 `toml:"mw"`        // by core 0, then core 1
}

// Watts returns the power at the frequencies and utilisations (0 to 1) of the cores. The paper does not say how two different
// utilisations combine: here the first core takes its share of what it takes alone, the second its share of what it adds. A
// frequency that was not measured counts as the nearest that was.
func (c *CPU) Watts(core0MHz, core1MHz, core0Use, core1Use float64) float64 {
	row := c.Milliwatts[nearest(c.Core0MHz, core0MHz)]
	alone, both := row[0], row[nearest(c.Core1MHz, core1MHz)]
	return (alone*core0Use + (both-alone)*core1Use) / 1000
}

// nearest returns the index of the value of an ascending list that is nearest to x.
func nearest(values []float64, x float64) int {
	i, _ := slices.BinarySearch(values, x)
	if i == len(values) || i > 0 && x-values[i-1] < values[i]-x {
		i--
	}
	return i
}
