package sim

import (
	"math"
	"time"
)

const (
	segmentSize = 1448.0                 // data bytes in a packet
	step        = 16 << 10               // maximum bytes of a step
	stepTime    = 100 * time.Millisecond // maximum duration of a step at the link's rate
	initialWnd  = 10 * segmentSize       // initial congestion window (RFC 6928)
	receiveBuf  = 3 << 20                // bytes: buffer of a receiver that does not read
	queueTime   = 100 * time.Millisecond
	firstRTO    = 200 * time.Millisecond
	synRTO      = time.Second
	secondSYN   = 250 * time.Millisecond // delay after an unanswered first SYN, in addition to a round trip
	dialTime    = 5 * time.Second
	warmTime    = 2 * time.Second // time for which a probe's connection is kept
)

// CUBIC (RFC 9438) and Reno (RFC 5681).
const (
	cubicC    = 0.4
	cubicBeta = 0.7
	renoBeta  = 0.5
)

// window is the congestion window of a sender: slow start, then CUBIC with its floor for short round trips, or Reno. A
// loss is repaired within a round trip, and further losses in that time do not shrink the window again.
type window struct {
	size     float64 // bytes
	reno     bool
	started  bool    // slow start is over
	top      float64 // size at the last loss
	since    time.Duration
	origin   float64 // seconds from the loss until the size reaches top again
	repaired time.Duration
}

func newWindow(reno bool) window { return window{size: initialWnd, reno: reno} }

// lost handles a loss, if it is the first in its round trip.
func (w *window) lost(now, rtt time.Duration) {
	if now < w.repaired {
		return
	}
	w.repaired = now + rtt
	w.top = w.size
	beta := cubicBeta
	if w.reno {
		beta = renoBeta
	}
	w.size = max(w.size*beta, 2*segmentSize)
	w.started, w.since = true, now
	w.origin = math.Cbrt(w.top / segmentSize * (1 - cubicBeta) / cubicC)
}

// timeout restarts slow start after silence.
func (w *window) timeout() {
	w.top = w.size
	w.size, w.started = segmentSize, false
}

// acked handles the acknowledgment of n bytes.
func (w *window) acked(now, rtt time.Duration, n int64) {
	if !w.started {
		if w.size += float64(n); w.top > 0 && w.size > w.top/2 { // after a timeout
			w.started, w.since = true, now
			w.origin = math.Cbrt(max(w.top-w.size, 0) / segmentSize / cubicC)
		}
		return
	}
	if w.reno {
		w.size += segmentSize * float64(n) / w.size
		return
	}
	t := (now - w.since).Seconds()
	cubic := w.top + cubicC*math.Pow(t-w.origin, 3)*segmentSize
	reno := w.top*cubicBeta + 3*(1-cubicBeta)/(1+cubicBeta)*t/max(rtt.Seconds(), 1e-3)*segmentSize
	w.size = max(w.size, min(max(cubic, reno), 1.5*w.size))
}
