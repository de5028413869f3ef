package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tributary-http/tributary/internal/segment"
)

// blockSize is the unit in which memory is lent to readers: some 20 packets, so that a range of 64 KiB wastes little.
const blockSize = 32 << 10

// block is memory with several holders: the reader that fills it, and each piece of it that waits to be written.
type block struct {
	data []byte // blockSize bytes
	refs atomic.Int32
	pool *blocks
}

func (b *block) hold() { b.refs.Add(1) }

func (b *block) free() {
	if b.refs.Add(-1) == 0 {
		b.pool.put(b)
	}
}

// slabBlocks is the number of blocks whose memory is requested from the system at once.
const slabBlocks = 32

// blocks lends blocks and keeps their memory until none is in use; then it keeps that of the first slab, or nothing once it is
// closed.
type blocks struct {
	mu     sync.Mutex
	idle   []*block // most recently used last
	slabs  [][]byte
	lent   int
	closed bool
}

// get returns a block with one holder.
func (p *blocks) get() *block {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		p.add(slab(slabBlocks * blockSize))
	}
	n := len(p.idle) - 1
	b := p.idle[n]
	p.idle = p.idle[:n]
	p.lent++
	b.refs.Store(1)
	return b
}

func (p *blocks) add(slab []byte) {
	p.slabs = append(p.slabs, slab)
	for at := 0; at < len(slab); at += blockSize {
		p.idle = append(p.idle, &block{data: slab[at : at+blockSize : at+blockSize], pool: p})
	}
}

func (p *blocks) put(b *block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, b)
	p.lent--
	p.release()
}

// close gives back all memory as soon as no block is in use.
func (p *blocks) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.release()
}

// release gives back the slabs that need not be kept, if no block is in use.
func (p *blocks) release() {
	keep := 1
	if p.closed {
		keep = 0
	}
	if p.lent > 0 || len(p.slabs) <= keep {
		return
	}
	for _, s := range p.slabs[keep:] {
		unslab(s)
	}
	kept := p.slabs[:keep]
	p.slabs, p.idle = nil, nil
	for _, s := range kept {
		p.add(s)
	}
}

// held returns the bytes in blocks that are in use.
func (p *blocks) held() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(p.lent) * blockSize
}

// piece is a range of the object's bytes: data[lo:hi] of a block, beginning at offset off.
type piece struct {
	off    int64
	b      *block
	lo, hi int
}

func (p piece) end() int64    { return p.off + int64(p.hi-p.lo) }
func (p piece) bytes() []byte { return p.b.data[p.lo:p.hi] }

// clip returns the part of p in r. It is empty if there is none.
func (p piece) clip(r segment.Range) piece {
	cut := segment.Range{Start: p.off, End: p.end()}.Clip(r)
	if cut.Empty() {
		p.hi = p.lo
		return p
	}
	p.lo, p.hi, p.off = p.lo+int(cut.Start-p.off), p.lo+int(cut.End-p.off), cut.Start
	return p
}

func freeAll(all []piece) {
	for _, p := range all {
		p.b.free()
	}
}

// store holds bytes that arrived before their turn, each once. One goroutine owns it.
type store struct {
	p []piece // ascending, disjoint
}

// add takes over a piece with the caller's reference to its block; bytes that are already stored, or lie before the next offset,
// are dropped.
func (s *store) add(n piece, next int64) {
	if n.off < next {
		n.lo += int(min(next-n.off, int64(n.hi-n.lo)))
		n.off = next
	}
	for n.lo < n.hi {
		i, _ := slices.BinarySearchFunc(s.p, n.off, func(p piece, off int64) int {
			if p.end() <= off {
				return -1
			}
			return 1
		})
		// s.p[i] is the first piece that ends beyond n.off.
		gap := n.hi - n.lo
		if i < len(s.p) {
			if s.p[i].off <= n.off { // already stored, as far as s.p[i] reaches
				skip := min(int(s.p[i].end()-n.off), gap)
				n.lo, n.off = n.lo+skip, n.off+int64(skip)
				continue
			}
			gap = min(gap, int(s.p[i].off-n.off))
		}
		if i > 0 {
			if q := &s.p[i-1]; q.b == n.b && q.hi == n.lo && q.end() == n.off { // grows a piece of the same block
				q.hi += gap
				n.lo, n.off = n.lo+gap, n.off+int64(gap)
				continue
			}
		}
		n.b.hold()
		s.p = slices.Insert(s.p, i, piece{off: n.off, b: n.b, lo: n.lo, hi: n.lo + gap})
		n.lo, n.off = n.lo+gap, n.off+int64(gap)
	}
	n.b.free()
}

// take removes at most most bytes from the next offset on, up to the first gap, and returns their pieces. The caller frees their
// blocks.
func (s *store) take(next, most int64) (out []piece) {
	n, end := 0, next+most
	for n < len(s.p) && s.p[n].off == next && next < end {
		if p := &s.p[n]; p.end() > end { // the machine may hold the rest back
			p.b.hold()
			out = append(out, p.clip(segment.Range{Start: next, End: end}))
			*p = p.clip(segment.Range{Start: end, End: p.end()})
			break
		}
		next = s.p[n].end()
		out = append(out, s.p[n])
		n++
	}
	s.p = slices.Delete(s.p, 0, n)
	return out
}

// remove drops the stored bytes of a range and returns their number.
func (s *store) remove(r segment.Range) (n int64) {
	var rest []piece
	for _, p := range s.p {
		n += int64(p.hi - p.lo)
		for _, part := range [...]piece{
			p.clip(segment.Range{Start: p.off, End: r.Start}), p.clip(segment.Range{Start: r.End, End: p.end()}),
		} {
			if part.lo < part.hi {
				part.b.hold()
				rest = append(rest, part)
				n -= int64(part.hi - part.lo)
			}
		}
		p.b.free()
	}
	s.p = rest
	return n
}

// clear frees everything.
func (s *store) clear() {
	freeAll(s.p)
	s.p = nil
}
