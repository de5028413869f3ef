package power

import (
	"context"
	"time"
)

// Options select how to measure.
type Options struct {
	Source Source
	Every  time.Duration // between samples
	Idle   time.Duration // how long the machine's idle power is measured before the command
	Tail   time.Duration // how long power is measured after it; radios stay awake for up to 12 s
}

// Report is the energy that a command used.
type Report struct {
	Source    string  `json:"source"`
	IdleWatts float64 `json:"idle_watts"`
	Main      Part    `json:"main"`
	Tail      Part    `json:"tail"`
}

// Part is the energy of a period.
type Part struct {
	Seconds   float64 `json:"seconds"`
	Joules    float64 `json:"joules"`     // energy of the whole machine
	NetJoules float64 `json:"net_joules"` // without what the machine uses when idle
	// Joules by the battery's averages instead of its instantaneous values
	AverageJoules float64 `json:"average_joules,omitempty"`
	PeakWatts     float64 `json:"peak_watts"`
	P90Watts      float64 `json:"p90_watts"`
	MedianWatts   float64 `json:"median_watts"`
	Samples       int     `json:"samples"`
}

// Measure samples the machine's power while it is idle, while run runs, and afterwards. If run fails, its error is
// returned with the report. If ctx ends or the source fails, run's context ends, and Measure returns after run.
func Measure(ctx context.Context, o Options, run func(context.Context) error) (Report, error) {
	r := Report{Source: o.Source.String()}
	idle, err := sample(ctx, o, time.After(o.Idle))
	if err != nil {
		return r, err
	}
	r.IdleWatts = idle.meanWatts()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	var failed error
	go func() {
		defer close(done)
		failed = run(ctx)
	}()
	main, err := sample(ctx, o, done)
	if err != nil {
		cancel()
		<-done
		return r, err
	}
	<-done
	r.Main = main.part(r.IdleWatts)
	tail, err := sample(ctx, o, time.After(o.Tail))
	if err != nil {
		return r, err
	}
	r.Tail = tail.part(r.IdleWatts)
	return r, failed
}

// series contains the samples of a period.
type series struct {
	now, average Curve
	counted      bool
	joules       float64 // if the source is a counter
}

// sample reads the source at once, at each tick, and at the end.
func sample[T any](ctx context.Context, o Options, end <-chan T) (s series, err error) {
	ticker := time.NewTicker(o.Every)
	defer ticker.Stop()
	begin := time.Now()
	var first float64
	for last := false; ; {
		now := time.Now()
		r, err := o.Source.Read(now)
		if err != nil {
			return s, err
		}
		at := now.Sub(begin)
		if len(s.now) == 0 {
			first = r.Joules
		}
		s.counted, s.joules = r.Counted, r.Joules-first
		s.now = append(s.now, Sample{At: at, Watts: r.Watts})
		if r.AverageWatts > 0 {
			s.average = append(s.average, Sample{At: at, Watts: r.AverageWatts})
		}
		if last {
			return s, nil
		}
		select {
		case <-ticker.C:
		case <-end:
			last = true
		case <-ctx.Done():
			return s, ctx.Err()
		}
	}
}

// energy returns the joules of the series. Those of a counter are exact; its first sample has no power of its own.
func (s series) energy() float64 {
	if s.counted {
		return s.joules
	}
	return s.now.Joules()
}

func (s series) meanWatts() float64 {
	if d := s.now.Duration().Seconds(); d > 0 {
		return s.energy() / d
	}
	return 0
}

func (s series) part(idleWatts float64) Part {
	d := s.now.Duration().Seconds()
	c := s.now
	if s.counted && len(c) > 0 {
		c = c[1:]
	}
	return Part{
		Seconds:       d,
		Joules:        s.energy(),
		NetJoules:     s.energy() - idleWatts*d,
		AverageJoules: s.average.Joules(),
		PeakWatts:     c.Percentile(1),
		P90Watts:      c.Percentile(0.9),
		MedianWatts:   c.Percentile(0.5),
		Samples:       len(c),
	}
}
