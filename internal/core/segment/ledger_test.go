package segment_test

import (
	"slices"
	"testing"

	"github.com/tributary-http/tributary/internal/core/segment"
)

func rng(start, end int64) segment.Range { return segment.Range{Start: start, End: end} }

func free(t *testing.T, l *segment.Ledger, want ...segment.Range) {
	t.Helper()
	if !slices.Equal(l.Free(), want) {
		t.Errorf("free %v, want %v", l.Free(), want)
	}
}

// Vector for the continuation of Skjolden 2019 section 8.2.4: "nodes [0-999 done], [1000-1999
// cursor 1400 idle], [2000-2999 in progress] -> resume 1400-1999" (inclusive ends).
func nodes() (l *segment.Ledger, running []segment.Range) {
	l = segment.NewLedger(rng(0, 3000), 4096)
	for start := int64(0); start < 3000; start += 1000 {
		l.Take(rng(start, start+1000))
	}
	l.Receive(rng(0, 1000))
	l.Receive(rng(1000, 1400))
	l.Receive(rng(2000, 2100))
	return l, []segment.Range{rng(2100, 3000)}
}

func TestCursorContinuation(t *testing.T) {
	t.Run("an interior range resumes at its cursor", func(t *testing.T) {
		l, running := nodes()
		free(t, l)
		l.Release(rng(1400, 2000), running)
		free(t, l, rng(1400, 2000))
		if off, ok := l.Check(running); !ok {
			t.Errorf("offset %d is nobody's", off)
		}
	})
	t.Run("the last range too", func(t *testing.T) { // the printed scan never looks at the last node
		l, _ := nodes()
		l.Release(rng(2100, 3000), []segment.Range{rng(1400, 2000)})
		free(t, l, rng(2100, 3000))
	})
	t.Run("the only range too", func(t *testing.T) {
		l := segment.NewLedger(rng(0, 1000), 4096)
		l.Take(rng(0, 1000))
		l.Receive(rng(0, 400)) // "failed at 40 % -> adopter starts at the 40 % cursor"
		l.Release(rng(400, 1000), nil)
		free(t, l, rng(400, 1000))
	})
	t.Run("a finished range gives nothing", func(t *testing.T) {
		l, running := nodes()
		l.Release(rng(1000, 1000), running)
		l.Release(rng(0, 1000), running)
		free(t, l)
	})
	t.Run("what a hedge still fetches stays asked for", func(t *testing.T) {
		l, running := nodes()
		l.Release(rng(1400, 2000), append(running, rng(1500, 1600)))
		free(t, l, rng(1400, 1500), rng(1600, 2000))
	})
	t.Run("what a hedge brought is not fetched again", func(t *testing.T) {
		l, running := nodes()
		l.Hedge(rng(1400, 1500))
		l.Receive(rng(1400, 1500))
		l.Release(rng(1400, 2000), running)
		free(t, l, rng(1500, 2000))
	})
}

func TestRestartContinuation(t *testing.T) {
	t.Run("received bytes are fetched again and are waste", func(t *testing.T) {
		l, running := nodes()
		l.Release(rng(1400, 2000), running)
		l.Restart(rng(1000, 1400), running)
		free(t, l, rng(1000, 2000))
		l.Take(rng(1000, 2000))
		if fresh := l.Receive(rng(1000, 2000)); fresh != 600 {
			t.Errorf("%d first copies of 1000 bytes, want 600", fresh)
		}
	})
	t.Run("delivered bytes are not", func(t *testing.T) {
		l, running := nodes()
		l.Deliver(1200)
		l.Release(rng(1400, 2000), running)
		l.Restart(rng(1000, 1400), running)
		free(t, l, rng(1200, 2000))
	})
	t.Run("nor what another attempt fetches", func(t *testing.T) {
		l, running := nodes()
		l.Restart(rng(1000, 1400), append(running, rng(1300, 1400)))
		free(t, l, rng(1000, 1300))
	})
}

func TestDeliver(t *testing.T) {
	l := segment.NewLedger(rng(100, 200), 50)
	l.Take(rng(100, 200))
	l.Receive(rng(110, 120))
	if l.Ready() != 0 || l.Held() != 10 {
		t.Errorf("with a gap at the next offset: ready %d, held %d", l.Ready(), l.Held())
	}
	l.Receive(rng(100, 110))
	if l.Ready() != 20 || l.Offset() != 100 || l.Limit() != 150 {
		t.Errorf("ready %d, offset %d, limit %d", l.Ready(), l.Offset(), l.Limit())
	}
	l.Deliver(15)
	if l.Ready() != 5 || l.Held() != 5 || l.Offset() != 115 || l.Limit() != 165 {
		t.Errorf("ready %d, held %d, offset %d, limit %d", l.Ready(), l.Held(), l.Offset(), l.Limit())
	}
	l.Deliver(0)
	for _, n := range []int64{6, 86, -1} {
		if !panics(func() { l.Deliver(n) }) {
			t.Errorf("Deliver(%d) of %d ready bytes does not panic", n, l.Ready())
		}
	}
	if l.Offset() != 115 || l.Held() != 5 {
		t.Errorf("after the panics: offset %d, held %d", l.Offset(), l.Held())
	}
	if fresh := l.Receive(rng(100, 120)); fresh != 0 {
		t.Errorf("%d first copies of bytes that came before", fresh)
	}
	if l.Complete() {
		t.Error("complete")
	}
	if fresh := l.Receive(rng(115, 200)); fresh != 80 || !l.Complete() {
		t.Errorf("%d first copies, complete %v", fresh, l.Complete())
	}
}

