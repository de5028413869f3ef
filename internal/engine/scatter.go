package engine

import (
	"io"
	"time"

	"github.com/tributary-http/tributary/internal/segment"
	"github.com/tributary-http/tributary/internal/transfer"
)

// scatterHold is how much a scattered transfer holds at most for a writer that is slower than its links. Lanes add what they
// have read meanwhile, a block for each event that waits.
const scatterHold = 4 << 20

// scatter is the part of a run that hands bytes to the writer in the order in which they come. The loop owns it.
type scatter struct {
	handed  segment.Set // given to the writer, or held for it
	written segment.Set
	held    int64 // bytes that the writer has not written
}

// wrote is what the writer of a scattered transfer tells the loop.
type wrote struct {
	begin  bool // it begins: bytes are to be scattered from now on
	ranges []segment.Range
}

// tellWrote hands w to the loop, unless the loop has ended.
func (r *run) tellWrote(w wrote) {
	select {
	case r.wrote <- w:
	case <-r.left:
	}
}

// scattered takes what the writer has written.
func (r *run) scattered(w wrote) (next time.Time) {
	if w.begin {
		return r.beginScatter()
	}
	s := r.scatter
	r.writing = false
	for _, part := range w.ranges {
		s.held -= part.Len()
		s.written.Add(part)
	}
	var n int64
	if all := s.written.Ranges(); len(all) > 0 && all[0].Start <= r.m.Head() {
		n = max(0, all[0].End-r.m.Head())
	}
	return r.handle(transfer.Event{Kind: transfer.Delivered, N: n})
}

// beginScatter lifts the reorder window: what was granted for it goes back to other transfers.
func (r *run) beginScatter() (next time.Time) {
	s := &scatter{held: r.given - r.m.Head()}
	s.handed.Add(segment.Range{Start: r.opening.Content().Start, End: r.given})
	for _, p := range r.store.p {
		s.handed.Add(segment.Range{Start: p.off, End: p.end()})
		s.held += p.end() - p.off
	}
	r.scatter = s
	if r.share != nil {
		r.share.Leave()
	}
	r.share = r.e.budget.Join(scatterHold, func(int64) {})
	return r.handle(transfer.Event{Kind: transfer.Scatter})
}

// full reports whether the writer has as much before it as may be held.
func (s *scatter) full(r *run) bool { return r.writing && s.held >= scatterHold }

// add takes a piece whose reference the caller holds, each byte once.
func (s *scatter) add(r *run, p piece) {
	for at := p.off; at < p.end(); {
		gap := s.handed.Gap(segment.Range{Start: at, End: p.end()})
		if gap.Empty() {
			break
		}
		s.held += s.handed.Add(gap)
		p.b.hold()
		lo := p.lo + int(gap.Start-p.off)
		r.store.p = append(r.store.p, piece{off: gap.Start, b: p.b, lo: lo, hi: lo + int(gap.Len())})
		at = gap.End
	}
	p.b.free()
}

// pump hands what is held to the writer when it has nothing to do.
func (s *scatter) pump(r *run) {
	if r.writing || len(r.store.p) == 0 {
		return
	}
	batch := r.store.p
	r.store.p = nil
	r.writing = true
	r.begin()
	r.out <- batch // its one place is free: the writer took the last batch
}

// writeInOrder is WriteAtTo for content that comes in order.
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
