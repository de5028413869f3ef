package relay

import (
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/tributary-http/tributary/internal/lanes"
	"github.com/tributary-http/tributary/internal/parallel"
)

const (
	tickEvery = 20 * time.Millisecond // while something is under way
	// maxStreams bounds the streams of a session.
	maxStreams = 1024
	keepAlive  = 60 * time.Second
	// writeTime bounds one write to a lane: a peer that has not read for this time is gone.
	writeTime = 2 * time.Minute
)

// holdable is what the streams of a session may hold of a budget. The garbage collector takes half as much again for what was read.
func holdable(budget int64) int64 { return budget / 4 * 3 }

// session is one end of a session: its streams, and its lanes, each with a goroutine that reads and one that writes.
type session struct {
	accept func(*Conn, string) // called for each stream that the other end opens; must not block
	gone   func(lane uint32)   // called when a lane has ended; must not block
	sample func()              // called every parallel.SampleEvery while something is under way; nil = never
	silent func()              // called when a lane has been silent for silentTime; must not block
	// refused is called when a stream has ended for a reason that holds for others, too; must not block.
	refused func(*ResetError)

	parts   sync.WaitGroup
	done    chan struct{} // closed at the end
	kick    chan struct{} // something is under way
	buffers sync.Pool     // of *[bulkBuffer]byte
	frames  sync.Pool     // of *[frameBuffer]byte, for what has come in large frames

	mu      sync.Mutex
	mux     *lanes.Mux
	streams map[uint32]*Conn
	wires   map[uint32]*wire
	err     error // why it has ended
	warned  bool
}

// silentTime is how long a lane is silent until another connection is made over its link: sooner than the kernel's pause
// between two retransmissions by then.
const silentTime = 500 * time.Millisecond

// wire is a lane's connection.
type wire struct {
	id   uint32
	conn net.Conn
	raw  net.Conn // beneath conn
	info syscall.RawConn
	wake chan struct{}
	gone chan struct{}
	once sync.Once
}

// close ends the connection without a word: TLS would wait until its alert can be sent.
func (w *wire) close() {
	w.once.Do(func() {
		close(w.gone)
		_ = w.raw.Close()
	})
}

func newSession(c lanes.Config) *session {
	s := &session{
		done: make(chan struct{}), kick: make(chan struct{}, 1),
		buffers: sync.Pool{New: func() any { return new([bulkBuffer]byte) }},
		streams: map[uint32]*Conn{}, wires: map[uint32]*wire{},
	}
	c.Free = s.free
	s.mux = lanes.New(c)
	s.parts.Go(s.tick)
	return s
}

// change lets f change the Mux, then tells those whom it concerns.
func (s *session) change(f func(now time.Time, m *lanes.Mux)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(time.Now(), s.mux)
	s.tell()
}

// tell passes events on. The lock is held; nothing here blocks.
func (s *session) tell() {
	for _, e := range s.mux.Events() {
		c := s.streams[e.Stream]
		switch {
		case e.What == lanes.Accepted && s.accept != nil:
			c = newConn(s, e.Stream)
			s.streams[e.Stream] = c
			s.accept(c, s.mux.Destination(e.Stream))
		case c == nil:
		case e.What == lanes.Connected:
			c.opened = true
			signal(c.readable)
		case e.What == lanes.Broken:
			err := &ResetError{e.Cause}
			if s.refused != nil && err.lasts() > 0 {
				s.refused(err)
			}
			c.fail(err)
		case e.What == lanes.Readable:
			signal(c.readable)
		case e.What == lanes.Writable:
			signal(c.writable)
		}
	}
	if s.mux.Wanted() {
		for _, w := range s.wires {
			signal(w.wake)
		}
		signal(s.kick)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// end ends the session and all its streams; wait waits for its goroutines.
func (s *session) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = err
	close(s.done)
	for _, c := range s.streams {
		c.fail(err)
	}
	for _, w := range s.wires {
		w.close()
	}
	s.mux.Close()
}

func (s *session) wait() { s.parts.Wait() }

// add makes a connection a lane.
func (s *session) add(id uint32, conn, raw net.Conn) error {
	sc, ok := raw.(syscall.Conn)
	if !ok {
		return errors.New("a lane needs a socket")
	}
	info, err := sc.SyscallConn()
	if err != nil {
		return err
	}
	if err := prepare(sc); err != nil {
		return err
	}
	w := &wire{id: id, conn: conn, raw: raw, info: info, wake: make(chan struct{}, 1), gone: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if s.wires[id] != nil {
		return errors.New("the lane exists")
	}
	s.wires[id] = w
	s.mux.AddLane(time.Now(), id)
	s.tell()
	s.parts.Go(func() { s.read(w) })
	s.parts.Go(func() { s.write(w) })
	return nil
}

// remove ends a lane; what it owes goes over others.
func (s *session) remove(id uint32) {
	s.mu.Lock()
	w := s.wires[id]
	if w != nil {
		delete(s.wires, id)
		s.mux.RemoveLane(time.Now(), id)
		s.tell()
	}
	s.mu.Unlock()
	if w != nil {
		w.close()
		s.gone(id)
	}
}

// has reports whether there is a lane with this number.
func (s *session) has(id uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wires[id] != nil
}

// count returns how many lanes there are.
func (s *session) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.wires)
}

