package origin

import (
	"errors"
	"io"

	"github.com/tributary-http/tributary/internal/fault"
)

var (
	errShort   = errors.New("the body ended early")
	errSurplus = errors.New("the body is longer than its range")
	errFraming = errors.New("malformed framing of the body")
)

// body is the body of one answer. Its errors are *engine.AttemptError: Short for an early end, Reset for a broken
// connection, BadRange for bytes beyond the range and for malformed framing, Canceled after Close of the connection.
type body struct {
	conn       *conn
	src        io.ReadCloser // net/http's
	left       int64         // bytes of the range that are missing, -1 if its end is unknown
	untilClose bool          // the end of the connection is the end of the body
	err        error         // sticky
}

// Read reads into p up to the end of the range; at the end it returns io.EOF even for an empty p.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	var probe [1]byte
	atEnd := b.left == 0
	if atEnd {
		p = probe[:] // this must be the end
	} else if b.left > 0 && int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.src.Read(p)
	if atEnd && n > 0 {
		return 0, b.fail(fault.BadRange, errSurplus)
	}
	if b.left > 0 {
		b.left -= int64(n)
	}
	switch {
	case err == nil:
		return n, nil
	case err == io.EOF && b.cut():
		return n, b.fail(fault.Short, io.ErrUnexpectedEOF)
	case err == io.EOF && b.left > 0:
		return n, b.fail(fault.Short, errShort)
	case err == io.EOF:
		b.finish()
		return n, io.EOF
	case b.conn.wire.err == io.EOF:
		return n, b.fail(fault.Short, errShort)
	case b.conn.wire.err != nil:
		return n, b.fail(fault.Reset, b.conn.wire.err)
	}
	return n, b.fail(fault.BadRange, errors.Join(errFraming, err))
}

// cut reports whether the end of the connection, which is to be the end of the body, may be an attacker's (R50).
func (b *body) cut() bool {
	return b.untilClose && b.conn.tail != nil && b.conn.tail.cut
}

func (b *body) finish() {
	b.err = io.EOF
	b.conn.answered()
}

func (b *body) fail(outcome fault.Outcome, err error) error {
	c := b.conn
	c.mu.Lock()
	c.broken = true
	c.mu.Unlock()
	b.err = c.fail("body", outcome, err)
	return b.err
}

// Close closes the connection if the body was not read to its end: HTTP/1.1 knows no other way to refuse the rest
// (RFC 9112 section 9.3).
func (b *body) Close() error {
	if b.err == nil {
		b.conn.Close()
	}
	return nil
}
