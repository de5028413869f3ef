package estimate

import "time"

// RTT smooths round-trip times as in RFC 6298 section 2. The zero RTT is ready to use and has no samples.
type RTT struct {
	smoothed, variation, least time.Duration
	seeded                     bool
}

// Seed sets the round-trip time known from earlier, which is used until the first sample.
func (r *RTT) Seed(known time.Duration) {
	r.Add(known)
	r.seeded = r.smoothed > 0
}

// Add accounts for one sample.
func (r *RTT) Add(sample time.Duration) {
	if sample <= 0 {
		return
	}
	if r.smoothed == 0 || r.seeded {
		r.seeded = false
		r.smoothed, r.variation, r.least = sample, sample/2, sample
		return
	}
	r.variation += ((r.smoothed - sample).Abs() - r.variation) / 4
	r.smoothed += (sample - r.smoothed) / 8
	r.least = min(r.least, sample)
}

// Smoothed returns the smoothed round-trip time, or 0 if nothing is known.
func (r *RTT) Smoothed() time.Duration { return r.smoothed }

// Variation returns the smoothed mean deviation.
func (r *RTT) Variation() time.Duration { return r.variation }

// Least returns the smallest sample.
func (r *RTT) Least() time.Duration { return r.least }
