package power

import (
	"slices"
	"time"
)

// Sample is a measured power.
type Sample struct {
	At    time.Duration // since the beginning
	Watts float64
}

// Curve is a series of samples in the order of their times.
type Curve []Sample

// Joules integrates the curve by Simpson's rule for uneven steps, which is exact for parabolas. If one of two steps is
// more than twice the other, it uses the trapezoidal rule, since parabolas overshoot there.
func (c Curve) Joules() (joules float64) {
	i := 0
	for ; i+2 < len(c); i += 2 {
		joules += simpson(c[i], c[i+1], c[i+2])
	}
	if i+1 == len(c) || len(c) < 2 {
		return joules
	}
	if len(c) == 2 {
		return trapezoid(c[0], c[1])
	}
	return joules + simpsonEnd(c[i-1], c[i], c[i+1])
}

func trapezoid(a, b Sample) float64 { return (b.At - a.At).Seconds() * (a.Watts + b.Watts) / 2 }

// even reports whether samples with these steps in seconds may be joined by a parabola.
func even(g, h float64) bool { return g > 0 && h > 0 && g <= 2*h && h <= 2*g }

// simpson integrates over two steps.
func simpson(a, b, c Sample) float64 {
	g, h := (b.At - a.At).Seconds(), (c.At - b.At).Seconds()
	if !even(g, h) {
		return trapezoid(a, b) + trapezoid(b, c)
	}
	return (g + h) / 6 * ((2-h/g)*a.Watts + (g+h)*(g+h)/(g*h)*b.Watts + (2-g/h)*c.Watts)
}

// simpsonEnd integrates over the second of two steps, the last of an odd number of steps.
func simpsonEnd(a, b, c Sample) float64 {
	g, h := (b.At - a.At).Seconds(), (c.At - b.At).Seconds()
	if !even(g, h) {
		return trapezoid(b, c)
	}
	return c.Watts*(2*h*h+3*g*h)/(6*(g+h)) + b.Watts*(h*h+3*g*h)/(6*g) - a.Watts*h*h*h/(6*g*(g+h))
}

// Duration returns the time between the first and the last sample.
func (c Curve) Duration() time.Duration {
	if len(c) == 0 {
		return 0
	}
	return c[len(c)-1].At - c[0].At
}

// Percentile returns the power that the given part (0 to 1) of the samples does not exceed, interpolated between
// samples: 1 is the peak and 0.5 the median. Without samples it returns 0.
func (c Curve) Percentile(part float64) float64 {
	if len(c) == 0 {
		return 0
	}
	watts := make([]float64, len(c))
	for i, s := range c {
		watts[i] = s.Watts
	}
	slices.Sort(watts)
	at := part * float64(len(watts)-1)
	i := min(int(at), len(watts)-1)
	return watts[i] + (at-float64(i))*(watts[min(i+1, len(watts)-1)]-watts[i])
}
