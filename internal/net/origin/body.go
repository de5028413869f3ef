package origin

import (
	"errors"
	"fmt"
	"io"

	"github.com/tributary-http/tributary/internal/core/fault"
)

var (
	errShort   = errors.New("the body ended early")
	errSurplus = errors.New("the body is longer than its range")
	errFraming = malformed("the framing of its content")
)

// rangeBody reads content up to the end of its range and not beyond.
type rangeBody struct {
	src  io.ReadCloser // net/http's or http2's
	left int64         // bytes of the range still missing, -1 if its end is unknown
	err  error         // sticky
}

// newRangeBody limits content to an accepted range; any other content is delimited by its framing alone.
func newRangeBody(src io.ReadCloser, v Verdict) rangeBody {
	b := rangeBody{src: src, left: -1}
	if v.Err == nil && v.Range.End >= 0 {
		b.left = v.Range.Len()
	}
	return b
}

// read reads into p. Once the range is complete, it returns no bytes and the error that ends the content, or errSurplus
// if more bytes follow.
func (b *rangeBody) read(p []byte) (int, error) {
	if b.left == 0 {
		var probe [1]byte
		n, err := b.src.Read(probe[:])
		if n > 0 {
			err = errSurplus
		}
		return 0, err
	}
	if b.left > 0 && int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.src.Read(p)
	if b.left > 0 {
		b.left -= int64(n)
	}
	return n, err
}

// body is the body of one answer. Its errors are *engine.AttemptError: Short for an early end, Reset for a broken
// connection, BadRange for bytes beyond the range and for malformed framing, Canceled after Close of the connection.
type body struct {
	rangeBody
	conn       *conn
	untilClose bool // the end of the connection is the end of the body
}

// Read reads into p up to the end of the range; at the end it returns io.EOF even for an empty p.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.read(p)
	switch {
	case err == nil:
		return n, nil
	case err == errSurplus:
		return 0, b.fail(fault.BadRange, err)
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
	return n, b.fail(fault.BadRange, fmt.Errorf("%w: %w", errFraming, err))
}

// cut reports whether the end of the connection, which marks the end of the body, may be forged by an attacker (R50).
func (b *body) cut() bool {
	return b.untilClose && b.conn.tail != nil && b.conn.tail.cut
}

func (b *body) finish() {
	b.err = io.EOF
	b.conn.answered()
}

func (b *body) fail(outcome fault.Outcome, err error) error {
	b.conn.spoil()
	b.err = b.conn.fail("body", outcome, err)
	return b.err
}

// Close closes the connection if the body was not read to its end: HTTP/1.1 has no other way to refuse the rest
// (RFC 9112 section 9.3).
func (b *body) Close() error {
	if b.err == nil {
		b.conn.Close()
	}
	return nil
}
