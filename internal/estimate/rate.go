package estimate

import (
	"math"
	"time"
)

const (
	// memory is the time constant of Rate: long against the bursts of a radio scheduler, short against the ramp-up of a link
	// (2.5 s, Skjolden 2019 section 4.3.5), so that the first second is judged by its own samples. docs/SCHEDULERS.md compares
	// lengths, and other kinds of estimators.
	memory = 150 * time.Millisecond

	// settled is the busy time after which a rate is good enough to count as a peak.
	settled = 100 * time.Millisecond

	// peakSpan is half the time for which a peak is remembered.
	peakSpan = 10 * time.Second
)

// Rate is a goodput in bytes per second of busy time: an average whose weights fall by 1/e in 150 ms of busy time.
// The zero value has seen nothing.
type Rate struct {
	bytes, busy float64 // decayed sums: bytes, seconds
	seen        float64 // busy seconds in all
	last        time.Time
	active      bool

	peak, older float64 // windowed maximum: of this span and of the one before
	turn        time.Time
}

// Add accounts for n bytes received at now. The first bytes after Idle only start the clock: how long they took to come
// says nothing about the rate.
func (r *Rate) Add(now time.Time, n int64) {
	if !r.active {
		r.active, r.last = true, now
		return
	}
	dt := now.Sub(r.last).Seconds()
	r.last = now
	k := math.Exp(-dt / memory.Seconds())
	r.bytes = r.bytes*k + float64(n)
	r.busy = r.busy*k + dt
	r.seen += dt
	if r.seen < settled.Seconds() {
		return
	}
	if now.Sub(r.turn) > peakSpan {
		r.older, r.peak, r.turn = r.peak, 0, now
	}
	r.peak = max(r.peak, r.bytes/r.busy)
}

// Idle reports that the link has no requests, or that nobody reads: the time until the next bytes does not count.
func (r *Rate) Idle() { r.active = false }

// PerSecond returns the estimate at now, 0 if nothing is known. A silence while the link is busy counts.
func (r *Rate) PerSecond(now time.Time) float64 {
	busy := r.busy
	if r.active {
		busy += max(0, now.Sub(r.last).Seconds())
	}
	if busy < 0.001 || r.bytes == 0 {
		return r.older // before the first sample: the value of Seed
	}
	return r.bytes / busy
}

// Peak returns the highest rate of the last 10 to 20 s, 0 if nothing is known. The age counts while bytes come: an idle
// link keeps its peak.
func (r *Rate) Peak() float64 { return max(r.peak, r.older) }

// Seed gives a rate that an earlier transfer saw, used until this one has its own.
func (r *Rate) Seed(perSecond float64) { r.older = perSecond }
