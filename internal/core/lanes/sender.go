package lanes

import (
	"slices"
	"time"
)

const (
	// An acknowledgment is due after this many bytes, or this much time.
	ackBytes = 33 << 10
	ackDelay = 8 * time.Millisecond
	// How long frames wait for the lane over which they arrive first before any lane takes them.
	controlWait     = 25 * time.Millisecond
	interactiveWait = 15 * time.Millisecond
	// longWait is the time after which a lane asks again if it has nothing to do while others have.
	longWait = 20 * time.Millisecond
)

// Next appends the bytes to write to a lane now. If it appends nothing, the caller must ask again after wait, unless
// that is negative, and whenever the Mux was given something. Observe must have been called immediately before.
func (m *Mux) Next(now time.Time, id uint32, b []byte) (out []byte, wait time.Duration) {
	l := m.lane(id)
	if l == nil {
		return b, -1
	}
	if l.suspect {
		return b, longWait
	}
	w := waiting{-1}
	best := m.best(headerSize)
	b = m.acks(now, l, best, b, &w)
	before := len(b)
	b = m.controls(now, l, best, b, &w)
	small, total := m.queued(now)
	if b = m.message(now, l, small, b, &w); len(b) > before {
		return b, 0
	}
	if b = m.repeated(now, l, b); len(b) > before {
		return b, 0
	}
	if b = m.late(now, l, b); len(b) > before {
		return b, 0
	}
	return m.bulk(now, l, small, total, b, &w), w.d
}

// waiting is the shortest time to wait, -1 = none.
type waiting struct{ d time.Duration }

func (w *waiting) atMost(d time.Duration) {
	if d = max(d, time.Millisecond); w.d < 0 || d < w.d {
		w.d = d
	}
}

// best returns the lane over which n bytes arrive first, nil if no lane works.
func (m *Mux) best(n int) (best *lane) {
	var least time.Duration
	for _, l := range m.lanes {
		if l.suspect {
			continue
		}
		if a := l.arrival(n); best == nil || a < least {
			best, least = l, a
		}
	}
	return best
}

// acks adds acknowledgments, and news of silent lanes.
func (m *Mux) acks(now time.Time, l, best *lane, b []byte, w *waiting) []byte {
	for _, o := range m.lanes {
		if o.suspect && !o.told {
			o.told = true
			b = Frame{Kind: Suspect, Stream: o.id}.Append(b)
		}
		if o.received == o.answered {
			continue
		}
		due := o.due
		if o.owed >= ackBytes {
			due = due.Add(-ackDelay)
		}
		if l != best {
			due = due.Add(controlWait)
		}
		if d := due.Sub(now); d > 0 {
			w.atMost(d)
			continue
		}
		b = Frame{Kind: Ack, Stream: o.id, Value: o.received}.Append(b)
		o.answered, o.owed = o.received, 0
	}
	return b
}

// controls adds frames without data.
func (m *Mux) controls(now time.Time, l, best *lane, b []byte, w *waiting) []byte {
	if l.ping {
		l.ping = false
		b = m.put(l, &item{frame: Frame{Kind: Ping}, since: now}, b)
	}
	for len(m.control) > 0 && len(b) < MaxData/2 {
		it := m.control[0]
		if d := it.since.Add(controlWait).Sub(now); l != best && d > 0 {
			w.atMost(d)
			break
		}
		m.control = m.control[1:]
		if it.stream == nil || !it.stream.reset {
			b = m.put(l, it, b)
		}
	}
	return b
}

// repeated adds a frame that another lane owes.
func (m *Mux) repeated(now time.Time, l *lane, b []byte) []byte {
	for len(m.again) > 0 {
		it := m.again[0]
		m.again[0] = nil
		m.again = m.again[1:]
		if it.stream != nil && it.stream.reset {
			m.free(it)
			continue
		}
		if it.acked || !it.again || it.frame.Kind == Ping {
			continue
		}
		it.again = false
		return m.put(l, it, b)
	}
	return b
}

