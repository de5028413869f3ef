package relay

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tributary-http/tributary/internal/core/lanes"
)

// wire is a lane's connection.
type wire struct {
	id      uint32
	conn    net.Conn
	raw     net.Conn // the connection below TLS
	info    syscall.RawConn
	model   atomic.Bool   // see [lanes.Path]
	carried *atomic.Int64 // bytes in both directions
	wake    chan struct{}
	gone    chan struct{}
	once    sync.Once
}

// close ends the connection without a TLS alert: TLS would wait until the alert can be sent.
func (w *wire) close() {
	w.once.Do(func() {
		close(w.gone)
		_ = w.raw.Close()
	})
}

// path asks the kernel about the lane.
func (w *wire) path() (p lanes.Path, ok bool) {
	p, ok = pathOf(w.info)
	p.Model = w.model.Load()
	return p, ok
}

// writeTime bounds one write to a lane: a peer that read nothing during this time is gone.
const writeTime = 2 * time.Minute

// An idle lane waits with a buffer of idleBuffer bytes. A larger one has room for a partial frame and a TLS record.
const (
	idleBuffer = 1 << 10
	bulkBuffer = 2 * (lanes.MaxData + 64)
)

// read processes the data that arrives over a lane.
func (s *session) read(w *wire) {
	defer s.remove(w.id)
	small := make([]byte, idleBuffer)
	var large *[bulkBuffer]byte
	buf := small[:0]
	for {
		n, err := w.conn.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		w.carried.Add(int64(n))
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

// frameBuffer is the size of a buffer for the data of a large frame, in bytes. Small ones are kept in memory of their
// own size.
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

// free takes back a buffer that kept returned and that is no longer used.
func (s *session) free(data []byte) {
	if cap(data) == frameBuffer {
		s.frames.Put((*[frameBuffer]byte)(data[:frameBuffer]))
	}
}

// receive processes the frames in a buffer and returns the rest of it.
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

// write sends the bytes that the Mux has for a lane.
func (s *session) write(w *wire) {
	defer s.remove(w.id)
	var large *[bulkBuffer]byte // nil while write waits
	paced := false
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		path, ok := w.path()
		if !ok {
			return
		}
		if large == nil {
			large = s.buffers.Get().(*[bulkBuffer]byte)
		}
		var buf []byte
		var wait time.Duration
		shares, restart, underused := false, false, false
		s.change(func(now time.Time, m *lanes.Mux) {
			m.Observe(now, w.id, path)
			buf, wait = m.Next(now, w.id, large[:0])
			shares, restart, underused = m.Shares(w.id), m.Restart(w.id), m.Underused(w.id)
		})
		if restart {
			restartControl(w.info)
		}
		if underused {
			w.model.Store(useModel(w.info))
		}
		if shares && !paced {
			paced = true
			pace(w.info)
		}
		if len(buf) > 0 {
			_ = w.raw.SetWriteDeadline(time.Now().Add(writeTime))
			n, err := w.conn.Write(buf)
			w.carried.Add(int64(n))
			if err != nil {
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
