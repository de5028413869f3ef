package tributary

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
)

// body is the content of a response. It returns the same errors as RoundTrip.
type body struct {
	from   io.ReadCloser
	ctx    context.Context
	end    func() // ends the request
	closed atomic.Bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.from.Read(p)
	err = wrap(b.ctx, err)
	if err == io.EOF {
		b.end()
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.closed.Store(true)
	err := b.from.Close()
	b.end()
	return err
}

// divided is the content that package transport returns for a response that may arrive over several links.
type divided interface {
	io.ReadCloser
	io.WriterTo
	WriteAtTo(w io.WriterAt, progress func(written, prefix int64)) (prefix int64, err error)
}

// dividedBody is the body of a divided response.
type dividedBody struct {
	body
	from divided
}

// WriteTo implements io.WriterTo.
func (b *dividedBody) WriteTo(w io.Writer) (int64, error) {
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	to := &sink{w: w}
	n, err := b.from.WriteTo(to)
	return n, to.blame(b.ctx, err)
}

// writeAtTo writes the content in the order in which it arrives, and returns how many bytes at the beginning are
// complete.
func (b *dividedBody) writeAtTo(w io.WriterAt) (int64, error) {
	to := &sink{at: w}
	n, err := b.from.WriteAtTo(to, nil)
	return n, to.blame(b.ctx, err)
}

// sink is the destination of the content. It distinguishes the caller's errors from those of the request.
type sink struct {
	w   io.Writer
	at  io.WriterAt
	err error
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (n int, err error) {
	n, err = s.w.Write(p)
	return n, s.note(err)
}

// WriteAt implements io.WriterAt.
func (s *sink) WriteAt(p []byte, off int64) (n int, err error) {
	n, err = s.at.WriteAt(p, off)
	return n, s.note(err)
}

func (s *sink) note(err error) error {
	if err != nil {
		s.err = err
	}
	return err
}

// blame returns a write error unchanged, and any other error as RoundTrip would return it.
func (s *sink) blame(ctx context.Context, err error) error {
	if s.err != nil && errors.Is(err, s.err) {
		return s.err
	}
	return wrap(ctx, err)
}
