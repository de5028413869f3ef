package main

import (
	"math"
	"slices"
)

// quartiles are the three quartiles of some values, interpolated linearly between neighbouring values.
type quartiles struct {
	Q1     float64 `json:"q1"`
	Median float64 `json:"median"`
	Q3     float64 `json:"q3"`
}

// quartilesOf returns the quartiles of values, which may be in any order. The quartiles of no values are 0.
func quartilesOf(values []float64) quartiles {
	if len(values) == 0 {
		return quartiles{}
	}
	sorted := slices.Sorted(slices.Values(values))
	at := func(share float64) float64 {
		whole, part := math.Modf(share * float64(len(sorted)-1))
		i := int(whole)
		if part == 0 {
			return sorted[i]
		}
		return sorted[i] + part*(sorted[i+1]-sorted[i])
	}
	return quartiles{at(0.25), at(0.5), at(0.75)}
}
