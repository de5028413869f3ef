package netlab

import (
	"math"
	"time"
)

const (
	// rampIdle is the silence after which a link with a Ramp starts the ramp again: an LTE radio that left its
	// connected state is granted resources step by step.
	rampIdle = 5 * time.Second
	// rampFloor is the share of the full rate at which a ramp begins.
	rampFloor = 1.0 / 3
)

// pacer computes when a packet has left a link whose rate may be constant, ramping up, or from a trace. It is pure:
// times are counted from the emulator's start and never go backwards.
type pacer struct {
	rate  float64 // bits per nanosecond
	ramp  time.Duration
	trace *Trace

	awake bool          // the ramp, or the trace, has begun
	begun time.Duration // when it began

	next int64         // trace: first opportunity not yet used
	at   time.Duration // trace: time of the last opportunity used
	left int           // trace: unused bytes of that opportunity
}

// set changes the rate; the ramp and an unchanged trace continue where they are.
func (p *pacer) set(s Shape) {
	p.rate, p.ramp = float64(s.Rate)/1e9, s.Ramp
	if p.trace != s.Trace {
		p.trace = s.Trace
		p.reset()
	}
}

// reset restarts the ramp and the trace at the next packet.
func (p *pacer) reset() { p.awake, p.next, p.left = false, 0, 0 }

// wake notes that a packet arrives at an empty queue, which the last packet left at idleSince.
func (p *pacer) wake(now, idleSince time.Duration) {
	if !p.awake || (p.trace == nil && now-idleSince > rampIdle) {
		p.awake, p.begun = true, now
	}
}

// finish returns when a packet of n bytes whose sending begins at start has left. With a trace it uses up
// opportunities, so it must be called once per packet.
func (p *pacer) finish(start time.Duration, n int) time.Duration {
	if p.trace != nil {
		return p.finishTrace(start, n)
	}
	bits := float64(n) * 8
	since := start - p.begun
	if since >= p.ramp {
		return start + time.Duration(math.Ceil(bits/p.rate))
	}
	// rate(t) = now + slope*t from start on, until the ramp's end
	slope := p.rate * (1 - rampFloor) / float64(p.ramp)
	now := p.rate*rampFloor + slope*float64(since)
	rest := float64(p.ramp - since)
	if ramped := now*rest + slope*rest*rest/2; bits > ramped {
		return start + time.Duration(math.Ceil(rest+(bits-ramped)/p.rate))
	}
	return start + time.Duration(math.Ceil(2*bits/(now+math.Sqrt(now*now+2*slope*bits))))
}

func (p *pacer) finishTrace(start time.Duration, n int) time.Duration {
	if p.left == 0 || start > p.at {
		p.left = 0 // the unused part of an opportunity is gone
	}
	for n > p.left {
		n -= p.left
		p.next = max(p.next, p.trace.first(start-p.begun))
		p.at = p.begun + p.trace.at(p.next)
		p.next++
		p.left = opportunity
	}
	p.left -= n
	return max(p.at, start)
}
