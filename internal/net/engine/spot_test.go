package engine

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

// TestSampleAgainstModel delivers both copies of a sample in random pieces: its check is finished as soon as both are complete, or
// differ in a byte that both have.
func TestSampleAgainstModel(t *testing.T) {
	const start, size = 1000, 300
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 5))
		p := &blocks{}
		n := 32 + r.Int64N(size-32)
		known := r.Int64N(n+1) * int64(r.IntN(2)) // arrived before, over link 1
		wrong := int64(-1)                        // byte of the prefix that differs from the one of other links
		if r.IntN(2) == 0 {
			wrong = start + r.Int64N(n)
		}
		s := spots{}
		tailAt := -1
		if known > 0 {
			tailAt = 1
			tail := segment.Range{Start: start + known - min(known+r.Int64N(50), start), End: start + known}
			b := lend(p, tail.Start, 0, int(tail.Len()))
			s.keep(1, b, transfer.Received{Keep: tail, Fresh: tail.Len(), Tail: tail})
			b.b.free()
		}
		request := segment.Range{Start: start, End: start + n + 1000}
		s.begin(transfer.Action{Kind: transfer.Fetch, Link: 0, Attempt: 7, Range: request, Prefix: n, Tail: int8(tailAt)})
		own, others := int64(start), make([]bool, n)
		for i := range known {
			others[i] = true
		}
		finished := func() (done, differs bool) {
			done = own >= start+n
			for i, came := range others {
				done = done && came
				differs = differs || came && start+int64(i) == wrong && own > wrong
			}
			return done || differs, differs
		}
		for step := 0; ; step++ {
			var b piece
			var done []*sample
			if r.IntN(2) == 0 && own < request.End { // of the prefix, and beyond it
				k := 1 + r.IntN(int(min(200, request.End-own)))
				b = lend(p, own, r.IntN(100), k)
				if i := wrong - own; i >= 0 && i < int64(k) {
					b.bytes()[i]++
				}
				own += int64(k)
				done = s.compare(7, 0, b, segment.Range{Start: max(b.off, start+n), End: b.end()})
			} else {
				from := start - 100 + r.Int64N(n+100)
				b = lend(p, from, r.IntN(100), 1+r.IntN(150))
				keep := segment.Range{Start: b.off, End: b.end() - r.Int64N(b.end()-b.off)} // others are no longer wanted
				done = s.compare(8, int8(1+r.IntN(2)), b, keep)
				for at := max(keep.Start, start); at < min(keep.End, start+n); at++ {
					others[at-start] = true
				}
			}
			b.b.free()
			through, differs := finished()
			if through != (len(done) == 1) || through && (done[0].attempt != 7 || done[0].differs != differs) {
				t.Fatalf("seed %d, step %d: through %v, differs %v, but got %+v", seed, step, through, differs, done)
			}
			if through {
				break
			}
		}
		if len(s.open) > 0 {
			t.Fatalf("seed %d: the check is still open", seed)
		}
		returned(t, p)
	}
}

// A link's own bytes do not count as those of others, and a check goes on when another one of its link begins.
func TestSampleOfAnotherLink(t *testing.T) {
	p := &blocks{}
	s := spots{}
	begin := func(attempt uint32, link int8, start int64) {
		r := segment.Range{Start: start, End: start + 500}
		s.begin(transfer.Action{Link: link, Attempt: attempt, Range: r, Prefix: 100, Tail: -1})
	}
	take := func(attempt uint32, link int8, start int64, kept int64) []*sample {
		b := lend(p, start, 0, 100)
		defer b.b.free()
		return s.compare(attempt, link, b, segment.Range{Start: start, End: start + kept})
	}
	begin(1, 0, 1000)
	if done := take(1, 0, 1000, 0); done != nil {
		t.Errorf("%+v", done)
	}
	if done := take(2, 0, 1000, 100); done != nil {
		t.Errorf("the link's own bytes: %+v", done)
	}
	begin(3, 0, 2000)
	if done := take(4, 1, 1000, 100); len(done) != 1 || done[0].attempt != 1 {
		t.Errorf("of the check before: %+v", done)
	}
	begin(5, 1, 2000)
	take(3, 0, 2000, 0)
	if done := take(5, 1, 2000, 0); done != nil {
		t.Errorf("prefixes are not compared with each other: %+v", done)
	}
	if done := take(6, 2, 2000, 100); len(done) != 2 {
		t.Errorf("%d of two checks are through", len(done))
	}
}

