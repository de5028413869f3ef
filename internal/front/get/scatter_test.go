package get

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// writer writes an object to a .part in random pieces, in random order, and tracks which bytes are there.
type writer struct {
	*rig
	rand   *rand.Rand
	o      origintest.Object
	part   *part
	pieces [][2]int64 // missing pieces
	there  []bool
	synced int64 // bytes without a gap at the last sync
}

// newWriter opens object.part, and resumes it if it exists. synced is the number of its bytes that were synced before.
func (r *rig) newWriter(random *rand.Rand, o origintest.Object, options Options, synced int64) *writer {
	r.Helper()
	options.Dir, options.Partial = r.dir, r.store()
	d := newDownload(r.Context(), &Getter{Options: options}, NewMeter())
	out, err := d.open("object")
	if err != nil {
		r.Fatal(err)
	}
	w := &writer{rig: r, rand: random, o: o, part: out.(*part), there: make([]bool, o.Size)}
	have, of := w.part.have()
	if of == nil {
		if err := w.part.begin(version{validator: o.ETag, size: o.Size, mark: "m"}); err != nil {
			r.Fatal(err)
		}
	}
	for i := range have {
		w.there[i] = true
	}
	w.synced = min(synced, have)
	for at := have; at < o.Size; {
		n := min(1+random.Int64N(o.Size/8), o.Size-at)
		w.pieces = append(w.pieces, [2]int64{at, at + n})
		at += n
	}
	return w
}

// prefix returns how many bytes are there from the beginning without a gap.
func (w *writer) prefix() (n int64) {
	for n < w.o.Size && w.there[n] {
		n++
	}
	return n
}

// step performs one operation of a download: write, report progress, or sync.
func (w *writer) step() {
	w.Helper()
	var err error
	switch k := w.rand.IntN(8); {
	case k == 0:
		w.synced = w.part.size // the reported size
		w.part.claim.Sync()
	case k < 4:
		err = w.part.advance(w.prefix())
	case len(w.pieces) > 0:
		i := w.rand.IntN(min(4, len(w.pieces)))
		p := w.pieces[i]
		w.pieces = append(w.pieces[:i:i], w.pieces[i+1:]...)
		_, err = w.part.WriteAt(w.o.Bytes(p[0], p[1]), p[0])
		for at := p[0]; at < p[1]; at++ {
			w.there[at] = true
		}
	}
	if err != nil {
		w.Fatal(err)
	}
}

// check fails the test unless the claim would be true after a kill of the process now, and after a power failure now.
func (w *writer) check() {
	w.Helper()
	found, err := w.store().Find(w.part.f)
	b, rerr := os.ReadFile(w.path("object.part"))
	if err = errors.Join(err, rerr); err != nil {
		w.Fatal(err)
	}
	if n := found.Have; n < w.part.size || n > w.prefix() || w.o.Mismatch(b[:n], 0) >= 0 {
		w.Fatalf("%d bytes are trusted; %d were told, %d are there, the first wrong one is %d", n, w.part.size, w.prefix(), w.o.Mismatch(b[:n], 0))
	}
	if _, c := w.claims(); number(c["synced"]) != w.synced {
		w.Fatalf("%v bytes are trusted after a power failure, %d were synced", c["synced"], w.synced)
	}
}

// kill leaves everything as it is.
func (w *writer) kill() {
	w.part.unclaim()
	w.part.f.Close()
}

// TestKilled: whenever and however a download ends, its claim does not count missing bytes, and a resume completes the object.
func TestKilled(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			o := origintest.Object{Size: 1 + random.Int64N(50_000)}.Defaults()
			r := &rig{T: t, dir: t.TempDir()}
			var options Options
			if random.IntN(2) == 0 {
				options.Checksum = checksum(t, fmt.Sprintf("sha256:%x", o.SHA256()))
			}
			var synced int64
			for range 3 {
				w := r.newWriter(random, o, options, synced)
				options.Resume = true
				w.check()
				for range random.IntN(25) {
					w.step()
					w.check()
				}
				synced = w.synced
				switch random.IntN(3) {
				case 0:
					w.kill()
				case 1: // a power failure: bytes that were not synced are zeros or missing
					w.kill()
					b, err := os.ReadFile(r.path("object.part"))
					if err != nil {
						t.Fatal(err)
					}
					clear(b[min(w.synced, int64(len(b))):])
					r.write("object.part", b)
					r.edit(func(c map[string]any) { c["boot"] = "another" })
				default: // an orderly end
					told := w.part.size
					w.part.abandon()
					st, err := os.Stat(r.path("object.part"))
					if told == 0 {
						r.holds()
						synced = 0
						break
					}
					prefix, c := r.claims()
					if err != nil || st.Size() != told || prefix != told || number(c["synced"]) != told {
						t.Fatalf("%d bytes, %d, %v, %v; want %d", st.Size(), prefix, c, err, told)
					}
					synced = told
				}
			}
			w := r.newWriter(random, o, options, synced)
			w.rand = rand.New(rand.NewPCG(seed, 2))
			for len(w.pieces) > 0 || w.part.size < o.Size {
				w.step()
			}
			sum, err := w.part.complete()
			if err != nil || options.Checksum != nil && sum != fmt.Sprintf("sha256:%x", o.SHA256()) {
				t.Fatalf("%q, %v", sum, err)
			}
			r.isObject("object", o)
		})
	}
}

