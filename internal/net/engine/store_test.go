package engine

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/tributary-http/tributary/internal/core/segment"
)

// at is the byte of the model's object at an offset.
func at(off int64) byte { return byte(off*131 + off>>8) }

// lend returns a piece of n bytes from off on, lo bytes into a block of its own.
func lend(p *blocks, off int64, lo, n int) piece {
	b := p.get()
	for i := range n {
		b.data[lo+i] = at(off + int64(i))
	}
	return piece{off: off, b: b, lo: lo, hi: lo + n}
}

// returned fails the test unless every block came back exactly once.
func returned(t *testing.T, p *blocks) {
	t.Helper()
	if n := p.lent; n != 0 {
		t.Errorf("%d blocks are lent", n)
	}
	seen := map[*block]bool{}
	for _, b := range p.all() {
		if n := b.refs.Load(); n != 0 || seen[b] {
			t.Errorf("an idle block has %d holders, twice idle: %v", n, seen[b])
		}
		seen[b] = true
	}
}

// TestStoreAgainstModel adds random pieces, in blocks that some of them share, and compares the output with a plain array.
func TestStoreAgainstModel(t *testing.T) {
	const size = 3000
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		p := &blocks{}
		var s store
		var have [size]bool
		head := int64(0)
		var shared *block // of a reader that fills it step by step
		var sharedAt int64
		fill := 0
		for range 200 {
			switch {
			case r.IntN(3) == 0: // the next read of an attempt, into the block it is filling
				if shared == nil || fill > blockSize-200 || r.IntN(10) == 0 {
					if shared != nil {
						shared.free()
					}
					shared, fill, sharedAt = p.get(), 0, r.Int64N(size)
				}
				n := int(min(int64(r.IntN(100)), size-sharedAt))
				for i := range n {
					shared.data[fill+i] = at(sharedAt + int64(i))
				}
				shared.hold()
				s.add(piece{off: sharedAt, b: shared, lo: fill, hi: fill + n}, head)
				for i := range int64(n) {
					have[sharedAt+i] = true
				}
				fill, sharedAt = fill+n, sharedAt+int64(n)
			case r.IntN(3) > 0:
				off := r.Int64N(size)
				n := int(min(r.Int64N(300), size-off))
				s.add(lend(p, off, r.IntN(1000), n), head)
				for i := range int64(n) {
					have[off+i] = true
				}
			default:
				most := 1 + r.Int64N(500)
				got := s.take(head, most)
				taken := int64(0)
				for _, q := range got {
					if q.off != head {
						t.Fatalf("seed %d: a piece at %d, the head is %d", seed, q.off, head)
					}
					for i, c := range q.bytes() {
						if !have[q.off+int64(i)] || c != at(q.off+int64(i)) {
							t.Fatalf("seed %d: byte %d is wrong", seed, q.off+int64(i))
						}
					}
					head, taken = q.end(), taken+q.end()-q.off
					q.b.free()
				}
				if taken > most {
					t.Fatalf("seed %d: %d bytes are taken, %d asked for", seed, taken, most)
				}
				if taken < most && head < size && have[head] {
					t.Fatalf("seed %d: byte %d is there and was not taken", seed, head)
				}
			}
			for i := 1; i < len(s.p); i++ {
				if s.p[i].off < s.p[i-1].end() {
					t.Fatalf("seed %d: pieces overlap at %d", seed, s.p[i].off)
				}
			}
		}
		if shared != nil {
			shared.free()
		}
		s.clear()
		returned(t, p)
	}
}

