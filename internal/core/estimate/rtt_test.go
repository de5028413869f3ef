package estimate_test

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
)

// RFC 6298 section 2: (2.2) the first sample R gives SRTT = R, RTTVAR = R/2; (2.3) a later R' gives RTTVAR = 3/4 RTTVAR
// + 1/4 |SRTT - R'|, then SRTT = 7/8 SRTT + 1/8 R'. The RFC has no numbers; these follow from its formulas by hand.
func TestRTT(t *testing.T) {
	var r estimate.RTT
	if r.Smoothed() != 0 || r.Variation() != 0 || r.Least() != 0 {
		t.Error("a time without a sample")
	}
	steps := []struct{ sample, smoothed, variation, least time.Duration }{
		{100 * ms, 100 * ms, 50 * ms, 100 * ms},                             // (2.2)
		{100 * ms, 100 * ms, 37500 * time.Microsecond, 100 * ms},            // 3/4 50 + 0
		{180 * ms, 110 * ms, 48125 * time.Microsecond, 100 * ms},            // 3/4 37.5 + 1/4 80; 100 + 80/8
		{30 * ms, 100 * ms, 56093750 * time.Nanosecond, 30 * ms},            // 3/4 48.125 + 1/4 80; 110 - 80/8
		{100 * ms, 100 * ms, 42070312500 * time.Nanosecond / 1000, 30 * ms}, // 3/4 56.09375
		{0, 100 * ms, 42070312500 * time.Nanosecond / 1000, 30 * ms},        // no sample
		{-5 * ms, 100 * ms, 42070312500 * time.Nanosecond / 1000, 30 * ms},  // nor is this
	}
	for i, s := range steps {
		r.Add(s.sample)
		if r.Smoothed() != s.smoothed || (r.Variation()-s.variation).Abs() > 10 || r.Least() != s.least {
			t.Errorf("sample %d, %v: smoothed %v, variation %v, least %v; want %v, %v, %v", i, s.sample,
				r.Smoothed(), r.Variation(), r.Least(), s.smoothed, s.variation, s.least)
		}
	}
}

// TestRTTSeed checks that the seed counts until the first sample, which replaces it.
func TestRTTSeed(t *testing.T) {
	var r estimate.RTT
	r.Seed(20 * ms)
	r.Add(0) // no sample
	if r.Smoothed() != 20*ms || r.Variation() != 10*ms || r.Least() != 20*ms {
		t.Errorf("without a sample: %v, %v, %v", r.Smoothed(), r.Variation(), r.Least())
	}
	r.Add(100 * ms)
	if r.Smoothed() != 100*ms || r.Variation() != 50*ms || r.Least() != 100*ms {
		t.Errorf("after the first one: %v, %v, %v", r.Smoothed(), r.Variation(), r.Least())
	}
	r.Add(180 * ms)
	if r.Smoothed() != 110*ms || r.Least() != 100*ms {
		t.Errorf("after the second one: %v, %v", r.Smoothed(), r.Least())
	}
	var unknown estimate.RTT
	unknown.Seed(0)
	if unknown.Add(40 * ms); unknown.Smoothed() != 40*ms || unknown.Least() != 40*ms {
		t.Errorf("nothing was known: %v, %v", unknown.Smoothed(), unknown.Least())
	}
}
