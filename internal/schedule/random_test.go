package schedule_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/schedule"
	"github.com/tributary-http/tributary/internal/segment"
)

// randomView is the view of a transfer somewhere in its course.
func randomView(rnd *rand.Rand) *schedule.View {
	links := make([]schedule.Link, 1+rnd.IntN(4))
	for i := range links {
		l := &links[i]
		*l = schedule.Link{Usable: rnd.IntN(5) > 0, CanAsk: rnd.IntN(5) > 0}
		if rnd.IntN(4) > 0 {
			l.Rate = float64(1+rnd.IntN(1000)) * 0.1 * mbit
			l.Peak = l.Rate * (0.5 + rnd.Float64())
		}
		l.RTT = time.Duration(rnd.IntN(300)) * ms
		l.Suspect = !l.Usable && rnd.IntN(2) == 0
	}
	size := int64(1 + rnd.IntN(64*mib))
	v := newView(size, int64(1+rnd.IntN(16*mib)), links...)
	v.Head = int64(rnd.IntN(int(size)))
	v.Limit = min(v.Head+v.Window, size)
	take(v, rng(0, v.Head))
	for at := v.Head; at < size; {
		r := rng(at, min(size, at+1+int64(rnd.IntN(1+rnd.IntN(8*mib)))))
		at = r.End
		switch rnd.IntN(4) {
		case 0: // free
		case 1:
			take(v, r) // received
		default:
			a := ask(v, int8(rnd.IntN(len(links))), r, r.Start+int64(rnd.IntN(int(r.Len()))))
			a.Headed = a.Headed || rnd.IntN(2) == 0
			a.Cut, a.Hedge = rnd.IntN(8) == 0, rnd.IntN(8) == 0
			a.Silent = links[a.Link].Suspect
			a.Blocked = a.Cursor >= v.Limit
		}
	}
	rnd.Shuffle(len(v.Attempts), func(i, j int) { v.Attempts[i], v.Attempts[j] = v.Attempts[j], v.Attempts[i] })
	for i := range links {
		links[i].Blocked = links[i].Running > 0
	}
	for _, a := range v.Attempts {
		links[a.Link].Blocked = links[a.Link].Blocked && a.Blocked
	}
	return v
}

func clone(v *schedule.View) *schedule.View {
	c := *v
	c.Free, c.Attempts, c.Links = slices.Clone(v.Free), slices.Clone(v.Attempts), slices.Clone(v.Links)
	return &c
}

// TestEveryScheduler asks each scheduler about random views, and again after each answer, as the machine does.
func TestEveryScheduler(t *testing.T) {
	for _, name := range schedule.Names() {
		t.Run(name, func(t *testing.T) {
			moved := 0
			for seed := range uint64(3000) {
				rnd := rand.New(rand.NewPCG(seed, 4))
				v := randomView(rnd)
				depth := 1 + rnd.IntN(8)
				a, b := make2(t, name)
				for n := 0; ; n++ {
					before := clone(v)
					d := a.Next(start, v)
					if !reflect.DeepEqual(before, v) {
						t.Fatalf("seed %d: the view was changed", seed)
					}
					if e := b.Next(start, before); e != d {
						t.Fatalf("seed %d: the same calls, other answers:\n%s\n%s", seed, show(d), show(e))
					}
					if wrong := lawful(v, d); wrong != "" {
						t.Fatalf("seed %d: %s: %s\nlimit %d free %v\n%+v", seed, wrong, show(d), v.Limit, v.Free, v.Attempts)
					}
					if d.Do == schedule.Wait {
						if !d.Until.IsZero() && !d.Until.After(start) {
							t.Fatalf("seed %d: waits until %v ago", seed, start.Sub(d.Until))
						}
						break
					}
					if n > 100 {
						t.Fatalf("seed %d: does not come to rest: %s", seed, show(d))
					}
					apply(v, d)
					l := &v.Links[d.Link]
					l.CanAsk, l.Blocked = l.Running < depth, false
					moved++
				}
			}
			if moved < 500 {
				t.Errorf("only %d requests in 3000 views", moved)
			}
		})
	}
}

func make2(t *testing.T, name string) (a, b schedule.Scheduler) {
	t.Helper()
	a, err := schedule.New(name)
	if err != nil {
		t.Fatal(err)
	}
	b, _ = schedule.New(name)
	return a, b
}

// TestNothingUsable: with every link lost a scheduler waits, and begins again when one is back.
func TestNothingUsable(t *testing.T) {
	for _, name := range schedule.Names() {
		s, _ := make2(t, name)
		v := newView(10*mb, huge, link(0, 0, 0), link(mb, mb, 20*ms))
		v.Links[0].Usable, v.Links[1].Usable = false, false
		if d := s.Next(start, v); d.Do != schedule.Wait || !d.Until.IsZero() {
			t.Errorf("%s: %s", name, show(d))
		}
		v.Links[1].Usable = true
		if d := s.Next(start, v); d.Do != schedule.Fetch || d.Link != 1 || d.Range.Start != 0 {
			t.Errorf("%s: %s", name, show(d))
		}
	}
}

// TestAllFetched: nothing is free and nothing runs.
func TestAllFetched(t *testing.T) {
	for _, name := range schedule.Names() {
		s, _ := make2(t, name)
		v := newView(10*mb, huge, link(mb, mb, 20*ms), link(mb, mb, 20*ms))
		take(v, v.Object)
		if d := s.Next(start, v); d.Do != schedule.Wait || !d.Until.IsZero() {
			t.Errorf("%s: %s", name, show(d))
		}
	}
}

// TestNeverStuck: when nothing runs and the head is free, a link that can be asked is asked for it, however small the
// window: nobody else would ever call.
func TestNeverStuck(t *testing.T) {
	for _, name := range schedule.Names() {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3000) {
				rnd := rand.New(rand.NewPCG(seed, 6))
				v := randomView(rnd)
				for i := range v.Links {
					l := &v.Links[i]
					l.Running, l.Asked, l.Blocked, l.CanAsk = 0, 0, false, true
				}
				v.Links[rnd.IntN(len(v.Links))].Usable = true
				v.Attempts = nil
				v.Window = int64(1 + rnd.IntN(1<<rnd.IntN(24)))
				v.Limit = min(v.Head+v.Window, v.Object.End)
				var free segment.Set
				for _, f := range append(v.Free, rng(v.Head, min(v.Head+1+int64(rnd.IntN(1*mib)), v.Object.End))) {
					free.Add(f)
				}
				v.Free = free.Ranges()
				s, _ := make2(t, name)
				d := s.Next(start, v)
				if wrong := lawful(v, d); wrong != "" || d.Do != schedule.Fetch || d.Range.Start != v.Head {
					t.Fatalf("seed %d: window %d, free %v, links %+v: %s %s", seed, v.Window, v.Free[0], v.Links, wrong, show(d))
				}
			}
		})
	}
}
