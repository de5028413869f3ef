package netlab

import (
	"errors"
	"time"
)

// Shape describes one direction of a link.
type Shape struct {
	Rate   BitRate       // constant rate; ignored if Trace is set
	Trace  *Trace        // recorded rate, nil for a constant one
	Delay  time.Duration // one-way delay, added after the queue
	Jitter time.Duration // further delay, uniform in [0, Jitter) per packet; the order of packets is kept
	Loss   Share         // packets lost at random, after they used the link's time
	Queue  Queue
	Ramp   time.Duration // time from a third of the rate to all of it, see rampIdle; not used with a Trace
}

// Validate returns an error that lists everything wrong with the shape.
func (s Shape) Validate() error {
	var errs []error
	if s.Trace == nil && s.Rate < Kbit {
		errs = append(errs, errors.New("rate: set a rate of at least 1kbit or a trace"))
	}
	if s.Trace != nil && s.Ramp > 0 {
		errs = append(errs, errors.New("ramp: a trace has its own ramp, leave one of the two out"))
	}
	if s.Delay < 0 || s.Jitter < 0 || s.Ramp < 0 {
		errs = append(errs, errors.New("delay, jitter and ramp must not be negative"))
	}
	if s.Loss < 0 || s.Loss > 1 {
		errs = append(errs, errors.New("loss must lie between 0 and 1"))
	}
	return errors.Join(errs...)
}

// full returns the rate that the queue's limit refers to: the constant one or the trace's mean.
func (s Shape) full() BitRate {
	if s.Trace != nil {
		return s.Trace.Mean()
	}
	return s.Rate
}

// Counters count the packets of one direction of a link since the lab was made.
type Counters struct {
	Packets, Bytes int64 // entered the link
	Delivered      int64 // packets that left it at the other end
	QueueDrops     int64 // packets dropped because the queue was full
	LossDrops      int64 // lost at random
	DarkDrops      int64 // vanished in a blackhole, or arrived at an interface that was down
	InFlight       int64 // packets in the queue or on the way now
}

// Drops is the number of packets that entered the link and will not leave it.
func (c Counters) Drops() int64 { return c.QueueDrops + c.LossDrops + c.DarkDrops }
