package lanes

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Config configures a Mux.
type Config struct {
	Client bool // this end opens streams
	// bytes of all streams that may wait here, see Budget; each stream has leastWindow and leastQueue in any case
	Budget     int64
	Shared     Budget // budget of several sessions together; nil = none
	MaxStreams int    // most streams open at once
	// Free takes back the Data of a frame that Read has copied; nil = it is not reused.
	Free func([]byte)

	// yields reports whether a lane leaves the next bytes to another one, under a scheduler of the literature that a
	// test compares with ours; nil = ours.
	yields func(m *Mux, l *lane) bool
}

// What is the kind of an Event.
type What uint8

const (
	Accepted  What = iota // the client opened it: see Destination
	Connected             // the server connected it
	Readable              // Read returns more, or the end
	Writable              // Write accepts more
	Broken                // it was reset
)

// The causes of a reset.
const (
	CauseClosed   uint64 = iota // the user of the stream closed it
	CauseRefused                // the destination is not allowed
	CauseNotFound               // the destination's name does not exist
	CauseFailed                 // the destination cannot be reached
	CauseLimit                  // too many streams
	CauseFlows                  // the client has as many streams open as it may
	CauseMonth                  // the client has used up its bytes for this month
	CauseDraining               // the server is about to stop
)

// Event is something that happened to a stream.
type Event struct {
	Stream uint32
	What   What
	Cause  uint64 // for Broken, as the other end passed it to Reset
}

// Mux is one end of a session. It is owned by one goroutine or guarded by a lock.
type Mux struct {
	cfg     Config
	lanes   []*lane
	streams map[uint32]*stream
	used    int64  // bytes taken from the budgets: see take
	flying  int64  // those sent and not acknowledged
	last    uint32 // stream opened last, at the client

	// At the server: the streams opened so far are those up to seen, and those in early.
	seen  uint32
	early map[uint32]struct{}

	resets int // Reset frames not acknowledged by the other end

	active  []*stream // with bytes to send, in turn
	blocked []*stream // whose Write had no room for more
	control []*item   // numbered frames without data
	again   []*item   // owed by a lane that is silent or gone
	events  []Event
	wanted  bool
}

// maxEarly bounds how far the numbers of streams may run ahead. maxResets bounds how many streams a client may open
// without acknowledging their end. Each of them costs memory.
const (
	maxEarly  = 1 << 12
	maxResets = 1 << 12
)

// item is a numbered frame.
type item struct {
	frame  Frame
	stream *stream // nil = none
	acked  bool
	again  bool   // waits in Mux.again
	copied bool   // sent over a second lane, so that it arrives sooner
	on     uint32 // lane that last sent it
	freed  bool   // its data no longer counts
	since  time.Time
}

// urgency returns a lower value for a frame that is sent sooner: one without stream data, or of a stream that sends
// little.
func (it *item) urgency() int {
	if it.stream == nil || it.stream.waiting <= burst {
		return 0
	}
	return 1
}

// New returns a Mux without lanes.
func New(c Config) *Mux {
	return &Mux{cfg: c, streams: map[uint32]*stream{}, early: map[uint32]struct{}{}}
}

// Events returns what happened since the last call.
func (m *Mux) Events() []Event {
	all := m.events
	m.events = nil
	return all
}

func (m *Mux) tell(s *stream, w What) { m.events = append(m.events, Event{s.id, w, s.resetHas}) }

// Wanted reports whether lanes have got something new to send since the last call.
func (m *Mux) Wanted() bool {
	w := m.wanted
	m.wanted = false
	return w
}

// Streams returns how many streams are open.
func (m *Mux) Streams() int { return len(m.streams) }

// Quiet reports whether no stream is open, and the other end has acknowledged every reset by this end.
func (m *Mux) Quiet() bool { return len(m.streams) == 0 && m.resets == 0 }

