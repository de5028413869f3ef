package relay

import (
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tributary-http/tributary/internal/core/lanes"
	"github.com/tributary-http/tributary/internal/core/parallel"
)

const (
	tickEvery = 20 * time.Millisecond // while something is under way
	// maxStreams bounds the streams of a session.
	maxStreams = 1024
	keepAlive  = 60 * time.Second
)

// holdable is how much of a budget the streams of a session may hold, in bytes. The garbage collector needs half as
// much again for data that was read.
func holdable(budget int64) int64 { return budget / 3 * 2 }

// session is one end of a session: its streams, and its lanes, each with a goroutine that reads and one that writes.
type session struct {
	accept func(*Conn, string) // called for each stream that the other end opens; must not block
	gone   func(lane uint32)   // called when a lane ends; must not block
	sample func()              // called every parallel.SampleEvery while something is under way; nil = never
	silent func()              // called when a lane has been silent for silentTime; must not block
	// refused is called when a stream ends for a reason that applies to others too; must not block.
	refused func(*ResetError)

	parts   sync.WaitGroup
	done    chan struct{} // closed at the end
	kick    chan struct{} // something is under way
	buffers sync.Pool     // of *[bulkBuffer]byte
	frames  sync.Pool     // of *[frameBuffer]byte, for the data of large frames

	mu      sync.Mutex
	mux     *lanes.Mux
	streams map[uint32]*Conn
	wires   map[uint32]*wire
	err     error // why the session ended
	warned  bool
}

// silentTime is how long a lane is silent before another connection is made over its link: less than the kernel's pause
// between two retransmissions by then.
const silentTime = 500 * time.Millisecond

func newSession(c lanes.Config) *session {
	s := &session{
		done:    make(chan struct{}),
		kick:    make(chan struct{}, 1),
		buffers: sync.Pool{New: func() any { return new([bulkBuffer]byte) }},
		streams: map[uint32]*Conn{},
		wires:   map[uint32]*wire{},
	}
	c.Free = s.free
	s.mux = lanes.New(c)
	s.parts.Go(s.tick)
	return s
}

// change lets f change the Mux, then notifies the streams and lanes affected.
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

// add makes a connection a lane of the session, which counts its bytes in carried.
func (s *session) add(id uint32, conn, raw net.Conn, carried *atomic.Int64) error {
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
	w := &wire{
		id:      id,
		conn:    conn,
		raw:     raw,
		info:    info,
		carried: carried,
		wake:    make(chan struct{}, 1),
		gone:    make(chan struct{}),
	}
	w.model.Store(controlOf(info) == "bbr")
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

// count returns the number of lanes.
func (s *session) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.wires)
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
				if p, ok := w.path(); ok {
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
		ticker.Stop() // so that a phone can sleep
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

// openStreams returns the number of open streams.
func (s *session) openStreams() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams)
}

// conns returns the open streams.
func (s *session) conns() []*Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.streams))
}

// quiet reports whether the other end has everything that was sent to it and no stream is open, or the session has
// ended.
func (s *session) quiet() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil || s.mux.Quiet()
}

// receptions returns what the kernel knows about some lanes.
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

// rtt returns the round trip of a lane as the kernel measures it, 0 if unknown.
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
