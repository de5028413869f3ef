package main

import (
	"math"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/lab/netlab"
)

// TestJoules: 2 MB in steps of 50 ms for 2 s over Wi-Fi, nothing over LTE: the waiting phone for 2 s, and the radio for
// 1.95 s from the first to the last step. If LTE is used too, its promotion and tail are added.
func TestJoules(t *testing.T) {
	began := time.Unix(1000, 0)
	busy := netlab.Tape{Began: began, Step: 50 * time.Millisecond}
	for range 40 {
		busy.Payload = append(busy.Payload, 50_000)
	}
	radio := func(name string) float64 {
		r, err := energy.FindRadio(name)
		if err != nil {
			t.Fatal(err)
		}
		return r.PromotionJoules() + r.ActiveJoules(1950*time.Millisecond, 0, 2_000_000) + r.TailJoules(time.Minute)
	}
	alone, err := joulesOf([]netlab.Tape{busy, {Began: began, Step: busy.Step}}, 2*time.Second)
	if want := 1.4 + radio(firstRadio); err != nil || math.Abs(alone-want) > 0.01 {
		t.Errorf("Wi-Fi alone: %.3f J, want %.3f; %v", alone, want, err)
	}
	both, err := joulesOf([]netlab.Tape{busy, busy}, 2*time.Second)
	if want := alone + radio(otherRadios); err != nil || math.Abs(both-want) > 0.01 {
		t.Errorf("both: %.3f J, want %.3f; %v", both, want, err)
	}
}
