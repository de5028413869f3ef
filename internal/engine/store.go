package engine

import (
	"slices"
	"sync"
	"sync/atomic"
)

// blockSize is the unit in which memory is lent to readers: some 20 packets, so that a range of 64 KiB wastes little.
const blockSize = 32 << 10

// block is memory with several holders: the reader that fills it, and each piece of it that waits to be written.
type block struct {
	data [blockSize]byte
	refs atomic.Int32
	pool *blocks
}

func (b *block) hold() { b.refs.Add(1) }

func (b *block) free() {
	if b.refs.Add(-1) == 0 {
		b.pool.put(b)
	}
}

// blocks lends blocks and keeps those that come back, as many as were needed lately.
type blocks struct {
	mu   sync.Mutex
	idle []*block
	keep int
	lent atomic.Int64
}

func newBlocks(keep int64) *blocks { return &blocks{keep: int(keep / blockSize)} }

// get returns a block with one holder.
func (p *blocks) get() *block {
	p.lent.Add(1)
	p.mu.Lock()
	var b *block
	if n := len(p.idle); n > 0 {
		b, p.idle = p.idle[n-1], p.idle[:n-1]
	}
	p.mu.Unlock()
	if b == nil {
		b = &block{pool: p}
	}
	b.refs.Store(1)
	return b
}

func (p *blocks) put(b *block) {
	p.lent.Add(-1)
	p.mu.Lock()
	if len(p.idle) < p.keep {
		p.idle = append(p.idle, b)
	}
	p.mu.Unlock()
}

// held returns the bytes in blocks that are in use.
func (p *blocks) held() int64 { return p.lent.Load() * blockSize }

// piece is bytes of the object: data[lo:hi] of a block, beginning at offset off.
type piece struct {
	off    int64
	b      *block
	lo, hi int
}

func (p piece) end() int64    { return p.off + int64(p.hi-p.lo) }
func (p piece) bytes() []byte { return p.b.data[p.lo:p.hi] }

func freeAll(all []piece) {
	for _, p := range all {
		p.b.free()
	}
}

// store holds what came before its turn, each byte once. One goroutine owns it.
type store struct {
	p []piece // ascending, disjoint
}

// add takes a piece whose reference the caller holds; bytes that are there already, or lie before head, are dropped.
func (s *store) add(n piece, head int64) {
	if n.off < head {
		n.lo += int(min(head-n.off, int64(n.hi-n.lo)))
		n.off = head
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
			if s.p[i].off <= n.off { // there already, as far as s.p[i] reaches
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

// take removes pieces from offset head on without a gap, about most bytes of them, and appends them to out. The caller
// frees their blocks.
func (s *store) take(out []piece, head, most int64) []piece {
	n := 0
	for n < len(s.p) && s.p[n].off == head && most > 0 {
		head += int64(s.p[n].hi - s.p[n].lo)
		most -= int64(s.p[n].hi - s.p[n].lo)
		out = append(out, s.p[n])
		n++
	}
	s.p = slices.Delete(s.p, 0, n)
	return out
}

// clear frees everything.
func (s *store) clear() {
	freeAll(s.p)
	s.p = nil
}
