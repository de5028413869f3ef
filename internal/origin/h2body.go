package origin

import (
	"errors"
	"io"

	"github.com/tributary-http/tributary/internal/fault"
)

// h2body is the body of one answer over HTTP/2. Its errors are *engine.AttemptError: Short for an early end, Reset for a
// stream or connection that broke, BadRange for bytes beyond a range, Canceled after Close of the connection.
type h2body struct {
	rangeBody
	conn *h2conn
	x    *exchange
}

// Read reads into p up to the end of the range; at the end it returns io.EOF even for an empty p.
func (b *h2body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	complete := b.left == 0
	if !complete && len(p) == 0 {
		return 0, nil
	}
	n, err := b.read(p)
	if !complete && b.left >= 0 {
		b.conn.holds(b.x, b.left)
	}
	switch {
	case err == nil:
		return n, nil
	case err == errSurplus:
		return 0, b.fail(fault.BadRange, err)
	case err == io.EOF && b.left <= 0:
		b.finish()
		return n, io.EOF
	case complete && b.conn.ctx.Err() == nil: // the range is complete, whatever became of the stream after it
		b.conn.spoil()
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

func (b *h2body) fail(outcome fault.Outcome, err error) error {
	b.conn.spoil()
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
