package sim

import (
	"math"
	"slices"
	"time"
)

// SampleStep is the length of a sample of Result.Received, as for the rates of Nika 2015 section 5.1.
const SampleStep = 100 * time.Millisecond

// Received counts the bytes that links deliver, in steps of SampleStep since the start: [link][step].
type Received [][]int64

func (r Received) add(at time.Duration, link int8, n int64) {
	for i := int(at / SampleStep); len(r[link]) <= i; {
		r[link] = append(r[link], 0)
	}
	r[link][at/SampleStep] += n
}

// Rates returns the rates of a link in bytes per second, each over the given number of samples, from the first sample
// with a byte to the last complete one. If link is -1, it returns the rates of all links together.
func (r Received) Rates(link, samples int) (rates []float64) {
	var all []int64
	for i, one := range r {
		if link >= 0 && i != link {
			continue
		}
		for k, n := range one {
			if k == len(all) {
				all = append(all, 0)
			}
			all[k] += n
		}
	}
	from := max(0, slices.IndexFunc(all, func(n int64) bool { return n > 0 }))
	for ; from+samples < len(all); from += samples {
		sum := int64(0)
		for _, n := range all[from : from+samples] {
			sum += n
		}
		rates = append(rates, float64(sum)/(float64(samples)*SampleStep.Seconds()))
	}
	return rates
}

// Tail returns the tail throughput of Nika 2015 section 5.1 in bytes per second: the 10th percentile of the rates of
// all links together, over 100 ms each.
func (r Received) Tail() float64 { return percentile(r.Rates(-1, 1), 0.1) }

// percentile returns the value below which a share of all values lies, interpolated between two values. Without values
// it returns
// 0.
func percentile(values []float64, share float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	whole, part := math.Modf(share * float64(len(sorted)-1))
	i := int(whole)
	if part == 0 {
		return sorted[i]
	}
	return sorted[i] + part*(sorted[i+1]-sorted[i])
}
