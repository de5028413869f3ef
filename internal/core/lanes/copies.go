package lanes

import "time"

const (
	// copyShare is the share of a stream's bytes that may be sent twice, so that they arrive sooner.
	copyShare = 1.0 / 200
	// copyFree is how many bytes of each stream may be sent twice in any case if a lane is late.
	copyFree = 64 << 10
	// lateAfter is the time without progress after which the first bytes that a lane owes are also sent over others:
	// before the lane is suspect. Everything behind those bytes waits for them.
	lateAfter = 150 * time.Millisecond
	// copyGain is by how much sooner a copy must at least arrive.
	copyGain = 20 * time.Millisecond
	// copyWait is the time after which a lane with nothing to send checks again whether another is late.
	copyWait = 10 * time.Millisecond
)

// late adds a copy of the first frame owed by a lane that makes no progress, frames of small messages first.
func (m *Mux) late(now time.Time, l *lane, b []byte) []byte {
	if m.cfg.yields != nil {
		return b
	}
	for _, o := range m.lanes {
		if o == l || o.suspect || o.observed.Sub(o.progress) < max(lateAfter, 2*o.path.RTT) {
			continue
		}
		var first *item
		for _, it := range o.sent {
			if m.copyable(it, copyFree) && (first == nil || it.urgency() < first.urgency()) {
				first = it
			}
		}
		if first != nil {
			return m.copy(l, first, b)
		}
	}
	return b
}

// tail adds a copy of the last frame that another lane owes, if the copy arrives sooner over this one, which has
// nothing else to do.
func (m *Mux) tail(now time.Time, l *lane, b []byte, w *waiting) []byte {
	var last *item
	var most time.Duration
	for _, o := range m.lanes {
		if o == l || o.suspect {
			continue
		}
		behind := 0
		for i := len(o.sent) - 1; i >= 0; i-- {
			it := o.sent[i]
			size := headerSize + len(it.frame.Data)
			if !m.copyable(it, copyFree) {
				behind += size
				continue
			}
			w.atMost(copyWait)
			d := o.drained(now, behind) - l.arrival(size)
			if d >= copyGain && d > most && (d >= lateAfter || m.copyable(it, 0)) {
				last, most = it, d
			}
			break
		}
	}
	if last == nil || l.excess() > 0 {
		return b
	}
	return m.copy(l, last, b)
}

// copyable reports whether a frame may be sent a second time: free bytes of its stream may, and a share of the bytes
// sent.
func (m *Mux) copyable(it *item, free int) bool {
	s := it.stream
	return !it.acked && !it.copied && !it.again && it.frame.Kind == Data && !s.reset &&
		float64(s.copied+len(it.frame.Data)-free) <= copyShare*float64(s.next)
}

func (m *Mux) copy(l *lane, it *item, b []byte) []byte {
	it.copied = true
	it.stream.copied += len(it.frame.Data)
	return m.put(l, it, b)
}
