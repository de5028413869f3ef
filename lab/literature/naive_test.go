package literature_test

import (
	"testing"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/lab/literature"
)

// TestNaive checks that size_x = P/n, once (Skjolden 2019 section 4.3.2).
func TestNaive(t *testing.T) {
	t.Run("P/n for each link, every byte once", func(t *testing.T) {
		for n := 1; n <= 4; n++ {
			for _, size := range []int64{1, 3, 100, 250*mb + 1} {
				v := newView(size, huge, equalLinks(n)...)
				ds, last := drain(t, &literature.Naive{}, v)
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
		ds, _ := drain(t, &literature.Naive{}, v)
		sameDecisions(t, ds, fetch(0, rng(0, 50), schedule.WholeRange), fetch(2, rng(50, 100), schedule.WholeRange))
	})
	t.Run("a window of the object is split, not the whole", func(t *testing.T) {
		v := newView(1000, huge, equalLinks(2)...)
		v.Object, v.Offset, v.Free = rng(600, 1000), 600, []segment.Range{rng(600, 1000)}
		ds, _ := drain(t, &literature.Naive{}, v)
		sameDecisions(t, ds, fetch(0, rng(600, 800), schedule.WholeRange), fetch(1, rng(800, 1000), schedule.WholeRange))
	})
	t.Run("what a lost link leaves goes to one that is idle", func(t *testing.T) {
		s := &literature.Naive{}
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
		ds, _ := drain(t, &literature.Naive{}, v)
		sameDecisions(t, ds, fetch(0, rng(0, 50), schedule.WholeRange))
		v.Limit = 51
		expect(t, (&literature.Naive{}).Next(start, v), fetch(1, rng(50, 100), schedule.WholeRange))
	})
}
