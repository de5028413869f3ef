package origin

import (
	"errors"
	"io"
	"maps"
	"sync"

	"github.com/tributary-http/tributary/internal/core/fault"
)

// chunk is a piece of memory for bytes that wait to be read.
type chunk [16 << 10]byte

// buffer holds bytes that wait to be read. All of its chunks except the first and the last one are full.
type buffer struct {
	chunks   []*chunk
	from, to int // start in the first one, end in the last one
}

func (b *buffer) write(pool *sync.Pool, p []byte) {
	for len(p) > 0 {
		if len(b.chunks) == 0 || b.to == len(chunk{}) {
			c, _ := pool.Get().(*chunk)
			if c == nil {
				c = new(chunk)
			}
			b.chunks, b.to = append(b.chunks, c), 0
		}
		n := copy(b.chunks[len(b.chunks)-1][b.to:], p)
		b.to, p = b.to+n, p[n:]
	}
}

func (b *buffer) read(pool *sync.Pool, p []byte) (n int) {
	for n < len(p) && len(b.chunks) > 0 {
		end := len(chunk{})
		if len(b.chunks) == 1 {
			end = b.to
		}
		k := copy(p[n:], b.chunks[0][b.from:end])
		n, b.from = n+k, b.from+k
		if b.from == end {
			pool.Put(b.chunks[0])
			b.chunks, b.from = b.chunks[1:], 0
		}
	}
	return n
}

func (b *buffer) drop(pool *sync.Pool) {
	for _, c := range b.chunks {
		pool.Put(c)
	}
	*b = buffer{}
}

// read waits for bytes of the body of x or, when everything wanted has been read, for the end of the answer. If err is
// not nil, whole reports whether all wanted bytes have been read.
func (s *session) read(x *exchange, p []byte) (n int, whole bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		whole = x.size >= 0 && x.taken >= x.size
		if !whole {
			if len(p) == 0 {
				return 0, false, nil
			}
			to := p
			if x.size >= 0 {
				to = p[:min(int64(len(p)), x.ready())]
			}
			n = x.unread.read(s.chunks, to)
		}
		if n > 0 || x.err != nil {
			break
		}
		s.change.Wait()
	}
	if n == 0 {
		return 0, whole || x.size < 0 && x.err == errEnd, x.err
	}
	x.taken += int64(n)
	if x.long && x.held() < maxOpen/2 {
		s.change.Broadcast() // waiting until half is read saves switches between goroutines
	}
	s.fill(x)
	s.start()
	s.flush()
	return n, false, nil
}

// h2body is the body of one answer over HTTP/2. Its errors are *engine.AttemptError: Short for an early end, Reset for
// a stream or connection that broke, BadRange for bytes beyond a range or Content-Length, Canceled after Close of the
// connection.
type h2body struct {
	conn *h2conn
	x    *exchange
	err  error // sticky
}

// Read reads into p up to the end of the range, or to where it was cut; at the end it returns io.EOF even for an empty
// p.
func (b *h2body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, whole, err := b.conn.h2.read(b.x, p)
	switch {
	case err == nil:
		return n, nil
	case err == errSurplus:
		return 0, b.fail(fault.BadRange, err)
	case err == errEnd && whole:
		b.finish()
		return 0, io.EOF
	case errors.Is(err, errLonger):
		return 0, b.fail(fault.BadRange, err)
	// the range is complete, whatever became of the stream after it
	case whole && !errors.Is(err, ErrMalformed) && !b.conn.ended():
		b.conn.spoil()
		b.finish()
		return 0, io.EOF
	case err == errEnd, errors.Is(err, io.ErrUnexpectedEOF):
		return 0, b.fail(fault.Short, errShort)
	case errors.Is(err, errFlood):
		return 0, b.fail(fault.BadRange, err)
	}
	return 0, b.fail(fault.Reset, err)
}

func (b *h2body) finish() {
	b.err = io.EOF
	if t := b.x.resp.Trailer; t != nil {
		maps.Copy(t, b.x.trailer)
	}
	b.conn.answered(b.x)
}

func (b *h2body) fail(outcome fault.Outcome, err error) error {
	b.conn.spoil()
	b.err = b.conn.fail("body", outcome, err)
	return b.err
}

// Close cancels the stream if the body was not read to its end (RST_STREAM, RFC 9113 section 6.4); bytes in flight are
// discarded and the connection stays open.
func (b *h2body) Close() error {
	if b.err == nil {
		b.err = b.conn.fail("body", fault.Canceled, errClosed)
		b.conn.answered(b.x)
	}
	return nil
}
