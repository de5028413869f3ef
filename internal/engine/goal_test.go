package engine

import (
	"testing"

	"github.com/tributary-http/tributary/internal/energy"
	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/schedule"
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