// TestChecksumCatchesUp: the checksum covers the bytes without a gap. When a gap closes, it catches up while the rest arrives, so
// that the file need not be read again at the end.
func TestChecksumCatchesUp(t *testing.T) {
	const gap, rest = 3 * hashStep, 4 * hashStep
	o := origintest.Object{Size: gap + rest}.Defaults()
	r := &rig{T: t, dir: t.TempDir()}
	w := r.newWriter(rand.New(rand.NewPCG(1, 1)), o, Options{Checksum: sumOf(t, o)}, 0)
	write := func(from, to, prefix int64) {
		if _, err := w.part.WriteAt(o.Bytes(from, to), from); err != nil {
			t.Fatal(err)
		}
		if err := w.part.advance(prefix); err != nil {
			t.Fatal(err)
		}
	}
	const step = hashStep / 8
	for at := int64(step); at < gap; at += step {
		write(at, at+step, 0)
	}
	if w.part.hashed != 0 {
		t.Errorf("%d bytes are hashed before the first one came", w.part.hashed)
	}
	write(0, step, gap)
	if n := w.part.hashed; n > step+hashStep {
		t.Errorf("%d bytes are hashed at once", n)
	}
	for at := int64(gap); at < o.Size; at += step {
		write(at, at+step, at+step)
	}
	if w.part.hashed != o.Size {
		t.Errorf("%d of %d bytes are hashed before the end", w.part.hashed, o.Size)
	}
	if _, err := w.part.complete(); err != nil {
		t.Fatal(err)
	}
	r.isObject("object", o)
}

// TestResumeWithGaps: while there are gaps, one download over two links is stopped, and at the same moment a similar one is killed.
// Both resume at the start of their gap, over two links.
func TestResumeWithGaps(t *testing.T) {
	const size = 4 * mid
	s := origintest.New(t, origintest.Object{Size: size}, origintest.RateLimit(paced))
	r := newRig(t, toNodes(s), nil)
	killed := &rig{T: t, dir: t.TempDir(), transport: r.transport}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	m := NewMeter()
	go func() {
		g := &Getter{Transport: r.transport, Options: Options{Dir: r.dir, Partial: r.store()}}
		_, err := g.Get(ctx, s.URL(), m)
		done <- err
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if _, have, _ := m.Now(); have > mid && have > m.Prefix()+threshold {
			break
		}
		select {
		case err := <-done:
			t.Fatalf("there never was a gap: %v", err)
		case <-tick.C:
		}
	}
	prefix, _ := r.claims() // before the .part, which may be ahead
	b, err := os.ReadFile(r.path("object.part"))
	if err != nil {
		t.Fatal(err)
	}
	killed.own("object.part", b, objectOf(s))
	killed.count(prefix)
	cancel()
	r.fails(<-done, Canceled, "--resume")
	for name, r := range map[string]*rig{"stopped": r, "killed": killed} {
		kept, _ := r.claims()
		b, err := os.ReadFile(r.path("object.part"))
		if err != nil {
			t.Fatal(err)
		}
		if kept == 0 || s.Object().Mismatch(b[:kept], 0) >= 0 || (kept < int64(len(b))) != (name == "killed") {
			t.Errorf("%s: %d of %d bytes are kept, the first wrong one is %d", name, kept, len(b), s.Object().Mismatch(b[:kept], 0))
		}
		res, err := r.get(t.Context(), s.URL(), Options{Resume: true, Checksum: sumOf(t, s.Object())})
		if err != nil || res.Resumed != kept {
			t.Fatalf("%s: %+v, %v; %d bytes were kept", name, res, err, kept)
		}
		r.bothCarried(res)
		r.isObject("object", s.Object())
	}
}

// TestInOrder: a pipe gets the bytes in order, although two links deliver them.
func TestInOrder(t *testing.T) {
	s := origintest.New(t, origintest.Object{Size: mid}, origintest.RateLimit(paced))
	r := newRig(t, toNodes(s), nil)
	pipe, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	got := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(pipe)
		got <- b
	}()
	res, err := r.get(t.Context(), s.URL(), Options{Output: "-", Stdout: to, Checksum: sumOf(t, s.Object())})
	to.Close()
	if b := <-got; err != nil || len(b) != mid || s.Object().Mismatch(b, 0) >= 0 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	r.bothCarried(res)
}
