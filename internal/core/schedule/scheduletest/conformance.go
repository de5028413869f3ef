package scheduletest

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// Conformance tests the named schedulers. create returns a new scheduler on each call.
func Conformance(t *testing.T, names []string, create func(name string) (schedule.Scheduler, error)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			two := func() (a, b schedule.Scheduler) {
				a, err := create(name)
				if err != nil {
					t.Fatal(err)
				}
				b, _ = create(name)
				return a, b
			}
			t.Run("own state", func(t *testing.T) {
				a, b := two()
				state := reflect.TypeOf(a).Elem().Size() > 0 // schedulers without state may share an address
				if a == nil || state && a == b {
					t.Error("two transfers share a scheduler")
				}
			})
			t.Run("lawful", func(t *testing.T) { lawful(t, two) })
			t.Run("never stuck", func(t *testing.T) { neverStuck(t, two) })
			t.Run("nothing usable", func(t *testing.T) { nothingUsable(t, two) })
			t.Run("all fetched", func(t *testing.T) { allFetched(t, two) })
			t.Run("no allocations", func(t *testing.T) {
				for what, v := range Costly() {
					s, _ := two()
					s.Next(Start, v) // Naive splits the object once
					if n := testing.AllocsPerRun(100, func() { s.Next(Start, v) }); n != 0 {
						t.Errorf("%s: %g allocations", what, n)
					}
				}
			})
		})
	}
}

// lawful calls a scheduler with random views, and again after each decision, as the machine does.
func lawful(t *testing.T, two func() (a, b schedule.Scheduler)) {
	moved := 0
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 4))
		v := RandomView(rnd)
		depth := 1 + rnd.IntN(8)
		a, b := two()
		for n := 0; ; n++ {
			before := Clone(v)
			d := a.Next(Start, v)
			if !reflect.DeepEqual(before, v) {
				t.Fatalf("seed %d: the view was changed", seed)
			}
			if e := b.Next(Start, before); e != d {
				t.Fatalf("seed %d: the same calls, other answers:\n%s\n%s", seed, Show(d), Show(e))
			}
			if wrong := Lawful(v, d); wrong != "" {
				t.Fatalf("seed %d: %s: %s\nlimit %d free %v\n%+v", seed, wrong, Show(d), v.Limit, v.Free, v.Attempts)
			}
			if d.Do == schedule.Wait {
				if !d.Until.IsZero() && !d.Until.After(Start) {
					t.Fatalf("seed %d: waits until %v ago", seed, Start.Sub(d.Until))
				}
				break
			}
			if n > 100 {
				t.Fatalf("seed %d: does not come to rest: %s", seed, Show(d))
			}
			Apply(v, d)
			l := &v.Links[d.Link]
			l.CanAsk, l.Blocked = l.Running < depth, false
			moved++
		}
	}
	if moved < 500 {
		t.Errorf("only %d requests in 3000 views", moved)
	}
}

// neverStuck checks that, when nothing runs and the next offset is free, the scheduler requests it on a link that can
// be asked, however small the window is. Otherwise no event would ever call the scheduler again.
func neverStuck(t *testing.T, two func() (a, b schedule.Scheduler)) {
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		v := RandomView(rnd)
		for i := range v.Links {
			l := &v.Links[i]
			l.Running, l.Asked, l.Blocked, l.CanAsk = 0, 0, false, true
		}
		v.Links[rnd.IntN(len(v.Links))].Usable = true
		v.Attempts = nil
		v.Window = int64(1 + rnd.IntN(1<<rnd.IntN(24)))
		v.Limit = min(v.Offset+v.Window, v.Object.End)
		var free segment.Set
		for _, f := range append(v.Free, Range(v.Offset, min(v.Offset+1+int64(rnd.IntN(mib)), v.Object.End))) {
			free.Add(f)
		}
		v.Free = free.Ranges()
		s, _ := two()
		d := s.Next(Start, v)
		if wrong := Lawful(v, d); wrong != "" || d.Do != schedule.Fetch || d.Range.Start != v.Offset {
			t.Fatalf("seed %d: window %d, free %v, links %+v: %s %s", seed, v.Window, v.Free[0], v.Links, wrong,
				Show(d))
		}
	}
}

// nothingUsable checks that a scheduler waits while every link is lost, and resumes when one is back.
func nothingUsable(t *testing.T, two func() (a, b schedule.Scheduler)) {
	s, _ := two()
	v := NewView(10e6, 1<<40, Link(0, 0, 0), Link(1e6, 1e6, 20e6))
	v.Links[0].Usable, v.Links[1].Usable = false, false
	if d := s.Next(Start, v); d.Do != schedule.Wait || !d.Until.IsZero() {
		t.Error(Show(d))
	}
	v.Links[1].Usable = true
	if d := s.Next(Start, v); d.Do != schedule.Fetch || d.Link != 1 || d.Range.Start != 0 {
		t.Error(Show(d))
	}
}

// allFetched checks that a scheduler waits when nothing is free and nothing runs.
func allFetched(t *testing.T, two func() (a, b schedule.Scheduler)) {
	s, _ := two()
	v := NewView(10e6, 1<<40, Link(1e6, 1e6, 20e6), Link(1e6, 1e6, 20e6))
	Take(v, v.Object)
	if d := s.Next(Start, v); d.Do != schedule.Wait || !d.Until.IsZero() {
		t.Error(Show(d))
	}
}

// Benchmark measures the named schedulers on the views of Costly.
func Benchmark(b *testing.B, names []string, create func(name string) (schedule.Scheduler, error)) {
	for _, name := range names {
		for _, what := range []string{"ask", "busy", "idle", "tail"} {
			v := Costly()[what]
			b.Run(name+"/"+what, func(b *testing.B) {
				s, err := create(name)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for b.Loop() {
					s.Next(Start, v)
				}
			})
		}
	}
}
