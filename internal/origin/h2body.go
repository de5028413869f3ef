package origin

import (
	"errors"
	"io"

	"github.com/tributary-http/tributary/internal/fault"
)

// h2body is the body of one answer over HTTP/2. Its errors are *engine.AttemptError: Short for an early end, Reset for a
// stream or connection that broke, BadRange for bytes beyond a range, Canceled after Close of the connection.
type h2body struct {
	conn *h2conn
	x    *exchange
	src  io.ReadCloser // http2's
	left int64         // bytes of the range that are missing, -1 if its end is unknown
	err  error         // sticky
}

// Read reads into p up to the end of the range; at the end it returns io.EOF even for an empty p.
func (b *h2body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	var probe [1]byte
	atEnd := b.left == 0
	switch {
	case atEnd:
		p = probe[:] // this must be the end
	case len(p) == 0:
		return 0, nil
	case b.left > 0 && int64(len(p)) > b.left:
		p = p[:b.left]
	}
	n, err := b.src.Read(p)
	if atEnd && n > 0 {
		return 0, b.fail(fault.BadRange, errSurplus)
	}
	if b.left > 0 {
		b.left -= int64(n)
		b.conn.holds(b.x, b.left)
	}
	switch {
	case err == nil:
		return n, nil
	case err == io.EOF && b.left <= 0:
		b.finish()
		return n, io.EOF
	case atEnd && b.conn.ctx.Err() == nil: // the range is complete, whatever became of the stream after it
		b.spoil()
		b.finish()
		return n, io.EOF
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		return n, b.fail(fault.Short, errShort)
	case errors.Is(err, errFlood):
		return n, b.fail(fault.BadRange, err)
	}
	return n, b.fail(fault.Reset, err)
}

func (b *h2body) finish() {
	b.err = io.EOF
	b.conn.answered(b.x)
}

// spoil bars the connection from further requests.
func (b *h2body) spoil() {
	b.conn.mu.Lock()
	b.conn.broken = true
	b.conn.mu.Unlock()
}

func (b *h2body) fail(outcome fault.Outcome, err error) error {
	b.spoil()
	b.err = b.conn.fail("body", outcome, err)
	return b.err
}

// Close cancels the stream if the body was not read to its end (RST_STREAM, RFC 9113 section 6.4); bytes in flight are
// discarded and the connection lives.
func (b *h2body) Close() error {
	if b.err != nil {
		return nil
	}
	b.err = b.conn.fail("body", fault.Canceled, errClosed)
	b.src.Close()
	b.conn.answered(b.x)
	return nil
}