// An idle lane waits with a buffer of idleBuffer bytes. A larger one has room for a frame that came in part, and a TLS record.
const (
	idleBuffer = 1 << 10
	bulkBuffer = 2 * (lanes.MaxData + 64)
)

// read takes in what comes over a lane.
func (s *session) read(w *wire) {
	defer s.remove(w.id)
	small := make([]byte, idleBuffer)
	var large *[bulkBuffer]byte
	buf := small[:0]
	for {
		n, err := w.conn.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		rest, bad := s.receive(w, buf)
		if bad != nil {
			s.end(bad)
			return
		}
		if err != nil {
			return
		}
		switch {
		case large == nil && len(buf) == idleBuffer:
			large = s.buffers.Get().(*[bulkBuffer]byte)
			buf = large[:copy(large[:], rest)]
		case large != nil && n < idleBuffer && len(rest) == 0:
			s.buffers.Put(large)
			large, buf = nil, small[:0]
		default:
			buf = buf[:copy(buf[:cap(buf)], rest)]
		}
	}
}

// frameBuffer is the size of a buffer for the data of a large frame. Small ones are kept in memory of their own size.
const frameBuffer = 16 << 10

// kept returns a copy of a frame's data.
func (s *session) kept(data []byte) []byte {
	if len(data) < frameBuffer*3/4 {
		return append(make([]byte, 0, len(data)), data...)
	}
	b, ok := s.frames.Get().(*[frameBuffer]byte)
	if !ok {
		b = new([frameBuffer]byte)
	}
	return b[:copy(b[:], data)]
}

// free takes back what kept has returned and nobody uses any more.
func (s *session) free(data []byte) {
	if cap(data) == frameBuffer {
		s.frames.Put((*[frameBuffer]byte)(data[:frameBuffer]))
	}
}

// receive takes in the frames that a buffer holds and returns what is left of it.
func (s *session) receive(w *wire, buf []byte) (rest []byte, err error) {
	var all []lanes.Frame
	for {
		f, n, err := lanes.Decode(buf)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		if len(f.Data) > 0 {
			f.Data = s.kept(f.Data)
		}
		all = append(all, f)
		buf = buf[n:]
	}
	if len(all) > 0 {
		s.change(func(now time.Time, m *lanes.Mux) {
			for _, f := range all {
				if err == nil {
					err = m.Receive(now, w.id, f)
				}
			}
		})
	}
	return buf, err
}

