package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tributary-http/tributary/internal/core/segment"
)

// blockSize is the unit in which memory is lent to readers: some 20 packets, so that a range of 64 KiB wastes little.
const blockSize = 32 << 10

// block is memory with several holders: the reader that fills it, and each piece of it that waits to be written.
type block struct {
	data []byte // blockSize bytes
	refs atomic.Int32
	slab *slab
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

// spareSlabs is how many slabs are kept while other blocks are lent: the number of these varies.
const spareSlabs = 4

// slab is memory for slabBlocks blocks.
type slab struct {
	mem  []byte
	idle []*block // most recently used last
}

// blocks lends blocks, those of the oldest slab first. It gives back slabs that are not in use, beyond some spare ones.
// When no block is lent, it keeps one slab, or nothing once it is closed.
type blocks struct {
	mu     sync.Mutex
	slabs  []*slab
	idle   int
	lent   int
	closed bool
}

// get returns a block with one holder.
func (p *blocks) get() *block {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.slabs, func(s *slab) bool { return len(s.idle) > 0 })
	if i < 0 {
		i = len(p.slabs)
		p.add()
	}
	s := p.slabs[i]
	n := len(s.idle) - 1
	b := s.idle[n]
	s.idle = s.idle[:n]
	p.lent++
	p.idle--
	b.refs.Store(1)
	return b
}

// add adds a slab.
func (p *blocks) add() {
	s := &slab{mem: mapMemory(slabBlocks * blockSize)}
	for at := 0; at < len(s.mem); at += blockSize {
		s.idle = append(s.idle, &block{data: s.mem[at : at+blockSize : at+blockSize], slab: s, pool: p})
	}
	p.slabs = append(p.slabs, s)
	p.idle += slabBlocks
}

func (p *blocks) put(b *block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.slab.idle = append(b.slab.idle, b)
	p.lent--
	p.idle++
	if len(b.slab.idle) == slabBlocks {
		p.release()
	}
}

// close gives back all memory as soon as no block is in use.
func (p *blocks) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.release()
}

// release gives back the slabs that need not be kept.
func (p *blocks) release() {
	keep := spareSlabs * slabBlocks
	switch {
	case p.closed:
		keep = 0
	case p.lent == 0:
		keep = slabBlocks
	}
	for i := len(p.slabs) - 1; i >= 0 && p.idle >= keep+slabBlocks; i-- {
		if s := p.slabs[i]; len(s.idle) == slabBlocks {
			unmapMemory(s.mem)
			p.slabs = slices.Delete(p.slabs, i, i+1)
			p.idle -= slabBlocks
		}
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

// add takes over a piece with the caller's reference to its block; bytes that are already stored, or lie before the
// next offset, are dropped.
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

// take removes at most most bytes from the next offset on, up to the first gap, and returns their pieces. The caller
// frees their blocks.
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