func TestLast(t *testing.T) {
	l := segment.NewLedger(rng(100, 200), 50)
	if got := l.Last(); got != 100 {
		t.Errorf("before the first byte %d", got)
	}
	l.Take(rng(100, 200))
	l.Receive(rng(130, 140))
	l.Receive(rng(100, 110))
	if got := l.Last(); got != 140 {
		t.Errorf("got %d, want the end of the last range held", got)
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestResize(t *testing.T) {
	l := segment.NewLedger(rng(0, 100), 1000) // the first range, before the size is known
	l.Take(rng(0, 100))
	l.Receive(rng(0, 30))
	l.Resize(500)
	free(t, l, rng(100, 500))
	if l.End() != 500 || l.Limit() != 500 || l.Complete() {
		t.Errorf("end %d, limit %d, complete %v", l.End(), l.Limit(), l.Complete())
	}
	l.Receive(rng(30, 100))
	l.Resize(60) // the object is smaller than the guess
	free(t, l)
	if l.Held() != 60 || !l.Complete() || l.Limit() != 60 {
		t.Errorf("held %d, complete %v, limit %d", l.Held(), l.Complete(), l.Limit())
	}
	if fresh := l.Receive(rng(60, 70)); fresh != 0 {
		t.Errorf("%d first copies beyond the end", fresh)
	}
}

// An answer may deliver more than was first requested: received bytes are no longer free.
func TestReceiveFree(t *testing.T) {
	l := segment.NewLedger(rng(0, 100), 1000)
	l.Take(rng(0, 10))
	if fresh := l.Receive(rng(0, 30)); fresh != 30 {
		t.Errorf("%d first copies, want 30", fresh)
	}
	free(t, l, rng(30, 100))
}

func TestWindow(t *testing.T) {
	l := segment.NewLedger(rng(0, 1000), 100)
	l.Take(rng(0, 1000))
	l.Receive(rng(40, 100))
	l.SetWindow(50)
	if l.Window() != 50 || l.Limit() != 50 || l.Held() != 60 {
		t.Errorf("a smaller window: %d, limit %d, held %d", l.Window(), l.Limit(), l.Held())
	}
	l.SetWindow(5000)
	if l.Limit() != 1000 {
		t.Errorf("limit %d beyond the end", l.Limit())
	}
}

func TestHedgeable(t *testing.T) {
	l := segment.NewLedger(rng(0, 100), 1000)
	l.Take(rng(0, 100))
	l.Receive(rng(0, 10))
	l.Receive(rng(40, 50))
	for _, want := range []segment.Range{rng(10, 40), rng(50, 100)} {
		if got := l.Hedgeable(rng(0, 100)); got != want {
			t.Fatalf("hedgeable %v, want %v", got, want)
		}
		l.Hedge(rng(want.Start, want.Start+20))
		if got, want := l.Hedgeable(rng(0, 100)), rng(want.Start+20, want.End); got != want {
			t.Fatalf("behind a hedge %v, want %v", got, want)
		}
		l.Hedge(want)
	}
	if got := l.Hedgeable(rng(0, 100)); !got.Empty() {
		t.Errorf("a third copy of %v", got)
	}
	if got := l.Missing(rng(0, 100)); got != rng(10, 40) {
		t.Errorf("missing %v", got)
	}
	l.Release(rng(60, 70), []segment.Range{rng(10, 40), rng(50, 100)}) // the hedge failed, the first attempt runs
	if got := l.Hedgeable(rng(0, 100)); got != rng(60, 70) {
		t.Errorf("after the hedge was lost: %v", got)
	}
	if got := l.Hedgeable(rng(-50, -10)); !got.Empty() {
		t.Errorf("outside the object: %v", got)
	}
}

func TestHedged(t *testing.T) {
	l := segment.NewLedger(rng(0, 100), 1000)
	l.Take(rng(0, 100))
	l.Hedge(rng(40, 60))
	for _, r := range []segment.Range{rng(0, 40), rng(60, 100), rng(50, 50), rng(70, 30)} {
		if l.Hedged(r) {
			t.Errorf("%v is asked for twice", r)
		}
	}
	if !l.Hedged(rng(0, 41)) || !l.Hedged(rng(59, 100)) {
		t.Error("the edges are not asked for twice")
	}
	l.Receive(rng(40, 50))
	if l.Hedged(rng(0, 50)) || !l.Hedged(rng(50, 60)) {
		t.Error("what was received still counts, or the rest does not")
	}
}

func TestCheck(t *testing.T) {
	l := segment.NewLedger(rng(0, 100), 1000)
	l.Take(rng(20, 80))
	l.Receive(rng(20, 30))
	if off, ok := l.Check([]segment.Range{rng(30, 80)}); !ok {
		t.Errorf("offset %d is nobody's", off)
	}
	if off, ok := l.Check([]segment.Range{rng(31, 80)}); ok || off != 30 { // R106: a lost byte is found
		t.Errorf("got %d, %v; offset 30 is nobody's", off, ok)
	}
	if off, ok := l.Check([]segment.Range{rng(30, 79)}); ok || off != 79 {
		t.Errorf("got %d, %v; offset 79 is nobody's", off, ok)
	}
	l.Restart(rng(20, 25), nil)
	if off, ok := l.Check([]segment.Range{rng(30, 80)}); ok || off > 20 {
		t.Errorf("got %d, %v; offset 20 is received and free", off, ok)
	}
}
