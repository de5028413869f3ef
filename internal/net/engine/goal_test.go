package engine

import (
	"testing"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/net/link"
)

// A request's goal takes precedence over that of the configuration, for this request.
func TestAsked(t *testing.T) {
	lte, err := energy.FindRadio("galaxy-s3/lte")
	if err != nil {
		t.Fatal(err)
	}
	plain := link.Link{Name: "lte", Metered: true, Presumed: lte, PerPercent: 10}
	frugal := link.Link{Name: "lte", Metered: true, Presumed: lte, PerPercent: 10, Frugal: true, Radio: lte}
	priced := link.Link{Name: "lte", Metered: true, Presumed: lte, PerPercent: 10, Cheapest: true}
	for _, l := range []link.Link{plain, frugal, priced} {
		if got := (&Request{}).asked(l); !got.Equal(l) {
			t.Errorf("without a goal: %+v", got)
		}
		if got := (&Request{Goal: schedule.Fastest}).asked(l); got.Frugal || got.Priced() {
			t.Errorf("fastest: %+v", got)
		}
		if got := (&Request{Goal: schedule.FrugalGoal}).asked(l); !got.Frugal || got.Radio != lte || got.Priced() {
			t.Errorf("frugal: %+v", got)
		}
		if got := (&Request{Goal: schedule.CheapestGoal}).asked(l); got.Frugal || !got.Priced() || got.PerPercent != 10 {
			t.Errorf("cheapest: %+v", got)
		}
	}
}

// TestDear: whether the first request may ask for more than the client may want from its link.
func TestDear(t *testing.T) {
	wifi, lte := link.Link{Name: "wifi", Metric: 1}, link.Link{Name: "lte", Metric: 2, Metered: true}
	up, down := transfer.Event{State: health.Up}, transfer.Event{State: health.Down}
	for _, c := range []struct {
		name   string
		req    Request
		states []transfer.Event
		links  []link.Link
		want   bool
	}{
		{name: "R252 the first link is not metered", states: []transfer.Event{up, up}, links: []link.Link{lte, wifi}},
		{name: "R253 it is", states: []transfer.Event{up, down}, links: []link.Link{lte, wifi}, want: true},
		{name: "R253 frugal", states: []transfer.Event{up}, links: []link.Link{{Name: "a", Frugal: true}}, want: true},
		{name: "R253 background", req: Request{Background: true}, states: []transfer.Event{up}, links: []link.Link{wifi}, want: true},
		{name: "R253 a deadline", req: Request{Deadline: &schedule.Deadline{}}, states: []transfer.Event{up}, links: []link.Link{wifi}, want: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := (&run{req: &c.req}).dear(c.states, c.links); got != c.want {
				t.Error(got)
			}
		})
	}
}
