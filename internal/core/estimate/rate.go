package estimate

import (
	"math"
	"time"
)

const (
	// memory is the time constant of Rate: long compared with the bursts of a radio scheduler, short compared with the
	// ramp-up of a link (2.5 s, Skjolden 2019 section 3.1.4), so that the first second is judged by its own samples.
	// docs/SCHEDULERS.md compares time constants and other kinds of estimators.
	memory = 150 * time.Millisecond

	// settled is the busy time after which a rate is good enough to count as a peak.
	settled = 100 * time.Millisecond

	// sustainedMemory is the time constant of Rate.Sustained: longer than most links take to ramp up.
	sustainedMemory = 2 * time.Second

	// sustainedLeast is the busy time that Sustained requires, and sustainedShare the required share of busy time: a
	// link that often waits for the client delivers from buffers, which are faster than the link.
	sustainedLeast = 300 * time.Millisecond
	sustainedShare = 0.75

	// peakSpan is half the time for which a peak is remembered.
	peakSpan = 10 * time.Second
)

// Rate estimates a goodput in bytes per second of busy time. It is an average whose weights fall to 1/e in 150 ms of
// busy time. The zero Rate is ready to use and has no samples.
type Rate struct {
	bytes, busy float64 // decayed sums of bytes and busy seconds
	seen        float64 // total busy seconds
	last        time.Time
	active      bool

	first           time.Time // when the clock started
	longBytes, long float64   // like bytes and busy, with a longer memory, since the rate settled

	peak, older float64 // windowed maxima of this span and the one before
	turn        time.Time
}

// Add accounts for n bytes received at now. The first bytes after Idle only start the clock, since the time until they
// arrived says nothing about the rate.
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

// Idle records that the link has no requests or that its bytes are not being read; the time until the next bytes does
// not count.
func (r *Rate) Idle() { r.active = false }

// PerSecond returns the estimate at now, or 0 if nothing is known. A silence while the link is busy counts.
func (r *Rate) PerSecond(now time.Time) float64 {
	busy := r.busyBy(now)
	if !r.shown(busy) {
		return r.older // the value from Seed
	}
	return r.bytes / busy
}

// Recalled reports whether the estimate at now is the value from Seed.
func (r *Rate) Recalled(now time.Time) bool { return r.older > 0 && !r.shown(r.busyBy(now)) }

func (r *Rate) busyBy(now time.Time) float64 {
	if !r.active {
		return r.busy
	}
	return r.busy + max(0, now.Sub(r.last).Seconds())
}

// shown reports whether this many busy seconds, and the bytes in them, make a sample.
func (r *Rate) shown(busy float64) bool { return busy >= 0.001 && r.bytes > 0 }

// Peak returns the highest rate of the last 10 to 20 s, or 0 if nothing is known. A peak ages only while bytes arrive:
// an idle link keeps its peak.
func (r *Rate) Peak() float64 { return max(r.peak, r.older) }

// Sustained returns the goodput of the last seconds of busy time, for use beyond this transfer. It returns 0 if the
// link was not busy for long enough, or often waited.
func (r *Rate) Sustained() float64 {
	if r.seen < sustainedLeast.Seconds() || r.seen < sustainedShare*r.last.Sub(r.first).Seconds() {
		return 0
	}
	return r.longBytes / r.long
}

// Seed sets the rate from an earlier transfer, which is used until this transfer has its own.
func (r *Rate) Seed(perSecond float64) { r.older = perSecond }