// TestTails: for each link, exactly the bytes that the machine names are kept.
func TestTails(t *testing.T) {
	const most = 64
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 6))
		p := &blocks{}
		s := spots{}
		tails := [2]segment.Range{}
		for range 50 {
			link := int8(r.IntN(2))
			start := r.Int64N(10_000)
			if r.IntN(4) > 0 {
				start = tails[link].End
			}
			prefix, surplus := int64(r.IntN(3)*r.IntN(20)), int64(r.IntN(3)*r.IntN(20))
			keep := segment.Range{Start: start + prefix, End: start + prefix + r.Int64N(100)}
			was := tails[link]
			switch {
			case r.IntN(10) == 0:
				was = segment.Range{} // no check is needed anymore
			case keep.Empty():
			case keep.Start == was.End:
				was = segment.Range{Start: max(was.Start, keep.End-most), End: keep.End}
			default:
				was = segment.Range{Start: max(keep.Start, keep.End-most), End: keep.End}
			}
			tails[link] = was
			b := lend(p, start, r.IntN(50), int(prefix+keep.Len()+surplus))
			s.keep(link, b, transfer.Received{Keep: keep, Tail: was})
			b.b.free()
			if got := s.tails[link]; int64(len(got.b)) != was.Len() || got.end != was.End {
				t.Fatalf("seed %d: %d bytes up to %d, want %v", seed, len(got.b), got.end, was)
			}
			for i, c := range s.tails[link].b {
				if c != at(was.Start+int64(i)) {
					t.Fatalf("seed %d: byte %d of %v is wrong", seed, i, was)
				}
			}
		}
		returned(t, p)
	}
}

// TestStoreRemove removes random ranges and compares with a plain array.
func TestStoreRemove(t *testing.T) {
	const size = 500
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 8))
		p := &blocks{}
		var s store
		var have [size]bool
		for range 30 {
			from := r.Int64N(size - 1)
			to := from + 1 + r.Int64N(min(100, size-from-1)+1)
			to = min(to, size)
			if r.IntN(3) > 0 {
				s.add(lend(p, from, r.IntN(100), int(to-from)), 0)
				for i := from; i < to; i++ {
					have[i] = true
				}
				continue
			}
			var n int64
			for i := from; i < to; i++ {
				if have[i] {
					n++
				}
				have[i] = false
			}
			if got := s.remove(segment.Range{Start: from, End: to}); got != n {
				t.Fatalf("seed %d: %d bytes removed, want %d", seed, got, n)
			}
		}
		var got [size]bool
		last := int64(-1)
		for _, q := range s.p {
			if q.off < last {
				t.Fatalf("seed %d: pieces out of order at %d", seed, q.off)
			}
			last = q.end()
			for i, c := range q.bytes() {
				if c != at(q.off+int64(i)) {
					t.Fatalf("seed %d: byte %d is wrong", seed, q.off+int64(i))
				}
				got[q.off+int64(i)] = true
			}
		}
		if got != have {
			t.Fatalf("seed %d: the store holds others than were left", seed)
		}
		s.clear()
		returned(t, p)
	}
}

// memory is a file of a test.
type memory []byte

func (m memory) WriteAt(b []byte, off int64) (int, error) { return copy(m[off:], b), nil }

// writer is a transfer that is written as its bytes arrive, without a loop: the test is the loop.
type writer struct {
	t    *testing.T
	p    *blocks
	r    *run
	file memory
	told []int64 // prefixes
	done chan int64
	err  error
}

const writerStart = 5000 // offset of the content's first byte

func newWriter(t *testing.T) *writer {
	w := &writer{t: t, p: &blocks{}, file: make(memory, 1000), done: make(chan int64)}
	w.r = &run{out: make(chan work, 1), wrote: make(chan wrote, 1), left: make(chan struct{}), cancel: func() {}, sound: transfer.Unknown}
	w.r.delivery.given = writerStart
	go func() {
		body := &transferBody{r: w.r, start: writerStart}
		n, err := body.WriteAtTo(w.file, func(_, prefix int64) { w.told = append(w.told, prefix) })
		w.err = err
		w.done <- n
	}()
	if first := <-w.r.wrote; !first.begin {
		t.Fatal("the writer does not begin")
	}
	w.r.delivery.beginScatter(writerStart, writerStart)
	return w
}

