package netlab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// LTE describes a generated trace that behaves like an LTE link: the rate steps between levels as the cell's load
// changes, fades as the device moves, drops out at times, and ramps up at the start and after an outage.
type LTE struct {
	Seed     uint64
	Length   time.Duration // of the trace, after which it repeats
	Mean     BitRate       // target rate, not counting outages
	Spread   float64       // of the levels around the mean: 0 = one level, 0.5 = from half to one and a half times
	Fade     float64       // depth of the fades, 0 to 1
	Outages  time.Duration // mean time between outages, 0 = none
	Outage   time.Duration // mean length of an outage
	RampTime time.Duration // duration of the ramp from a third of the rate to all of it
}

// DefaultLTE describes one minute of a moving device's link with a mean of 40 Mbit/s.
func DefaultLTE(seed uint64) LTE {
	return LTE{
		Seed:     seed,
		Length:   time.Minute,
		Mean:     40 * Mbit,
		Spread:   0.4,
		Fade:     0.5,
		Outages:  20 * time.Second,
		Outage:   600 * time.Millisecond,
		RampTime: 2500 * time.Millisecond,
	}
}

const (
	meanLevel = 2 * time.Second        // how long a level lasts
	meanFade  = 300 * time.Millisecond // period of the fades
)

// Generate returns the trace. The same settings give the same trace.
func (c LTE) Generate() (*Trace, error) {
	if c.Length < time.Second || c.Mean < Kbit || c.Spread < 0 || c.Spread > 1 || c.Fade < 0 || c.Fade > 1 {
		return nil, fmt.Errorf("lte trace: want 1 s or more, a rate of 1 kbit or more, spread and fade from 0 to 1")
	}
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	lasts := func(mean time.Duration) int { return max(1, int(rng.ExpFloat64()*float64(mean.Milliseconds()))) }

	perMs := float64(c.Mean) / 8 / opportunity / 1000
	var ms []uint32
	var credit, level, phase float64
	period := float64(meanFade.Milliseconds())
	var levelEnds, rampBegan, outageEnds int
	nextOutage := math.MaxInt
	if c.Outages > 0 {
		nextOutage = lasts(c.Outages)
	}
	for now := range int(c.Length.Milliseconds()) {
		if now >= nextOutage {
			outageEnds = now + lasts(c.Outage)
			rampBegan, nextOutage = outageEnds, outageEnds+lasts(c.Outages)
		}
		if now < outageEnds {
			credit = 0
			continue
		}
		if now >= levelEnds {
			level = 1 + c.Spread*(2*rng.Float64()-1)
			levelEnds = now + lasts(meanLevel)
			period = float64(meanFade.Milliseconds()) * (0.5 + rng.Float64())
		}
		phase += 2 * math.Pi / period
		rate := perMs * level * (1 + c.Fade*math.Sin(phase))
		if ramp := float64(c.RampTime.Milliseconds()); float64(now-rampBegan) < ramp {
			rate *= rampFloor + (1-rampFloor)*float64(now-rampBegan)/ramp
		}
		for credit += rate; credit >= 1; credit-- {
			ms = append(ms, uint32(now+1))
		}
	}
	// the last line sets the period, so the trace ends with an opportunity at its end
	return NewTrace(append(ms, uint32(c.Length.Milliseconds())))
}
