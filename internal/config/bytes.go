package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Bytes is a size in bytes. As text it is a whole number with an optional unit: B, KB, MB, GB (powers of 1000) or KiB,
// MiB, GiB (powers of 1024).
type Bytes int64

// units are tried in order, so that "MiB" is not taken for "B".
var units = [...]struct {
	suffix string
	size   int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"B", 1},
}

// UnmarshalText parses text such as "64MiB".
func (b *Bytes) UnmarshalText(text []byte) error {
	number, size := strings.TrimSpace(string(text)), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.suffix); ok {
			number, size = strings.TrimSpace(rest), u.size
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/size {
		return fmt.Errorf("%q is not a size: want a whole number, with or without a unit, like \"64MiB\"", text)
	}
	*b = Bytes(n * size)
	return nil
}

// String returns the size with the largest binary unit that keeps it whole.
func (b Bytes) String() string {
	for i := 2; i >= 0; i-- {
		if u := units[i]; b != 0 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(b), 10) + "B"
}
