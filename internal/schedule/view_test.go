package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/schedule"
	"github.com/tributary-http/tributary/internal/segment"
)

const (
	kb   = 1e3 // the paper's units are decimal
	mb   = 1e6
	kib  = 1 << 10
	mib  = 1 << 20
	mbit = 1e6 / 8 // bytes per second
	ms   = time.Millisecond
	huge = 1 << 40 // a reorder window that is never full
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func rng(start, end int64) segment.Range { return segment.Range{Start: start, End: end} }

// link is a usable link without requests.
func link(rate, peak float64, rtt time.Duration) schedule.Link {
	return schedule.Link{Usable: true, CanAsk: true, Rate: rate, Peak: peak, RTT: rtt}
}

// newView is the view of a transfer of which nobody has asked for anything.
func newView(size, window int64, links ...schedule.Link) *schedule.View {
	return &schedule.View{
		Object: rng(0, size), Limit: min(size, window), Window: window, Free: []segment.Range{rng(0, size)}, Links: links,
	}
}

// take makes r not free.
func take(v *schedule.View, r segment.Range) {
	var free segment.Set
	for _, f := range v.Free {
		free.Add(f)
	}
	free.Remove(r)
	v.Free = free.Ranges()
}

// ask lets link i fetch r; it has come as far as cursor.
func ask(v *schedule.View, i int8, r segment.Range, cursor int64) *schedule.Attempt {
	take(v, r)
	v.Attempts = append(v.Attempts, schedule.Attempt{
		ID: uint32(len(v.Attempts) + 1), Link: i, Range: r, Cursor: cursor, Headed: cursor > r.Start,
	})
	v.Links[i].Running++
	v.Links[i].Asked += r.End - cursor
	return &v.Attempts[len(v.Attempts)-1]
}

// apply does what a decision says, as the machine does.
func apply(v *schedule.View, d schedule.Decision) {
	if d.From != 0 && !d.Hedge {
		find(v, d.From).Cut = true
	}
	ask(v, d.Link, d.Range, d.Range.Start)
}

func find(v *schedule.View, id uint32) *schedule.Attempt {
	for i := range v.Attempts {
		if v.Attempts[i].ID == id {
			return &v.Attempts[i]
		}
	}
	return nil
}

func fetch(i int8, r segment.Range, why schedule.Reason) schedule.Decision {
	return schedule.Decision{Do: schedule.Fetch, Link: i, Range: r, Why: why}
}

func expect(t *testing.T, got, want schedule.Decision) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", show(got), show(want))
	}
}

func show(d schedule.Decision) string {
	verb := []string{"wait", "fetch", "open"}[d.Do]
	return fmt.Sprintf("%s link %d %v from %d hedge %v until %v: %v", verb, d.Link, d.Range, d.From, d.Hedge, d.Until, d.Why)
}

// lawful says what is wrong with a decision, "" if nothing is.
func lawful(v *schedule.View, d schedule.Decision) string {
	if d.Do == schedule.Wait {
		return ""
	}
	if d.Do != schedule.Fetch {
		return "unknown verb"
	}
	if int(d.Link) < 0 || int(d.Link) >= len(v.Links) || !v.Links[d.Link].Usable || !v.Links[d.Link].CanAsk {
		return "the link may not be asked"
	}
	r := d.Range
	inside := func(o segment.Range) bool { return r.Start >= o.Start && r.End <= o.End }
	from := find(v, d.From)
	switch {
	case r.Empty():
		return "an empty range"
	case r.Start >= v.Limit:
		return "begins beyond the reorder window"
	case d.Why == schedule.NothingToDo:
		return "no reason"
	case d.From == 0 && (d.Hedge || !slices.ContainsFunc(v.Free, inside)):
		return "the range is not free"
	case d.From == 0:
		return ""
	case from == nil:
		return "from an attempt that does not run"
	case from.Link == d.Link:
		return "a link takes from itself"
	case !inside(rng(from.Cursor, from.Range.End)):
		return fmt.Sprintf("takes what attempt %d does not owe: [%d,%d)", from.ID, from.Cursor, from.Range.End)
	case !d.Hedge && (from.Cut || from.Hedge):
		return "cuts an attempt twice, or a second copy"
	}
	return ""
}

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
			if moved < 1000 {
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
