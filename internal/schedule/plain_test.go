package schedule_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/schedule"
	"github.com/tributary-http/tributary/internal/segment"
)

func equalLinks(n int) (ls []schedule.Link) {
	for range n {
		ls = append(ls, link(1*mb, 1*mb, 20*ms))
	}
	return ls
}

// sources.md section 2.1: "naive: size_x = P/n, once".
func TestNaive(t *testing.T) {
	t.Run("P/n for each link, every byte once", func(t *testing.T) {
		for n := 1; n <= 4; n++ {
			for _, size := range []int64{1, 3, 100, 250*mb + 1} {
				v := newView(size, huge, equalLinks(n)...)
				ds, last := drain(t, &schedule.Naive{}, v)
				expect(t, last, schedule.Decision{})
				if len(v.Free) > 0 || len(ds) > n {
					t.Errorf("%d bytes on %d links: %d requests, free %v", size, n, len(ds), v.Free)
				}
				for _, d := range ds {
					if d := d.Range.Len() - size/int64(n); d < 0 || d > 1 {
						t.Errorf("%d bytes on %d links: one gets %d too many", size, n, d)
					}
				}
			}
		}
	})
	t.Run("links that are not usable at the start have no share", func(t *testing.T) {
		v := newView(100, huge, equalLinks(3)...)
		v.Links[1].Usable = false
		ds, _ := drain(t, &schedule.Naive{}, v)
		sameDecisions(t, ds, fetch(0, rng(0, 50), schedule.WholeRange), fetch(2, rng(50, 100), schedule.WholeRange))
	})
	t.Run("a window of the object is split, not the whole", func(t *testing.T) {
		v := newView(1000, huge, equalLinks(2)...)
		v.Object, v.Head, v.Free = rng(600, 1000), 600, []segment.Range{rng(600, 1000)}
		ds, _ := drain(t, &schedule.Naive{}, v)
		sameDecisions(t, ds, fetch(0, rng(600, 800), schedule.WholeRange), fetch(1, rng(800, 1000), schedule.WholeRange))
	})
	t.Run("what a lost link leaves goes to one that is idle", func(t *testing.T) {
		s := &schedule.Naive{}
		v := newView(100, huge, equalLinks(2)...)
		drain(t, s, v)
		v.Free = []segment.Range{rng(70, 100)}
		v.Attempts, v.Links[1] = v.Attempts[:1], schedule.Link{}
		expect(t, s.Next(start, v), schedule.Decision{}) // link 0 is busy: nothing is corrected
		v.Attempts, v.Links[0] = nil, link(1*mb, 1*mb, 20*ms)
		expect(t, s.Next(start, v), fetch(0, rng(70, 100), schedule.WholeRange))
	})
	t.Run("nothing begins beyond the window", func(t *testing.T) {
		v := newView(100, 50, equalLinks(2)...)
		ds, _ := drain(t, &schedule.Naive{}, v)
		sameDecisions(t, ds, fetch(0, rng(0, 50), schedule.WholeRange))
		v.Limit = 51
		expect(t, (&schedule.Naive{}).Next(start, v), fetch(1, rng(50, 100), schedule.WholeRange))
	})
}

func TestSingle(t *testing.T) {
	t.Run("everything on the fastest link", func(t *testing.T) {
		v := newView(100*mb, 1*mib, link(1*mb, 1*mb, 20*ms), link(2*mb, 2*mb, 20*ms))
		ds, last := drain(t, &schedule.Single{}, v)
		sameDecisions(t, ds, fetch(1, v.Object, schedule.WholeRange))
		expect(t, last, schedule.Decision{})
	})
	t.Run("of equal links the first", func(t *testing.T) {
		v := newView(100, huge, equalLinks(2)...)
		expect(t, (&schedule.Single{}).Next(start, v), fetch(0, v.Object, schedule.WholeRange))
	})
	t.Run("it stays where the first request went", func(t *testing.T) {
		s := &schedule.Single{}
		v := newView(100*mb, huge, link(1*mb, 1*mb, 20*ms), link(2*mb, 2*mb, 20*ms))
		ask(v, 0, rng(0, 1*mb), 0)
		expect(t, s.Next(start, v), fetch(0, rng(1*mb, 100*mb), schedule.WholeRange))
		v.Attempts = nil
		v.Links[0].CanAsk = false
		expect(t, s.Next(start, v), schedule.Decision{}) // busy is not lost
	})
	t.Run("it moves when the link is lost, and not back", func(t *testing.T) {
		s := &schedule.Single{}
		v := newView(100*mb, huge, link(2*mb, 2*mb, 20*ms), link(1*mb, 1*mb, 20*ms))
		drain(t, s, v)
		v.Attempts = nil
		v.Free = []segment.Range{rng(40*mb, 100*mb)}
		v.Links[0].Usable = false
		expect(t, s.Next(start, v), fetch(1, rng(40*mb, 100*mb), schedule.WholeRange))
		v.Links[0].Usable = true
		expect(t, s.Next(start, v), fetch(1, rng(40*mb, 100*mb), schedule.WholeRange))
	})
	t.Run("nothing begins beyond the window", func(t *testing.T) {
		v := newView(100, 50, equalLinks(1)...)
		take(v, rng(0, 50))
		expect(t, (&schedule.Single{}).Next(start, v), schedule.Decision{})
	})
}

func TestRegistry(t *testing.T) {
	names := schedule.Names()
	if !slices.IsSorted(names) || !slices.Contains(names, schedule.Default) {
		t.Errorf("names %v, default %q", names, schedule.Default)
	}
	for _, n := range names {
		a, b := make2(t, n)
		state := reflect.TypeOf(a).Elem().Size() > 0 // without any, they may well be one
		if a == nil || state && a == b {
			t.Errorf("%s: two transfers share a scheduler", n)
		}
	}
	_, err := schedule.New("alg4")
	if err == nil || !strings.Contains(err.Error(), `"alg4"`) || !strings.Contains(err.Error(), schedule.Default) {
		t.Errorf("the error does not say what to use: %v", err)
	}
}
