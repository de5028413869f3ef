package lanes

// Budget bounds the memory of several sessions together, in bytes: what other ends may send (windows), and what was accepted to be
// sent and is not acknowledged. Each stream has leastWindow and leastQueue in any case, and no stream is opened when there is
// less than the former.
type Budget interface {
	Take(n int64) // counts n bytes more, or less
	Left() int64  // how many may be taken; negative if more were than there are
}

// take counts n bytes more, or less.
func (m *Mux) take(n int64) {
	m.used += n
	if m.cfg.Shared != nil {
		m.cfg.Shared.Take(n)
	}
}

// left returns how many bytes may be taken beside what other streams may hold in any case; negative if more were than there are.
func (m *Mux) left() int64 {
	others := max(m.cfg.Budget/sureShare-leastWindow*int64(len(m.streams)), 0)
	left := m.cfg.Budget - m.used - others
	if m.cfg.Shared != nil {
		left = min(left, m.cfg.Shared.Left())
	}
	return left
}

// free stops counting the data of a frame that the other end has, or that nobody wants any more.
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

// Room returns how many bytes a stream takes before Write says that there is no room for more.
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

// unblock tells of streams that have room again.
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

// Close gives back what the session has taken of the shared budget. The Mux must not be used for anything that takes more.
func (m *Mux) Close() {
	m.take(-m.used)
	m.cfg.Shared = nil
}