// Open opens a stream to a destination. It can be written to at once. ok = false: there are too many streams.
func (m *Mux) Open(now time.Time, to string) (id uint32, ok bool) {
	if len(m.streams) >= m.cfg.MaxStreams || len(to) > maxOpen || to == "" {
		return 0, false
	}
	m.last++
	s := m.newStream(now, m.last)
	m.grant(s, min(firstWindow, m.left()/firstShare))
	m.send(now, s, Frame{Kind: Open, Stream: s.id, Value: s.granted, Data: []byte(to)})
	return s.id, true
}

func (m *Mux) newStream(now time.Time, id uint32) *stream {
	s := &stream{id: id, credit: leastWindow, tokens: burst, filled: now}
	m.streams[id] = s
	return s
}

// Destination returns the destination of an accepted stream.
func (m *Mux) Destination(id uint32) string {
	if s := m.streams[id]; s != nil {
		return s.to
	}
	return ""
}

// Connect tells the client that its stream is connected.
func (m *Mux) Connect(now time.Time, id uint32) {
	if s := m.streams[id]; s != nil && !s.opened {
		s.opened = true
		m.grant(s, min(firstWindow, m.left()/firstShare))
		m.send(now, s, Frame{Kind: Opened, Stream: id, Value: s.granted})
	}
}

// Write queues b, which then belongs to the Mux, and reports whether there is room for more; if not, a Writable event
// follows once there is. Data written to a stream that has ended is lost.
func (m *Mux) Write(now time.Time, id uint32, b []byte) bool {
	s := m.streams[id]
	if s == nil || s.fin || len(b) == 0 {
		return s != nil && m.room(s)
	}
	if s.queued == 0 {
		s.since, m.wanted = now, true
	}
	s.queue = append(s.queue, b)
	s.queued += len(b)
	s.waiting += len(b)
	m.take(int64(len(b)))
	m.activate(s)
	if m.room(s) {
		return true
	}
	if !s.blocked {
		s.blocked = true
		m.blocked = append(m.blocked, s)
	}
	return false
}

func (m *Mux) activate(s *stream) {
	if !s.listed {
		s.listed = true
		m.active = append(m.active, s)
	}
}

// CloseWrite declares that nothing more is written to a stream.
func (m *Mux) CloseWrite(now time.Time, id uint32) {
	if s := m.streams[id]; s != nil && !s.fin {
		s.fin = true
		m.finish(now, s)
	}
}

// finish sends the end of a stream once everything before it was sent.
func (m *Mux) finish(now time.Time, s *stream) {
	if s.fin && !s.finSent && s.queued == 0 {
		s.finSent = true
		m.send(now, s, Frame{Kind: Fin, Stream: s.id, Value: s.next})
	}
}

// Reset ends a stream at once and tells the other end the cause.
func (m *Mux) Reset(now time.Time, id uint32, cause uint64) {
	if s := m.streams[id]; s != nil {
		m.forget(s)
		m.resets++
		m.send(now, nil, Frame{Kind: Reset, Stream: id, Value: cause})
	}
}

// Read copies data that arrived on a stream. ended means that nothing more will arrive.
func (m *Mux) Read(now time.Time, id uint32, p []byte) (n int, ended bool) {
	s := m.streams[id]
	if s == nil {
		return 0, true
	}
	n = s.readInto(p, m.cfg.Free)
	return n, m.taken(now, s)
}

// Take returns the next bytes that arrived on a stream; they then belong to the caller. ended means that nothing more
// will arrive.
func (m *Mux) Take(now time.Time, id uint32) (b []byte, ended bool) {
	s := m.streams[id]
	if s == nil {
		return nil, true
	}
	b = s.takeIn()
	return b, m.taken(now, s)
}

// taken lets the other end send more after something was read, and reports whether the stream was read to its end.
func (m *Mux) taken(now time.Time, s *stream) (ended bool) {
	if s.ended && s.read == s.length {
		s.finRead = true
		m.forgetDone(s)
		return true
	}
	if !s.ended && s.granted < s.read+s.window-s.window/4 {
		m.grant(s, min(2*int64(s.window), MaxWindow))
		m.send(now, s, Frame{Kind: Window, Stream: s.id, Value: s.granted})
	}
	return false
}

