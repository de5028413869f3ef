package estimate

import (
	"math"
	"time"
)

const (
	// memory is the time constant of Rate: long against the bursts of a radio scheduler, short against the ramp-up of a link
	// (2.5 s, Skjolden 2019 section 3.1.4), so that the first second is judged by its own samples. docs/SCHEDULERS.md compares
	// lengths, and other kinds of estimators.
	memory = 150 * time.Millisecond

	// settled is the busy time after which a rate is good enough to count as a peak.
	settled = 100 * time.Millisecond

	// sustainedMemory is the time constant of Rate.Sustained: longer than most links take to build up.
	sustainedMemory = 2 * time.Second

	// sustainedLeast is the busy time that it takes, and sustainedShare the share of busy time: a link that often waits for the
	// client delivers from buffers, which are faster than it is.
	sustainedLeast = 300 * time.Millisecond
	sustainedShare = 0.75

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

	first           time.Time // when the clock started
	longBytes, long float64   // bytes and busy as above, with a longer memory, since the rate settled

	peak, older float64 // windowed maximum: of this span and of the one before
	turn        time.Time
}

// Add accounts for n bytes received at now. The first bytes after Idle only start the clock, since the time until they arrived
// says nothing about the rate.
func (r *Rate) Add(now time.Time, n int64) {
	if r.first.IsZero() {
		r.first = now
	}
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
	k = math.Exp(-dt / sustainedMemory.Seconds())
	r.longBytes = r.longBytes*k + float64(n)
	r.long = r.long*k + dt
	if now.Sub(r.turn) > peakSpan {
		r.older, r.peak, r.turn = r.peak, 0, now
	}
	r.peak = max(r.peak, r.bytes/r.busy)
}

// Idle reports that the link has no requests, or that nobody reads: the time until the next bytes does not count.
func (r *Rate) Idle() { r.active = false }

// PerSecond returns the estimate at now, 0 if nothing is known. A silence while the link is busy counts.
func (r *Rate) PerSecond(now time.Time) float64 {
	busy := r.busyBy(now)
	if !r.shown(busy) {
		return r.older // the value of Seed
	}
	return r.bytes / busy
}

// Recalled reports whether the estimate at now is the value of Seed.
func (r *Rate) Recalled(now time.Time) bool { return r.older > 0 && !r.shown(r.busyBy(now)) }

func (r *Rate) busyBy(now time.Time) float64 {
	if !r.active {
		return r.busy
	}
	return r.busy + max(0, now.Sub(r.last).Seconds())
}

// shown reports whether so many busy seconds and the bytes in them make a sample.
func (r *Rate) shown(busy float64) bool { return busy >= 0.001 && r.bytes > 0 }

// Peak returns the highest rate of the last 10 to 20 s, 0 if nothing is known. The age counts while bytes come: an idle
// link keeps its peak.
func (r *Rate) Peak() float64 { return max(r.peak, r.older) }

// Sustained returns the goodput of the last seconds of busy time, for use beyond this transfer. It is 0 if the link has not
// been busy for long, or was mostly waiting.
func (r *Rate) Sustained() float64 {
	if r.seen < sustainedLeast.Seconds() || r.seen < sustainedShare*r.last.Sub(r.first).Seconds() {
		return 0
	}
	return r.longBytes / r.long
}

// Seed sets the rate of an earlier transfer, which is used until this one has its own.
func (r *Rate) Seed(perSecond float64) { r.older = perSecond }