// queued returns how many bytes the streams have to send, and a stream that is interactive, nil if none is. If too much
// is unacknowledged, nothing more is sent until the other end acknowledges some.
func (m *Mux) queued(now time.Time) (small *stream, total int) {
	if m.flying >= m.cfg.Budget {
		return nil, 0
	}
	for i := 0; i < len(m.active); {
		s := m.active[i]
		if s.queued == 0 || s.reset {
			s.listed = false
			m.active = slices.Delete(m.active, i, i+1)
			continue
		}
		n := s.sendable()
		total += n
		if small == nil && n > 0 && m.cfg.yields == nil && s.interactive(now) {
			small = s
		}
		i++
	}
	return small, total
}

// message adds a frame of an interactive stream. It goes before frames that are sent again: these may be many.
func (m *Mux) message(now time.Time, l *lane, small *stream, b []byte, w *waiting) []byte {
	if small == nil {
		return b
	}
	d := small.since.Add(interactiveWait).Sub(now)
	if d <= 0 || l == m.best(small.sendable()) {
		return m.cut(now, l, small, b)
	}
	w.atMost(d)
	return b
}

// bulk adds a frame of the next stream, except the one that must wait. It gives bytes to the lane over which they
// arrive first, and none to a lane that would finish after the others have sent everything (Earliest Completion First,
// Lim et al. 2017).
func (m *Mux) bulk(now time.Time, l *lane, not *stream, total int, b []byte, w *waiting) []byte {
	if m.cfg.yields != nil {
		return m.alternate(now, l, total, b, w)
	}
	if total == 0 {
		return m.tail(now, l, b, w)
	}
	if e := l.excess(); e > 0 {
		l.probe.limited = true
		w.atMost(min(seconds(e/max(l.rate(), 1)), longWait))
		return b
	}
	n := l.frameSize()
	if m.holdBack(l, n, total) {
		w.atMost(longWait / 4)
		return b
	}
	return m.next(now, l, not, b)
}

// alternate is bulk for the schedulers from the literature, which know neither messages nor copies.
func (m *Mux) alternate(now time.Time, l *lane, total int, b []byte, w *waiting) []byte {
	switch {
	case total == 0:
		return b
	case m.cfg.yields(m, l):
		w.atMost(time.Millisecond)
		return b
	}
	return m.next(now, l, nil, b)
}

// next adds a frame of the stream whose turn it is, except the one that must wait.
func (m *Mux) next(now time.Time, l *lane, not *stream, b []byte) []byte {
	for i, s := range m.active {
		if s.sendable() == 0 || s == not {
			continue
		}
		m.active = append(slices.Delete(m.active, i, i+1), s) // its turn ends
		l.begin()
		return m.cut(now, l, s, b)
	}
	return b
}

// holdBack reports whether the faster lanes will have sent everything that waits before this one would deliver a frame.
func (m *Mux) holdBack(l *lane, n, total int) bool {
	mine := l.arrival(n)
	rate, sum := 0.0, float64(total)
	for _, o := range m.lanes {
		if o == l || o.suspect {
			continue
		}
		if r := o.rate(); r > 0 && o.arrival(n) < mine {
			rate += r
			sum += r * o.arrival(0).Seconds()
		}
	}
	return rate > 0 && seconds(sum/rate) < mine
}

// cut sends the next bytes of a stream.
func (m *Mux) cut(now time.Time, l *lane, s *stream, b []byte) []byte {
	at := s.next
	s.fill(now)
	data := s.take(min(l.frameSize(), s.sendable()))
	s.since = now
	m.flying += int64(len(data))
	m.unblock()
	b = m.put(l, &item{frame: Frame{Kind: Data, Stream: s.id, Value: at, Data: data}, stream: s, since: now}, b)
	m.finish(now, s)
	return b
}

// put makes a frame the next one on a lane.
func (m *Mux) put(l *lane, it *item, b []byte) []byte {
	it.on = l.id
	l.sent = append(l.sent, it)
	return it.frame.Append(b)
}