// grant lets the other end send up to a window beyond what was read, less if the budget lacks the room.
func (m *Mux) grant(s *stream, want int64) {
	room := max(m.left()/4, 0)
	window := max(min(want, int64(s.window)+room), leastWindow, int64(s.window))
	m.take(window - int64(s.window))
	s.window = uint64(window)
	s.granted = max(s.granted, s.read+s.window)
}

func (m *Mux) forgetDone(s *stream) {
	if s.done() {
		m.forget(s)
	}
}

func (m *Mux) forget(s *stream) {
	if m.streams[s.id] != s {
		return
	}
	delete(m.streams, s.id)
	m.take(-int64(s.window) - int64(s.queued))
	s.reset = true // the bytes of it that lanes owe are not sent again
	s.queue, s.queued, s.in, s.held = nil, 0, nil, nil
}

// send queues a numbered frame without stream data.
func (m *Mux) send(now time.Time, s *stream, f Frame) {
	m.control = append(m.control, &item{frame: f, stream: s, since: now})
	m.wanted = true
}

// AddLane adds a lane, whose number must be new.
func (m *Mux) AddLane(now time.Time, id uint32) {
	m.lanes = append(m.lanes, &lane{id: id, progress: now, since: now})
	m.wanted = true
}

// RemoveLane removes a lane and sends what it owes over others.
func (m *Mux) RemoveLane(now time.Time, id uint32) {
	i := slices.IndexFunc(m.lanes, func(l *lane) bool { return l.id == id })
	if i < 0 {
		return
	}
	l := m.lanes[i]
	m.lanes = slices.Delete(m.lanes, i, i+1)
	m.repeat(now, l)
}

// repeat queues what a lane owes, acknowledgments included, to be sent over others.
func (m *Mux) repeat(now time.Time, l *lane) {
	m.wanted = true
	for _, it := range l.sent {
		if o := m.lane(it.on); it.on != l.id && o != nil && !o.suspect {
			continue // that lane owes it, too
		}
		if !it.acked && !it.again {
			it.again, it.since = true, now
			m.again = append(m.again, it)
		}
	}
	slices.SortStableFunc(m.again, func(a, b *item) int { return cmp.Compare(a.urgency(), b.urgency()) })
	for _, o := range m.lanes {
		if o.received > 0 {
			o.answered, o.owed = 0, ackBytes
		}
	}
}

func (m *Mux) lane(id uint32) *lane {
	for _, l := range m.lanes {
		if l.id == id {
			return l
		}
	}
	return nil
}

// Observe records the kernel's figures for a lane.
func (m *Mux) Observe(now time.Time, id uint32, p Path) {
	if l := m.lane(id); l != nil {
		l.observe(now, p)
	}
}

// Tick looks for silent lanes, and for room in the shared budget. It reports whether anything is under way; if not, it
// need not be called until something is.
func (m *Mux) Tick(now time.Time) (busy bool) {
	m.unblock()
	busy = len(m.again)+len(m.control)+len(m.active) > 0
	for _, l := range m.lanes {
		owes := len(l.sent) > 0 || l.path.InFlight+l.path.Unsent > 0
		busy = busy || owes
		quiet := now.Sub(l.progress)
		switch {
		case !l.suspect && owes && quiet > l.silenceLimit():
			l.suspect, l.suspected, l.told = true, now, false
			m.repeat(now, l)
		case l.suspect && l.progress.After(l.suspected):
			l.suspect, m.wanted = false, true
			for _, it := range l.sent { // it arrives after all
				it.again = false
			}
		}
	}
	return busy
}

// Silent returns the lanes that have been suspect for at least d.
func (m *Mux) Silent(now time.Time, d time.Duration) (ids []uint32) {
	for _, l := range m.lanes {
		if l.suspect && now.Sub(l.suspected) >= d {
			ids = append(ids, l.id)
		}
	}
	return ids
}

// Held returns how many bytes wait to be read or for the bytes before them.
func (m *Mux) Held() (n int64) {
	for _, s := range m.streams {
		n += int64(s.have - s.read)
		for _, p := range s.held {
			n += int64(len(p.data))
		}
	}
	return n
}

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrProtocol}, args...)...)
}
