package schedule_test

import (
	"testing"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

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
