package origin

import (
	"encoding/binary"
	"time"

	"golang.org/x/net/http2"
)

// start sends the requests whose turn it is: as many as the origin accepts concurrently, while their answers fit into
// maxUnread. Until the origin's SETTINGS arrive, it sends only one (RFC 9113 section 6.5.2). A request whose answer may
// be of any length waits until it is first in line: nobody reads the answer before that, so it could fill the
// connection. s.mu is held.
func (s *session) start() {
	for s.started < len(s.queue) {
		x := s.queue[s.started]
		if x.err == nil && s.live() {
			if s.started > 0 && (!s.settled || x.endless() || s.unread()+x.need() > maxUnread) ||
				uint64(len(s.streams)) >= uint64(s.peer.streams) {
				return
			}
			s.send(x)
		}
		s.started++
		if !s.live() {
			x.fail(s, errGoingAway)
		}
	}
}

// unread returns how many bytes may have to wait in memory until they are read.
func (s *session) unread() (n int64) {
	for _, x := range s.queue[:s.started] {
		n += x.need()
	}
	return n
}

// send writes the request of x. s.mu is held.
func (s *session) send(x *exchange) {
	size := int64(0)
	for _, f := range x.fields {
		size += int64(f.Size())
	}
	if s.peer.head >= 0 && size > s.peer.head {
		x.fail(s, errTooLong)
		return
	}
	s.block.Reset()
	for _, f := range x.fields {
		_ = s.henc.WriteField(f) // to a buffer
	}
	x.id, x.window, x.sendWindow = s.next, s.initial, s.peer.initial
	s.next += 2
	s.streams[x.id] = x
	first := s.block.Next(int(s.peer.frame))
	s.must(s.fr.WriteHeaders(http2.HeadersFrameParam{
		StreamID: x.id, BlockFragment: first, EndStream: true, EndHeaders: s.block.Len() == 0,
	}))
	for s.block.Len() > 0 {
		next := s.block.Next(int(s.peer.frame))
		s.must(s.fr.WriteContinuation(x.id, s.block.Len() == 0, next))
	}
	s.fill(x)
	if x.cut {
		s.clamp(x)
	}
}

// fill reopens the windows of x and of the connection, in steps, because each update costs a frame. The window of the
// connection bounds the memory of the session: it covers the bytes that are due plus spare. s.mu is held.
func (s *session) fill(x *exchange) {
	if x.open() {
		if due := x.due(); due-x.window >= max(spare/2, due/8) || x.window < due/2 {
			s.widen(x)
		}
	}
	want := int64(spare)
	for _, x := range s.streams {
		want += x.due()
	}
	if more := want - s.credit; more >= max(spare/2, want/8) {
		s.credit += more
		s.must(s.fr.WriteWindowUpdate(0, uint32(more)))
	}
}

// widen lets the origin send the bytes due on x, with room for padding unless x is cut. s.mu is held.
func (s *session) widen(x *exchange) {
	room := x.due()
	if !x.cut {
		room += spare
	}
	if more := room - x.window; more > 0 {
		x.window += more
		s.must(s.fr.WriteWindowUpdate(x.id, uint32(more)))
	}
}

// cutAt ends the answer to the request with this ID before offset end, and reports whether there is such a request. A
// smaller window keeps the origin from sending more (Nikravesh 2018 equation 6.2): SETTINGS_INITIAL_WINDOW_SIZE shrinks
// the windows of all streams (RFC 9113 section 6.9.2), so WINDOW_UPDATE restores those of the others. The stream stalls
// at its new end and is reset there. A reset alone would reach the origin only after it had filled all queues with
// bytes beyond the end.
func (s *session) cutAt(id uint32, end int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.queue {
		if x.request.ID == id {
			s.cut(x, max(0, end-x.request.Range.Start))
			s.flushLater()
			return true
		}
	}
	return false
}

// cut limits the body of x to size bytes. s.mu is held.
func (s *session) cut(x *exchange, size int64) {
	if x.size >= 0 && size >= x.size || x.size < 0 && !x.endless() && size >= x.asked {
		return
	}
	x.size, x.cut = max(size, x.taken), true
	if x.resp != nil && x.received >= x.size { // all wanted bytes have arrived
		s.cancel(x, http2.ErrCodeCancel, errEnd)
	} else {
		s.clamp(x)
	}
	s.change.Broadcast()
}

// clamp shrinks the window of x, which is cut, to the bytes due, unless the origin got too many SETTINGS recently: then
// the reset at the new end has to suffice. s.mu is held.
func (s *session) clamp(x *exchange) {
	over := x.window - x.due()
	if !x.open() || over <= 0 || s.pace.silent.Load() || !s.clamps.AllowN(time.Now(), 1) {
		return
	}
	x.clamped = true
	s.limit(max(0, s.initial-over))
	for _, o := range s.streams {
		if o != x && o.window < o.due() {
			s.widen(o)
		}
	}
}

// unclamp reopens the windows when no stream is left whose window must stay small. s.mu is held.
func (s *session) unclamp() {
	for _, x := range s.streams {
		if x.clamped {
			return
		}
	}
	if s.err == nil && s.initial != streamWindow {
		s.limit(streamWindow)
	}
}

// limit sets SETTINGS_INITIAL_WINDOW_SIZE. s.mu is held.
func (s *session) limit(initial int64) {
	for _, x := range s.streams {
		x.window += initial - s.initial
	}
	s.initial = initial
	s.settings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(initial)})
}

// ping measures the current delay of an answer: like an answer, the reply to PING waits behind everything that the
// origin has sent.
type ping struct {
	count   uint64 // number of PINGs sent, and the content of the last one
	sent    time.Time
	waiting bool
	took    time.Duration // delay of the last reply
	fresh   bool          // took has not been reported yet
}

// measure sends a PING if one is due. It is called when bytes of x have arrived. s.mu is held.
func (s *session) measure(x *exchange) {
	p, now := &s.ping, time.Now()
	if x == nil || p.waiting || now.Sub(p.sent) < pingEvery || s.pace.silent.Load() || !s.pings.AllowN(now, 1) {
		return
	}
	p.count, p.sent, p.waiting = p.count+1, now, true
	var content [8]byte
	binary.BigEndian.PutUint64(content[:], p.count)
	s.must(s.fr.WritePing(false, content))
}

func (p *ping) acked(content [8]byte, now time.Time) {
	if p.waiting && binary.BigEndian.Uint64(content[:]) == p.count {
		p.waiting, p.took, p.fresh = false, now.Sub(p.sent), true
	}
}

// delay returns how long the latest PING took, or 0 if none was answered since the last call. A PING under way counts
// as soon as it takes longer than the one before.
func (s *session) delay() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.ping
	if p.waiting {
		if age := time.Since(p.sent); age > p.took {
			return age
		}
	}
	if !p.fresh {
		return 0
	}
	p.fresh = false
	return p.took
}