// keep delivers [from, to) of the content, each byte increased by lie.
func (w *writer) keep(from, to int64, lie byte) {
	b := lend(w.p, writerStart+from, 0, int(to-from))
	for i := range b.bytes() {
		b.bytes()[i] += lie
	}
	w.r.delivery.keep(b, segment.Range{Start: b.off, End: b.end()})
}

func (w *writer) forget(from, to int64) {
	w.r.delivery.forget(segment.Range{Start: writerStart + from, End: writerStart + to})
}

// gone fails the test unless the first n bytes of the content cannot be taken back.
func (w *writer) gone(n int64) {
	w.t.Helper()
	if got := w.r.delivery.gone() - writerStart; got != n {
		w.t.Errorf("%d bytes are gone, want %d", got, n)
	}
}

// hand gives the writer everything there is, and returns its report.
func (w *writer) hand() wrote {
	w.r.out <- w.r.delivery.batch(0)
	return <-w.r.wrote
}

// report handles a report, which must advance the next offset by n bytes.
func (w *writer) report(of wrote, n int64) {
	w.t.Helper()
	if got := w.r.delivery.wrote(of.ranges); got != n {
		w.t.Errorf("the next offset moves by %d, want %d", got, n)
	}
}

// end ends the transfer and returns how many bytes it reports as correct, which are compared.
func (w *writer) end(err error) int64 {
	w.t.Helper()
	w.r.failed = err
	close(w.r.out)
	n := <-w.done
	if !errors.Is(w.err, err) {
		w.t.Errorf("%v, want %v", w.err, err)
	}
	for i, c := range w.file[:n] {
		if c != at(writerStart+int64(i)) {
			w.t.Errorf("byte %d of %d is wrong", i, n)
			break
		}
	}
	w.r.delivery.store.clear()
	returned(w.t, w.p)
	return n
}

func TestForget(t *testing.T) {
	t.Run("R210 what the writer does not have", func(t *testing.T) {
		w := newWriter(t)
		w.keep(0, 100, 0)
		w.keep(200, 300, 1)
		w.gone(0)
		w.forget(200, 300)
		w.report(w.hand(), 100)
		w.gone(100)
		w.keep(100, 300, 0)
		w.report(w.hand(), 200)
		if n := w.end(nil); n != 300 || w.r.delivery.scatter.held != 0 {
			t.Errorf("%d bytes, %d held", n, w.r.delivery.scatter.held)
		}
	})
	t.Run("R210 what it has written", func(t *testing.T) {
		w := newWriter(t)
		w.keep(200, 300, 1)
		w.report(w.hand(), 0)
		w.gone(0)
		w.forget(200, 300)
		w.keep(0, 200, 0) // up to the bytes that are wrong
		w.report(w.hand(), 200)
		if p := w.told[len(w.told)-1]; p != 200 {
			t.Errorf("%d bytes are said to be right", p)
		}
		w.gone(200)
		w.keep(200, 300, 0)
		w.report(w.hand(), 100)
		if n := w.end(nil); n != 300 || w.r.delivery.scatter.held != 0 {
			t.Errorf("%d bytes, %d held", n, w.r.delivery.scatter.held)
		}
	})
	t.Run("R210 what it is writing", func(t *testing.T) {
		w := newWriter(t)
		w.keep(200, 300, 1)
		report := w.hand()
		w.forget(200, 300)
		w.keep(200, 250, 0)
		w.keep(0, 200, 0)
		w.report(report, 0)
		w.report(w.hand(), 250)
		if !slices.Equal(w.told, []int64{0, 250}) {
			t.Errorf("told %v", w.told)
		}
		if n := w.end(nil); n != 250 || w.r.delivery.scatter.held != 0 {
			t.Errorf("%d bytes, %d held", n, w.r.delivery.scatter.held)
		}
	})
	t.Run("R210 a transfer that failed keeps only what can be relied on", func(t *testing.T) {
		w := newWriter(t)
		w.keep(0, 100, 0)
		w.keep(100, 300, 1)
		w.report(w.hand(), 300)
		w.gone(300)
		w.r.sound = writerStart + 100
		if n := w.end(errDiffers); n != 100 {
			t.Errorf("%d bytes are said to be right", n)
		}
	})
	t.Run("a writer that has written everything gets nothing", func(t *testing.T) {
		p := &blocks{}
		d := &delivery{}
		d.keep(lend(p, 0, 0, 100), segment.Range{End: 100})
		freeAll(d.batch(100).pieces) // in order
		d.beginScatter(0, 0)
		d.wrote([]segment.Range{{End: 100}})
		if w := d.batch(0); w.pieces != nil { // else it would be woken forever
			t.Errorf("%+v", w)
		}
		returned(t, p)
	})
	t.Run("in order", func(t *testing.T) {
		p := &blocks{}
		d := &delivery{given: 50}
		keep := func(from, to int64) {
			d.keep(lend(p, from, 0, int(to-from)), segment.Range{Start: from, End: to})
		}
		keep(50, 100)
		keep(150, 200)
		w := d.batch(100)
		if d.gone() != 100 || len(w.pieces) != 1 {
			t.Errorf("%d are gone, %+v", d.gone(), w)
		}
		freeAll(w.pieces)
		d.writing = false
		d.forget(segment.Range{Start: 150, End: 200})
		if w := d.batch(100); w.pieces != nil {
			t.Errorf("%+v", w)
		}
		keep(100, 200)
		w = d.batch(200)
		var b []byte
		for _, q := range w.pieces {
			b = append(b, q.bytes()...)
		}
		freeAll(w.pieces)
		want := lend(p, 100, 0, 100)
		if !bytes.Equal(b, want.bytes()) {
			t.Error("other bytes")
		}
		want.b.free()
		returned(t, p)
	})
}

