package lanes

// Budget bounds the memory of several sessions together, in bytes: what the other ends may send (windows), and what was
// accepted for sending and is not acknowledged. Each stream has leastWindow and leastQueue in any case, and no stream
// is opened when less than leastWindow is left.
type Budget interface {
	Take(n int64) // counts n more bytes, or fewer if n is negative
	Left() int64  // bytes that may still be taken; negative if the budget is exceeded
}

// take counts n more bytes, or fewer if n is negative.
func (m *Mux) take(n int64) {
	m.used += n
	if m.cfg.Shared != nil {
		m.cfg.Shared.Take(n)
	}
}

// left returns how many bytes may be taken besides those that other streams may hold in any case; negative if the
// budget is exceeded.
func (m *Mux) left() int64 {
	others := max(m.cfg.Budget/sureShare-leastWindow*int64(len(m.streams)), 0)
	left := m.cfg.Budget - m.used - others
	if m.cfg.Shared != nil {
		left = min(left, m.cfg.Shared.Left())
	}
	return left
}

// free stops counting the data of a frame that the other end has, or that is no longer wanted.
func (m *Mux) free(it *item) {
	if it.frame.Kind == Data && !it.freed {
		it.freed = true
		m.flying -= int64(len(it.frame.Data))
		m.take(-int64(len(it.frame.Data)))
	}
}

// room reports whether a stream may be written to.
func (m *Mux) room(s *stream) bool {
	return s.queued < leastQueue || s.queued < MaxQueue && m.left() > 0
}

// Room returns how many bytes a stream takes before Write reports that there is no more room.
func (m *Mux) Room(id uint32) int {
	s := m.streams[id]
	switch {
	case s == nil:
		return 0
	case m.left() > 0:
		return max(MaxQueue-s.queued, 0)
	}
	return max(leastQueue-s.queued, 0)
}

// unblock reports the streams that have room again.
func (m *Mux) unblock() {
	rest := m.blocked[:0]
	for _, s := range m.blocked {
		switch {
		case s.reset:
		case m.room(s):
			s.blocked = false
			m.tell(s, Writable)
		default:
			rest = append(rest, s)
		}
	}
	clear(m.blocked[len(rest):])
	m.blocked = rest
}

// Close gives back what the session has taken from the shared budget. Afterwards the Mux must not be used for anything
// that takes more.
func (m *Mux) Close() {
	m.take(-m.used)
	m.cfg.Shared = nil
}
