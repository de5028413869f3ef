package engine

import (
	"io"
	"time"

	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

// wrote is a report of a scattered transfer's writer to the loop.
type wrote struct {
	begin  bool // the writer begins: bytes are to be scattered from now on
	ranges []segment.Range
}

// tellWrote hands w to the loop, unless the loop has ended.
func (r *run) tellWrote(w wrote) {
	select {
	case r.wrote <- w:
	case <-r.left:
	}
}

// scattered handles a report of the writer.
func (r *run) scattered(w wrote) (next time.Time) {
	if w.begin {
		return r.beginScatter()
	}
	return r.handle(transfer.Event{Kind: transfer.Delivered, N: r.delivery.wrote(w.ranges)})
}

// beginScatter lifts the reorder window: its grant goes back to other transfers.
func (r *run) beginScatter() (next time.Time) {
	r.delivery.beginScatter(r.opening.Content().Start, r.m.State(time.Now()).Offset)
	if r.share != nil {
		r.share.Leave()
	}
	r.share = r.e.budget.Join(scatterHold, r.req.Target.cost(), func(int64) {})
	return r.handle(transfer.Event{Kind: transfer.Scatter})
}

// writeInOrder is WriteAtTo for content that arrives in order.
func writeInOrder(from io.Reader, w io.WriterAt, progress func(written, prefix int64)) (int64, error) {
	out := &offsetWriter{w: w, progress: progress}
	_, err := io.Copy(out, from)
	return out.n, err
}

type offsetWriter struct {
	w        io.WriterAt
	n        int64
	progress func(written, prefix int64)
}

// Write implements io.Writer.
func (o *offsetWriter) Write(p []byte) (int, error) {
	n, err := o.w.WriteAt(p, o.n)
	o.n += int64(n)
	if o.progress != nil {
		o.progress(o.n, o.n)
	}
	return n, err
}