// witness is an observer that remembers failed spot checks and counts bytes.
type witness struct {
	mu    sync.Mutex
	left  []string // links
	bytes map[string]int64
	waste int64
}

// Observe implements Observer.
func (w *witness) Observe(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind {
	case EventSpotCheckFailed:
		w.left = append(w.left, e.Link)
	case EventReceived:
		w.bytes[e.Link] += e.Bytes
		w.waste += e.Waste
	}
}

// TestSpotCheck: an origin has another object under the same headers over one link. The client gets the object of the link whose
// bytes arrived first, and nothing of the other one.
func TestSpotCheck(t *testing.T) {
	for name, get := range map[string]func(*testing.T, *Response) []byte{
		"R210 in order": func(t *testing.T, resp *Response) []byte {
			b, err := io.ReadAll(struct{ io.Reader }{resp.Body})
			if err != nil {
				t.Error(err)
			}
			return b
		},
		"R210 as the bytes come": func(t *testing.T, resp *Response) []byte {
			m := make(memory, resp.ContentLength)
			n, err := resp.Body.WriteAtTo(m, nil)
			if err != nil {
				t.Error(err)
			}
			return m[:n]
		},
	} {
		for _, liar := range []string{"", "b"} {
			t.Run(name+", lies over "+liar, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const addr = "mirror.example:80"
					w, seen, said := newWorld(), &witness{bytes: map[string]int64{}}, &strings.Builder{}
					w.lies[addr] = liar
					e := newWorldEngine(t, w, func(c *Config) {
						c.Observers, c.Scheduler = []Observer{seen}, scheduler("confluence")
						c.Log = slog.New(slog.NewTextHandler(said, nil))
					})
					resp, err := e.Get(t.Context(), &Request{
						Target: Target{Scheme: "http", Host: addr, Addr: addr, Path: "/secret"}, Header: http.Header{},
					})
					if err != nil {
						t.Fatal(err)
					}
					b := get(t, resp)
					if int64(len(b)) != worldSize {
						t.Errorf("%d bytes", len(b))
					}
					for i, c := range b {
						if c != at(int64(i)) {
							t.Errorf("byte %d is wrong", i)
							break
						}
					}
					resp.Body.Close()
					synctest.Wait()
					seen.mu.Lock()
					defer seen.mu.Unlock()
					if seen.bytes["a"] == 0 || seen.bytes["b"] == 0 {
						t.Fatalf("both links must bring something: %v", seen.bytes)
					}
					warned := strings.Contains(said.String(), "level=WARN") && strings.Contains(said.String(), "link=b")
					switch {
					case liar == "" && (len(seen.left) > 0 || warned || seen.waste > worldSize/2000+96<<10): // the end is stolen, and the reserve kept alive
						t.Errorf("false alarm: %v left, %d bytes of waste\n%s", seen.left, seen.waste, said)
					case liar != "" && (!slices.Equal(seen.left, []string{liar}) || !warned):
						t.Errorf("%v left\n%s", seen.left, said)
					case strings.Contains(said.String(), "secret"), strings.Contains(said.String(), "mirror"):
						t.Errorf("the log names the object: %s", said)
					}
				})
			})
		}
	}
}