// write sends what the Mux has for a lane.
func (s *session) write(w *wire) {
	defer s.remove(w.id)
	var large *[bulkBuffer]byte // nil while it waits
	paced := false
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		path, ok := pathOf(w.info)
		if !ok {
			return
		}
		if large == nil {
			large = s.buffers.Get().(*[bulkBuffer]byte)
		}
		var buf []byte
		var wait time.Duration
		shares, restart := false, false
		s.change(func(now time.Time, m *lanes.Mux) {
			m.Observe(now, w.id, path)
			buf, wait = m.Next(now, w.id, large[:0])
			shares, restart = m.Shares(w.id), m.Restart(w.id)
		})
		if restart {
			restartControl(w.info)
		}
		if shares && !paced {
			paced = true
			pace(w.info)
		}
		if len(buf) > 0 {
			_ = w.raw.SetWriteDeadline(time.Now().Add(writeTime))
			if _, err := w.conn.Write(buf); err != nil {
				return
			}
			continue
		}
		s.buffers.Put(large)
		large = nil
		due := timer.C
		if wait < 0 {
			due = nil
		} else {
			timer.Reset(wait)
		}
		select {
		case <-w.wake:
		case <-due:
		case <-w.gone:
			return
		case <-s.done:
			return
		}
	}
}

// tick looks for silent lanes while something is under way.
func (s *session) tick() {
	ticker := time.NewTicker(tickEvery)
	defer ticker.Stop()
	var sampled time.Time
	for {
		select {
		case <-s.done:
			return
		case <-ticker.C:
		}
		busy := false
		s.change(func(now time.Time, m *lanes.Mux) {
			for id, w := range s.wires {
				if p, ok := pathOf(w.info); ok {
					m.Observe(now, id, p)
				}
			}
			busy = m.Tick(now)
			late := len(m.Silent(now, silentTime)) > 0
			if late && !s.warned && s.silent != nil {
				s.silent()
			}
			s.warned = late
		})
		if busy {
			if now := time.Now(); s.sample != nil && now.Sub(sampled) >= parallel.SampleEvery {
				sampled = now
				s.sample()
			}
			continue
		}
		ticker.Stop() // a phone sleeps meanwhile
		select {
		case <-s.done:
			return
		case <-s.kick:
		}
		ticker.Reset(tickEvery)
	}
}

// late returns the lanes that have been silent for silentTime.
func (s *session) late() []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mux.Silent(time.Now(), silentTime)
}

// openStreams returns how many streams are open.
func (s *session) openStreams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams)
}

// conns returns the streams that are open.
func (s *session) conns() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.streams))
}

// quiet reports whether the other end has all that was sent to it, and no stream is open.
func (s *session) quiet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil || s.mux.Quiet()
}

// receptions returns what the kernel knows of some lanes.
func (s *session) receptions(ids []uint32) (all []lanes.Reception) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		w := s.wires[id]
		if w == nil {
			continue
		}
		if r, ok := receptionOf(w.info); ok {
			r.Lane = id
			all = append(all, r)
		}
	}
	return all
}

// rtt returns the round trip of a lane as the kernel measures it, 0 if it is not known.
func (s *session) rtt(id uint32) time.Duration {
	s.mu.Lock()
	w := s.wires[id]
	s.mu.Unlock()
	if w == nil {
		return 0
	}
	p, _ := pathOf(w.info)
	return p.RTT
}

// open opens a stream.
func (s *session) open(to string) (*Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	id, ok := s.mux.Open(time.Now(), to)
	if !ok {
		return nil, &ResetError{lanes.CauseLimit}
	}
	c := newConn(s, id)
	s.streams[id] = c
	s.tell()
	return c, nil
}

// ResetError says why the relay ended a stream.
type ResetError struct{ Cause uint64 }

func (e *ResetError) Error() string {
	switch e.Cause {
	case lanes.CauseRefused:
		return "the relay does not connect to this address"
	case lanes.CauseNotFound:
		return "the relay does not find this name"
	case lanes.CauseFailed:
		return "the relay cannot reach this address"
	case lanes.CauseLimit:
		return "the relay has too many streams open"
	case lanes.CauseFlows:
		return "the relay's limit of tunnels at a time is reached"
	case lanes.CauseMonth:
		return "the relay's limit of bytes in a month is reached"
	case lanes.CauseDraining:
		return "the relay is about to end"
	}
	return "the other end of the tunnel has closed it"
}

var _ io.ReadWriteCloser = (*Conn)(nil)

// lasts returns for how long other streams are not tried after this one: they would lose a round trip each.
func (e *ResetError) lasts() time.Duration {
	switch e.Cause {
	case lanes.CauseFlows:
		return time.Second
	case lanes.CauseMonth, lanes.CauseDraining:
		return time.Minute
	}
	return 0
}
