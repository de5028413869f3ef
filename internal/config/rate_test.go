package config

import (
	"math/rand/v2"
	"testing"
)

func TestRate(t *testing.T) {
	for text, want := range map[string]Rate{
		"0": 0, "20Mbit/s": 2.5e6, "2.5 MB/s": 2.5e6, "800kbit/s": 100e3, "1Gbit/s": 125e6, " 64kB/s ": 64e3, "0.5GB/s": 500e6,
	} {
		var got Rate
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "20", "20 Mbit", "20mbit/s", "-1MB/s", "NaNMB/s", "infMB/s", "1e30GB/s", "MB/s", "2,5MB/s"} {
		var got Rate
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		want := Rate(r.Int64N(1 << r.IntN(40)))
		var got Rate
		if err := got.UnmarshalText([]byte(want.String())); err != nil || got != want {
			t.Fatalf("%d is written as %v and read as %d, %v", want, want, got, err)
		}
	}
}
