package segment_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tributary-http/tributary/internal/core/segment"
)

// chooser is a source of choices: seeded in the property test, bytes in the fuzz test.
type chooser interface{ IntN(n int) int }

// tape returns its bytes, and then 0.
type tape []byte

func (p *tape) IntN(n int) int {
	if len(*p) == 0 {
		return 0
	}
	b := int((*p)[0])
	*p = (*p)[1:]
	return b * n / 256 % n
}

// fetch is an attempt that still has to fetch [Start, End).
type fetch = segment.Range

// transfer drives a Ledger like attempts do, and keeps its own record of every byte.
type transfer struct {
	t       *testing.T
	led     *segment.Ledger
	running []fetch
	start   int64
	copies  []int // of each byte
	fresh   int64 // first copies according to the ledger
	most    int64 // largest reorder window so far
}

func newTransfer(t *testing.T, c chooser) *transfer {
	x := &transfer{t: t, start: int64(c.IntN(100)), most: int64(1 + c.IntN(60))}
	x.copies = make([]int, 1+c.IntN(250))
	x.led = segment.NewLedger(rng(x.start, x.start+int64(len(x.copies))), x.most)
	return x
}

// others returns the missing ranges of every attempt but i.
func (x *transfer) others(i int) []segment.Range {
	return slices.Delete(slices.Clone(x.running), i, i+1)
}

func (x *transfer) drop(i int) { x.running = slices.Delete(x.running, i, i+1) }

// step does one random thing.
func (x *transfer) step(c chooser) {
	l := x.led
	op := c.IntN(16)
	if op < 3 { // take part of a free range
		if f := l.Free(); len(f) > 0 && len(x.running) < 6 {
			r := f[c.IntN(len(f))]
			r.End = r.Start + 1 + int64(c.IntN(int(r.Len())))
			l.Take(r)
			x.running = append(x.running, r)
		}
		return
	}
	if op < 5 { // deliver
		if n := l.Ready(); n > 0 {
			l.Deliver(1 + int64(c.IntN(int(n))))
		}
		return
	}
	if op == 5 {
		w := int64(1 + c.IntN(80))
		l.SetWindow(w)
		x.most = max(x.most, w)
		return
	}
	if op == 6 {
		if n := l.Ready() + 1 + int64(c.IntN(9)); !panics(func() { l.Deliver(n) }) {
			x.t.Fatalf("Deliver(%d) of %d ready bytes does not panic", n, l.Ready())
		}
		return
	}
	if len(x.running) == 0 {
		return
	}
	i := c.IntN(len(x.running))
	a := &x.running[i]
	switch op {
	case 7: // the attempt is lost
		owed, cover := *a, x.others(i)
		x.drop(i)
		l.Release(owed, cover)
	case 8: // its answer is shorter than requested
		owed := rng(a.Start+int64(c.IntN(int(a.Len()))), a.End)
		a.End = owed.Start
		l.Release(owed, x.running)
		if a.Empty() {
			x.drop(i)
		}
	case 9: // steal
		cut := a.Start + int64(c.IntN(int(a.Len())))
		tail := rng(cut, a.End)
		if a.End = cut; a.Empty() {
			x.drop(i)
		}
		x.running = append(x.running, tail)
	case 10: // hedge
		h := l.Hedgeable(*a)
		if h.Empty() {
			return
		}
		if h.Start < a.Start || h.End > a.End {
			x.t.Fatalf("Hedgeable(%v) = %v", *a, h)
		}
		h.End = h.Start + 1 + int64(c.IntN(int(h.Len())))
		l.Hedge(h)
		x.running = append(x.running, h)
	default: // receive
		n := min(a.End, l.Limit()) - a.Start
		if n <= 0 {
			return
		}
		r := rng(a.Start, a.Start+1+int64(c.IntN(int(n))))
		x.receive(r)
		if a.Start = r.End; a.Empty() {
			x.drop(i)
		}
	}
}

