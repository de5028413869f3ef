package engine

import "github.com/tributary-http/tributary/internal/core/segment"

const (
	batchBytes = 256 << 10 // bytes handed to the writer at once

	// scatterHold bounds how much a scattered transfer holds for a writer that is slower than its links. Connection
	// loops add the data that they have read meanwhile, a block for each waiting event.
	scatterHold = 4 << 20
)

// delivery holds received data that was not yet given to the writer. The loop owns it.
type delivery struct {
	store   store
	given   int64    // offset up to which bytes were given to the writer in order
	writing bool     // the writer has a batch
	scatter *scatter // nil = bytes are written in order
}

// work is the next task of the writer: it forgets some ranges, which are fetched again, and writes pieces.
type work struct {
	back   []segment.Range // only of a scattered transfer
	pieces []piece
}

// scatter is the state of a delivery whose bytes are written in the order in which they arrive.
type scatter struct {
	handed  segment.Set // given to the writer, or held for it
	written segment.Set
	offset  int64           // offset before which everything is written, as reported to the machine
	held    int64           // bytes that the writer has not written
	back    []segment.Range // ranges that the writer must forget before it writes the next pieces
}

// keep takes over a piece with the caller's reference to its block, and stores the wanted part.
func (d *delivery) keep(p piece, wanted segment.Range) {
	p = p.clip(wanted)
	if d.scatter == nil {
		d.store.add(p, d.given)
		return
	}
	for at := p.off; at < p.end(); { // each byte once
		gap := d.scatter.handed.Gap(segment.Range{Start: at, End: p.end()})
		if gap.Empty() {
			break
		}
		d.scatter.held += d.scatter.handed.Add(gap)
		p.b.hold()
		lo := p.lo + int(gap.Start-p.off)
		d.store.p = append(d.store.p, piece{off: gap.Start, b: p.b, lo: lo, hi: lo + int(gap.Len())})
		at = gap.End
	}
	p.b.free()
}

// batch returns the next pieces for the writer, none if it is busy or there are none. Bytes before offset ready have
// arrived.
func (d *delivery) batch(ready int64) (w work) {
	switch {
	case d.writing:
		return w
	case d.scatter != nil:
		if len(d.store.p) > 0 {
			w = work{back: d.scatter.back, pieces: d.store.p}
			d.scatter.back, d.store.p = nil, nil
		}
	case ready > d.given:
		w.pieces = d.store.take(d.given, min(ready-d.given, batchBytes))
		if len(w.pieces) > 0 {
			d.given = w.pieces[len(w.pieces)-1].end()
		}
	}
	d.writing = len(w.pieces) > 0
	return w
}

// gone returns the offset before which every byte was handed to the writer. Bytes beyond it can still be forgotten.
func (d *delivery) gone() int64 {
	if d.scatter == nil {
		return d.given
	}
	gone := d.scatter.offset
	if all := d.scatter.handed.Ranges(); len(all) > 0 && all[0].Start <= gone {
		gone = max(gone, all[0].End)
	}
	for _, p := range d.store.p { // held for it
		gone = min(gone, p.off)
	}
	return gone
}

// forget drops the kept bytes of a range beyond gone, so that other copies can be kept. The writer of a scattered
// transfer may already have written them: they are overwritten.
func (d *delivery) forget(r segment.Range) {
	n := d.store.remove(r)
	s := d.scatter
	if s == nil {
		return
	}
	s.held -= n
	s.handed.Remove(r)
	s.written.Remove(r)
	s.back = append(s.back, r)
}

// beginScatter switches to writing bytes as they arrive. The writer writes those from offset start on, and has already
// written those before offset next.
func (d *delivery) beginScatter(start, next int64) {
	s := &scatter{offset: next, held: d.given - next}
	s.handed.Add(segment.Range{Start: start, End: d.given})
	for _, p := range d.store.p {
		s.handed.Add(segment.Range{Start: p.off, End: p.end()})
		s.held += p.end() - p.off
	}
	d.scatter = s
}

// wrote records the ranges that the writer of a scattered transfer has written, and returns how far that moves the next
// offset.
func (d *delivery) wrote(ranges []segment.Range) (n int64) {
	s := d.scatter
	d.writing = false
	for _, part := range ranges {
		s.held -= part.Len()
		s.written.Add(part)
	}
	for _, r := range s.back { // forgotten while it was being written
		s.written.Remove(r)
	}
	if all := s.written.Ranges(); len(all) > 0 && all[0].Start <= s.offset {
		n = max(0, all[0].End-s.offset)
	}
	s.offset += n
	return n
}

// full reports whether a busy writer of scattered bytes has as many bytes left to write as may be held.
func (d *delivery) full() bool { return d.scatter != nil && d.writing && d.scatter.held >= scatterHold }
