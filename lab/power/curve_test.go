package power_test

import (
	"math"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/power"
)

func curve(f func(float64) float64, at ...float64) (c power.Curve) {
	for _, s := range at {
		c = append(c, power.Sample{At: seconds(s), Watts: f(s)})
	}
	return c
}

func TestCurveJoules(t *testing.T) {
	// The integral of 1 + 2t + 3t^2 from 0 to x is x + x^2 + x^3.
	parabola := func(s float64) float64 { return 1 + 2*s + 3*s*s }
	for _, c := range []struct {
		what string
		at   []float64
		want float64
	}{
		{"even steps", []float64{0, 1, 2, 3, 4}, 4 + 16 + 64},
		{"an odd number of steps", []float64{0, 1, 2, 3}, 3 + 9 + 27},
		{"uneven steps", []float64{0, 1, 2.5, 3.25, 4}, 4 + 16 + 64},
		{"uneven, odd", []float64{0, 1, 2.5, 4}, 4 + 16 + 64},
		{"one step", []float64{0, 1}, (1 + 6) / 2.0},                           // trapezoid
		{"a gap", []float64{0, 1, 5}, (1+6)/2.0 + 4*(6+1+10+75)/2.0},           // trapezoids: 3.5 + 184
		{"twice at a time", []float64{0, 1, 1}, (1 + 6) / 2.0},                 // trapezoids
		{"a short last step", []float64{0, 1, 2, 2.001}, 2 + 4 + 8 + 0.017011}, // trapezoid of 17 and 17.014
		{"one sample", []float64{3}, 0},
		{"none", nil, 0},
	} {
		near(t, c.what, curve(parabola, c.at...).Joules(), c.want, 1e-4)
	}
	// 1 + sin(t) from 0 to 2 pi, in 20 steps: 2 pi.
	var at []float64
	for i := range 21 {
		at = append(at, 2*math.Pi*float64(i)/20)
	}
	near(t, "a sine", curve(func(s float64) float64 { return 1 + math.Sin(s) }, at...).Joules(), 2*math.Pi, 1e-6)
}

func TestCurvePercentile(t *testing.T) {
	c := curve(func(s float64) float64 { return 10 - s }, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) // 10 down to 0 W
	for part, want := range map[float64]float64{0: 0, 0.5: 5, 0.9: 9, 0.95: 9.5, 1: 10} {
		near(t, "percentile", c.Percentile(part), want, 1e-9)
	}
	near(t, "of nothing", power.Curve(nil).Percentile(0.9), 0, 0)
	if d := c.Duration(); d != 10*time.Second {
		t.Errorf("%s long", d)
	}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s: %.6g, want %.6g within %g", what, got, want, within)
	}
}
