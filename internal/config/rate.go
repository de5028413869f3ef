package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Rate is a rate in bytes per second. As text it is a number with a unit: kbit/s, Mbit/s or Gbit/s, as links are sold,
// or kB/s, MB/s or GB/s. All are powers of 1000.
type Rate int64

// rateUnits are the units, with their sizes in bytes per second.
var rateUnits = [...]struct {
	suffix string
	size   float64
}{
	{"kbit/s", 1e3 / 8}, {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9},
}

// minRate is the lowest limit. With a lower one, the link would seem to be silent.
const minRate = Rate(10e3)

// UnmarshalText parses text such as "20Mbit/s"; "0" means no limit.
func (r *Rate) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	if s == "0" {
		*r = 0
		return nil
	}
	for _, u := range rateUnits {
		number, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || math.IsNaN(n) || n < 0 || n*u.size >= 1<<62 {
			break
		}
		*r = Rate(math.Round(n * u.size))
		return nil
	}
	return fmt.Errorf(`%q is not a rate: want one like "20Mbit/s" or "2.5MB/s"`, text)
}

// String returns the rate in a form that UnmarshalText parses to the same value.
func (r Rate) String() string {
	if r == 0 {
		return "0"
	}
	unit, size := "Mbit/s", 1e6/8
	if float64(r) < size {
		unit, size = "kbit/s", 1e3/8
	}
	return strconv.FormatFloat(float64(r)/size, 'f', -1, 64) + unit
}
