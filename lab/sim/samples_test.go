package sim

import (
	"math"
	"testing"
	"time"
)

func TestStatistics(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"p10 of 0 to 10", percentile([]float64{10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 0.1), 1},
		{"p05 of two values: a twentieth of the way", percentile([]float64{20, 10}, 0.05), 10.5},
		{"p90 of one value", percentile([]float64{7}, 0.9), 7},
		{"sigma of 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares 32, of 7", sigma([]float64{2, 4, 4, 4, 5, 5, 7, 9}), math.Sqrt(32. / 7)},
		// x^2 from 0 to 4 is 64/3, and Simpson's rule is exact for it.
		{"Simpson, an odd number of values", simpson([]float64{0, 1, 4, 9, 16}, 1), 64. / 3},
		// the step from 16 to 25 as a trapezoid: 20.5
		{"Simpson, an even number", simpson([]float64{0, 1, 4, 9, 16, 25}, 1), 64./3 + 20.5},
		{"Simpson, half seconds", simpson([]float64{0, 1, 4, 9, 16}, 0.5), 32. / 3},
		// deviations -1, 0, 1 and -1, 1, 0: 1 / sqrt(2 x 2)
		{"Pearson", pearson([]float64{1, 2, 3}, []float64{1, 3, 2}), 0.5},
		{"Pearson of a line that falls", pearson([]float64{1, 2, 3}, []float64{9, 7, 5}), -1},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: %g, want %g", c.name, c.got, c.want)
		}
	}
}

// TestReceived checks that a link of 8 Mbit/s delivers 1 MB/s, and that the samples add up to its bytes.
func TestReceived(t *testing.T) {
	links := []Link{{Rate: 1e6, RTT: 20 * ms}, {Rate: 1e6, RTT: 40 * ms}}
	r := run(t, "naive", Spec{Size: 4e6, First: 256 << 10, Window: 8e6, Links: links})
	for i, all := range r.Received {
		sum := int64(0)
		for _, n := range all {
			sum += n
		}
		if sum != r.Bytes[i] {
			t.Errorf("link %d: samples of %d bytes, %d came", i, sum, r.Bytes[i])
		}
		if m := percentile(r.Received.Rates(i, 5), 0.5); math.Abs(m-1e6) > 5e4 {
			t.Errorf("link %d: %.0f bytes/s", i, m)
		}
		// Simpson's rule over the rates gives the bytes, except for the first and the last half step and the rest of a second.
		if got := simpson(r.Received.Rates(i, 5), 0.5); math.Abs(got-float64(r.Bytes[i])) > 1e6 {
			t.Errorf("link %d: integral %.0f, %d bytes", i, got, r.Bytes[i])
		}
	}
	if tail := r.Received.Tail(); tail < 0.9e6 || tail > 2e6 {
		t.Errorf("tail throughput of two links of 1 MB/s: %.0f bytes/s", tail)
	}
	two := Received{nil, nil}
	for i := range 20 { // one of ten steps has a tenth of the rate
		n := int64(1000)
		if i%10 == 5 {
			n = 100
		}
		two.add(time.Duration(i)*SampleStep, 0, n)
		two.add(time.Duration(i)*SampleStep+SampleStep/2, 1, n)
	}
	if got := two.Tail(); got != 2000*0.1/0.1+0.8*(20000-2000) {
		t.Errorf("tail %.0f", got) // the 19 complete samples: two of 2000 bytes/s, then 20,000; rank 1.8
	}
}

func mean(values []float64) float64 {
	sum := 0.
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

// sigma returns the standard deviation of a sample, or 0 for fewer than two values.
func sigma(values []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	m, sum := mean(values), 0.
	for _, v := range values {
		sum += (v - m) * (v - m)
	}
	return math.Sqrt(sum / float64(len(values)-1))
}

// simpson integrates values that are the given seconds apart by Simpson's rule. For an even number of values, it integrates the
// last step by the trapezoidal rule.
func simpson(values []float64, seconds float64) (area float64) {
	n := len(values)
	if n%2 == 0 && n > 0 {
		n--
		area = seconds * (values[n-1] + values[n]) / 2
	}
	for i := 2; i < n; i += 2 {
		area += seconds / 3 * (values[i-2] + 4*values[i-1] + values[i])
	}
	return area
}

// pearson returns the correlation coefficient of pairs.
func pearson(x, y []float64) float64 {
	mx, my := mean(x), mean(y)
	var xy, xx, yy float64
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
	}
	return xy / math.Sqrt(xx*yy)
}
