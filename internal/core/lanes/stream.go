package lanes

import (
	"slices"
	"time"
)

const (
	// firstWindow is how many bytes of a stream may arrive before more is granted, less if firstShare of the remaining
	// budget is less: idle streams keep theirs. MaxWindow is the largest window.
	firstWindow = 768 << 10
	firstShare  = 32
	MaxWindow   = 8 << 20
	// MaxQueue is how many bytes of a stream are accepted before they are sent.
	MaxQueue = 2 << 20
	// leastWindow bytes of each stream may arrive, and leastQueue bytes are accepted, even if the budget is used up.
	// sureShare of the budget is for that alone.
	leastWindow, leastQueue = 16 << 10, 16 << 10
	sureShare               = 4

	// A stream is interactive while it sends little: burst bytes at once, and refill bytes per second.
	burst  = 32 << 10
	refill = 8 << 10
)

// stream is one stream at one end.
type stream struct {
	id     uint32
	to     string // destination, at the server
	opened bool   // both ends know the stream

	// Sending.
	queue   [][]byte // accepted, not sent
	queued  int      // bytes of queue
	copied  int      // bytes sent twice, see copyShare
	waiting int      // bytes accepted that the other end has not acknowledged, queue included
	next    uint64   // offset of the first byte of queue
	credit  uint64   // offset up to which the stream may be sent
	fin     bool     // nothing more is accepted
	finSent bool
	finHas  bool      // the other end acknowledged it
	tokens  float64   // bytes that still count as interactive
	filled  time.Time // when tokens was computed
	since   time.Time // when the oldest bytes in queue began to wait
	listed  bool      // in Mux.active
	blocked bool      // in Mux.blocked

	// Receiving.
	in       [][]byte // in order, not read
	read     uint64   // offset of the next byte to read
	have     uint64   // offset up to which in reaches
	held     []piece  // pieces beyond have, by offset
	granted  uint64   // offset up to which the other end may send
	window   uint64   // how far that is beyond read
	length   uint64   // length of the whole stream, if ended
	ended    bool     // length is known
	finRead  bool
	reset    bool
	resetHas uint64 // cause received with a Reset
}

// piece is data that arrived too early.
type piece struct {
	at   uint64
	data []byte
}

func (p piece) end() uint64 { return p.at + uint64(len(p.data)) }

// interactive reports whether the queued data is small enough to go first.
func (s *stream) interactive(now time.Time) bool {
	s.fill(now)
	return float64(min(s.queued, burst)) <= s.tokens
}

func (s *stream) fill(now time.Time) {
	s.tokens = min(burst, s.tokens+refill*now.Sub(s.filled).Seconds())
	s.filled = now
}

// sendable returns how many bytes may be sent now.
func (s *stream) sendable() int {
	if s.reset || s.credit <= s.next {
		return 0
	}
	return int(min(uint64(s.queued), s.credit-s.next))
}

// take removes up to n bytes from the queue.
func (s *stream) take(n int) []byte {
	head := s.queue[0]
	if n >= len(head) {
		n = len(head)
		s.queue[0] = nil
		s.queue = s.queue[1:]
	} else {
		s.queue[0] = head[n:]
	}
	s.queued -= n
	s.next += uint64(n)
	s.tokens -= float64(n)
	return head[:n:n]
}

// arrived takes in data at an offset and discards copies of data that arrived before. It reports whether more can be
// read.
func (s *stream) arrived(at uint64, data []byte) bool {
	if at < s.have {
		if at+uint64(len(data)) <= s.have {
			return false
		}
		data = data[s.have-at:]
		at = s.have
	}
	if at > s.have {
		s.hold(piece{at, data})
		return false
	}
	s.in = append(s.in, data)
	s.have += uint64(len(data))
	for len(s.held) > 0 && s.held[0].at <= s.have {
		p := s.held[0]
		s.held = slices.Delete(s.held, 0, 1)
		if p.end() > s.have {
			s.in = append(s.in, p.data[s.have-p.at:])
			s.have = p.end()
		}
	}
	return true
}

// hold keeps data that arrived too early. Frames keep their bounds when they are sent again, so one that begins where
// another does is a copy of it.
func (s *stream) hold(p piece) {
	i, found := slices.BinarySearchFunc(s.held, p.at, func(h piece, at uint64) int {
		switch {
		case h.at < at:
			return -1
		case h.at > at:
			return 1
		}
		return 0
	})
	if !found {
		s.held = slices.Insert(s.held, i, p)
	} else if p.end() > s.held[i].end() {
		s.held[i] = p
	}
}

// readInto copies data that is in order, whole frames if possible.
func (s *stream) readInto(p []byte, free func([]byte)) (n int) {
	for n < len(p) && len(s.in) > 0 && (n == 0 || len(s.in[0]) <= len(p)-n) {
		c := copy(p[n:], s.in[0])
		n += c
		if c == len(s.in[0]) {
			if free != nil {
				free(s.in[0])
			}
			s.in[0] = nil
			s.in = s.in[1:]
		} else {
			s.in[0] = s.in[0][c:]
		}
	}
	s.read += uint64(n)
	return n
}

// takeIn removes the first bytes that are in order.
func (s *stream) takeIn() (b []byte) {
	if len(s.in) == 0 {
		return nil
	}
	b, s.in[0] = s.in[0], nil
	s.in = s.in[1:]
	s.read += uint64(len(b))
	return b
}

// done reports whether nothing is left to send, acknowledge or read.
func (s *stream) done() bool {
	return s.reset || s.finHas && s.waiting == 0 && s.finRead
}
