package demo

import (
	"testing"
	"time"
)

func TestPacer(t *testing.T) {
	now := time.Unix(1000, 0)
	p := pacer{rate: 1000}
	at := func(want time.Duration, n int) {
		t.Helper()
		if got := p.reserve(now, n).Sub(now); got != want {
			t.Errorf("%d bytes leave after %v, want %v", n, got, want)
		}
	}
	// An idle link starts with the slack that it may catch up.
	at(100*time.Millisecond-slack, 100)
	// Anything booked at the same moment, by any connection, queues behind it.
	at(300*time.Millisecond-slack, 200)
	// An idle link saved no more than that.
	now = now.Add(time.Hour)
	at(100*time.Millisecond-slack, 100)
	// A timer that fires late by less than the slack costs nothing.
	now = now.Add(100 * time.Millisecond)
	at(100*time.Millisecond-slack, 100)
}