func TestStore(t *testing.T) {
	p := &blocks{}
	collect := func(s *store, head int64) (b []byte) {
		for _, q := range s.take(head, 1<<20) {
			b = append(b, q.bytes()...)
			q.b.free()
		}
		return b
	}
	want := func(from, to int64) (b []byte) {
		for ; from < to; from++ {
			b = append(b, at(from))
		}
		return b
	}
	cases := []struct {
		name  string
		head  int64
		parts [][2]int64
		end   int64 // of what can be taken
	}{
		{"in order", 0, [][2]int64{{0, 10}, {10, 20}}, 20},
		{"out of order", 0, [][2]int64{{10, 20}, {0, 10}}, 20},
		{"a gap", 0, [][2]int64{{0, 10}, {11, 20}}, 10},
		{"nothing at the next offset", 0, [][2]int64{{1, 20}}, 0},
		{"twice", 0, [][2]int64{{0, 10}, {0, 10}, {0, 10}}, 10},
		{"fills a gap and overlaps both sides", 0, [][2]int64{{0, 10}, {15, 30}, {5, 20}}, 30},
		{"covers several", 0, [][2]int64{{2, 3}, {5, 6}, {8, 9}, {0, 12}}, 12},
		{"reaches back before the next offset", 7, [][2]int64{{0, 10}}, 10},
		{"lies before the next offset", 7, [][2]int64{{0, 7}}, 7},
		{"empty", 0, [][2]int64{{0, 0}, {0, 5}}, 5},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var s store
			for _, r := range c.parts {
				s.add(lend(p, r[0], 3, int(r[1]-r[0])), c.head)
			}
			if got := collect(&s, c.head); !bytes.Equal(got, want(c.head, c.end)) {
				t.Errorf("%d bytes, want %d", len(got), c.end-c.head)
			}
			s.clear()
			returned(t, p)
		})
	}
}

// TestHeldBack: the writer does not get the byte that the machine holds back, although it arrived in one piece with those before it.
func TestHeldBack(t *testing.T) {
	p := &blocks{}
	var d delivery
	d.keep(lend(p, 0, 3, 100), segment.Range{Start: 0, End: 100})
	for _, c := range []struct{ ready, end int64 }{{99, 99}, {99, 99}, {100, 100}} {
		freeAll(d.batch(c.ready).pieces)
		d.writing = false
		if d.given != c.end {
			t.Errorf("of %d bytes that are ready, the writer got %d", c.ready, d.given)
		}
	}
	returned(t, p)
}

// TestBlocksClosed checks that nothing stays mapped once an engine has ended, whether its last block comes back before or after.
func TestBlocksClosed(t *testing.T) {
	for _, late := range []bool{false, true} {
		p := &blocks{}
		b := p.get()
		if late {
			p.close()
			if len(p.slabs) != 1 {
				t.Fatalf("%d slabs are kept under a block in use, want 1", len(p.slabs))
			}
			b.data[0] = 1
			b.free()
		} else {
			b.free()
			p.close()
		}
		if len(p.slabs) != 0 || p.idle != 0 {
			t.Errorf("late %v: %d slabs and %d blocks are kept", late, len(p.slabs), p.idle)
		}
		p.get().free() // a transfer that outlives the engine's links
		if len(p.slabs) != 0 {
			t.Errorf("late %v: %d slabs are kept after another use", late, len(p.slabs))
		}
	}
}

func TestBlocks(t *testing.T) {
	p := &blocks{}
	var all []*block
	for range slabBlocks + 5 {
		all = append(all, p.get())
	}
	if n := p.held(); n != (slabBlocks+5)*blockSize {
		t.Errorf("%d bytes are held", n)
	}
	all[0].hold()
	for _, b := range all {
		b.free()
	}
	if n := p.held(); n != blockSize {
		t.Errorf("%d bytes are held by the one with a second holder", n)
	}
	all[0].free()
	if n := p.idle; n != slabBlocks || len(p.slabs) != 1 {
		t.Errorf("%d blocks of %d slabs are kept, want one slab", n, len(p.slabs))
	}
	b := p.get()
	if len(b.data) != blockSize || cap(b.data) != blockSize {
		t.Errorf("a block of %d bytes, %d reachable", len(b.data), cap(b.data))
	}
	b.free()
	returned(t, p)
}

// all returns the blocks that are not lent.
func (p *blocks) all() (all []*block) {
	for _, s := range p.slabs {
		all = append(all, s.idle...)
	}
	return all
}

// TestBlocksShrink: the memory of a peak is given back while other blocks are still lent.
func TestBlocksShrink(t *testing.T) {
	p := &blocks{}
	var all []*block
	for range 40 * slabBlocks {
		all = append(all, p.get())
	}
	long := all[:slabBlocks/2]
	for _, b := range all[len(long):] {
		b.free()
	}
	if n := len(p.slabs); n > spareSlabs+2 {
		t.Errorf("%d slabs are kept for %d blocks", n, len(long))
	}
	for _, b := range long {
		b.free()
	}
	if len(p.slabs) != 1 || p.idle != slabBlocks {
		t.Errorf("%d slabs and %d idle blocks are kept, want one slab", len(p.slabs), p.idle)
	}
}