func (x *transfer) receive(r segment.Range) {
	var want int64
	for off := r.Start; off < r.End; off++ {
		if x.copies[off-x.start]++; x.copies[off-x.start] == 1 {
			want++
		}
	}
	fresh := x.led.Receive(r)
	if x.fresh += fresh; fresh != want {
		x.t.Fatalf("Receive(%v) = %d first copies, want %d", r, fresh, want)
	}
}

// check compares the ledger with the record.
func (x *transfer) check() {
	t, l := x.t, x.led
	t.Helper()
	if off, ok := l.Check(x.running); !ok {
		t.Fatalf("Check: offset %d; free %v, running %v", off, l.Free(), x.running)
	}
	var f segment.Set
	for _, r := range l.Free() {
		f.Add(r)
	}
	end := x.start + int64(len(x.copies))
	var held, ready int64
	gap := false
	for off := x.start; off < end; off++ {
		asked := 0
		for _, a := range x.running {
			if a.Contains(off) {
				asked++
			}
		}
		got := x.copies[off-x.start] > 0
		isFree := f.Overlap(rng(off, off+1)) == 1
		switch {
		case off < l.Offset() && !got:
			t.Fatalf("offset %d was delivered and never received", off)
		case isFree != (!got && asked == 0):
			t.Fatalf("offset %d: free %v, received %v, asked for %d times", off, isFree, got, asked)
		case asked > 2:
			t.Fatalf("offset %d is asked for %d times", off, asked)
		}
		if off >= l.Offset() {
			gap = gap || !got
			if got {
				held++
			}
			if !gap {
				ready++
			}
		}
	}
	if l.Held() != held || l.Ready() != ready {
		t.Fatalf("held %d, want %d; ready %d, want %d", l.Held(), held, l.Ready(), ready)
	}
	if held > x.most {
		t.Fatalf("%d bytes held, the window was never above %d", held, x.most)
	}
	if l.Complete() != (x.fresh == int64(len(x.copies))) {
		t.Fatalf("complete %v after %d first copies of %d", l.Complete(), x.fresh, len(x.copies))
	}
}

// finish lets one attempt at a time fetch the missing bytes, as if one link were left.
func (x *transfer) finish() {
	l := x.led
	for !l.Complete() || l.Offset() < l.End() {
		switch {
		case l.Ready() > 0:
			l.Deliver(l.Ready())
		case len(x.running) > 0:
			owed, cover := x.running[0], x.others(0)
			x.drop(0)
			l.Release(owed, cover)
		default:
			r := l.Free()[0]
			if r.End = min(r.End, l.Limit()); r.Empty() {
				x.t.Fatalf("stuck: offset %d, limit %d, free %v", l.Offset(), l.Limit(), l.Free())
			}
			l.Take(r)
			x.receive(r)
		}
		x.check()
	}
	if x.fresh != int64(len(x.copies)) || l.Held() != 0 || len(l.Free()) != 0 {
		x.t.Fatalf("finished with %d first copies of %d, held %d, free %v", x.fresh, len(x.copies), l.Held(), l.Free())
	}
}

// TestLedgerProperty checks the package's invariants while random attempts take, read, steal, hedge and die.
func TestLedgerProperty(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		x := newTransfer(t, rnd)
		for range 200 {
			x.step(rnd)
			x.check()
		}
		x.finish()
	}
}

func FuzzLedger(f *testing.F) {
	f.Add([]byte{0, 40, 200, 0, 0, 255, 200, 0, 255, 64, 255})
	f.Add([]byte("take, read, hedge, steal, lose, deliver: whatever these bytes happen to mean"))
	f.Fuzz(func(t *testing.T, p []byte) {
		c := tape(p)
		x := newTransfer(t, &c)
		for len(c) > 0 {
			x.step(&c)
			x.check()
		}
		x.finish()
	})
}
