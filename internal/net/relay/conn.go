package relay

import (
	"bytes"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/core/lanes"
)

// Conn is a stream as a net.Conn. One read and one write may run at the same time.
type Conn struct {
	s                  *session
	id                 uint32
	readable, writable chan struct{}
	broken             chan struct{} // closed when the stream is reset

	// Guarded by the session's lock.
	opened bool
	err    error

	deadline struct {
		sync.Mutex
		read, write time.Time
	}
}

func newConn(s *session, id uint32) *Conn {
	return &Conn{
		s:        s,
		id:       id,
		readable: make(chan struct{}, 1),
		writable: make(chan struct{}, 1),
		broken:   make(chan struct{}),
	}
}

// fail breaks the stream. The session's lock is held.
func (c *Conn) fail(err error) {
	if c.err == nil {
		c.err = err
		close(c.broken)
	}
	delete(c.s.streams, c.id)
}

// isOpen reports whether the server has connected the stream.
func (c *Conn) isOpen() (bool, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.opened, c.err
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (n int, err error) {
	for {
		ended := false
		c.s.change(func(now time.Time, m *lanes.Mux) {
			if err = c.err; err == nil {
				n, ended = m.Read(now, c.id, p)
			}
		})
		switch {
		case err != nil:
			return 0, err
		case n > 0 || len(p) == 0:
			return n, nil
		case ended:
			return 0, io.EOF
		}
		if err := c.wait(c.readable, &c.deadline.read); err != nil {
			return 0, err
		}
	}
}

// WriteTo implements io.WriterTo. It does not hold a buffer while it waits.
func (c *Conn) WriteTo(w io.Writer) (n int64, err error) {
	for {
		var b []byte
		ended := false
		c.s.change(func(now time.Time, m *lanes.Mux) {
			if err = c.err; err == nil {
				b, ended = m.Take(now, c.id)
			}
		})
		if err != nil {
			return n, err
		}
		if len(b) > 0 {
			written, err := w.Write(b)
			c.s.free(b)
			if n += int64(written); err != nil {
				return n, err
			}
		}
		switch {
		case ended:
			return n, nil
		case len(b) > 0:
			continue
		}
		if err := c.wait(c.readable, &c.deadline.read); err != nil {
			return n, err
		}
	}
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), 64<<10)]
		room, err := c.push(part)
		if err != nil {
			return n, err
		}
		n += len(part)
		if p = p[len(part):]; room > 0 {
			continue
		}
		if err := c.wait(c.writable, &c.deadline.write); err != nil {
			return n, err
		}
	}
	return n, nil
}

// push writes a copy of p, and returns how many more bytes there is room for.
func (c *Conn) push(p []byte) (room int, err error) {
	b := bytes.Clone(p)
	c.s.change(func(now time.Time, m *lanes.Mux) {
		if err = c.err; err == nil {
			if m.Write(now, c.id, b) {
				room = m.Room(c.id)
			}
		}
	})
	return room, err
}

// wait waits for a signal, the end of the stream, or a deadline.
func (c *Conn) wait(woken <-chan struct{}, deadline *time.Time) error {
	c.deadline.Lock()
	at := *deadline
	c.deadline.Unlock()
	var due <-chan time.Time
	if !at.IsZero() {
		t := time.NewTimer(time.Until(at))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-woken:
		return nil
	case <-c.broken:
		return nil // Read and Write return the reason
	case <-due:
		return os.ErrDeadlineExceeded
	}
}

// CloseWrite declares that nothing more is written.
func (c *Conn) CloseWrite() error {
	c.s.change(func(now time.Time, m *lanes.Mux) {
		if c.err == nil {
			m.CloseWrite(now, c.id)
		}
	})
	return nil
}

// Close implements net.Conn. Data already written is still delivered if the other end has finished writing.
func (c *Conn) Close() error {
	c.s.change(func(now time.Time, m *lanes.Mux) {
		if c.err != nil {
			return
		}
		if _, ended := m.Read(now, c.id, nil); ended {
			m.CloseWrite(now, c.id)
		} else {
			m.Reset(now, c.id, lanes.CauseClosed)
		}
		c.fail(net.ErrClosed)
	})
	return nil
}

// abort ends the stream with a cause for the other end.
func (c *Conn) abort(cause uint64) {
	c.s.change(func(now time.Time, m *lanes.Mux) {
		m.Reset(now, c.id, cause)
		c.fail(net.ErrClosed)
	})
}

// connect tells the client that its destination is connected.
func (c *Conn) connect() {
	c.s.change(func(now time.Time, m *lanes.Mux) { m.Connect(now, c.id) })
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return streamAddr{} }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return streamAddr{} }

// SetDeadline implements net.Conn. A deadline applies to calls that begin later.
func (c *Conn) SetDeadline(t time.Time) error {
	c.deadline.Lock()
	defer c.deadline.Unlock()
	c.deadline.read, c.deadline.write = t, t
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.deadline.Lock()
	defer c.deadline.Unlock()
	c.deadline.read = t
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.deadline.Lock()
	defer c.deadline.Unlock()
	c.deadline.write = t
	return nil
}

// streamAddr is a placeholder: the ends of a stream do not have addresses.
type streamAddr struct{}

func (streamAddr) Network() string { return "relay" }
func (streamAddr) String() string  { return "relay" }
