package main

import (
	"math"
	"testing"
	"time"
)

// TestCall: a packet that arrives after a later one is out of order; the jitter is computed by hand: 20 ms / 16, then
// 15/16 of it and 20 ms / 16.
func TestCall(t *testing.T) {
	var c call
	for _, p := range []struct {
		number int
		delay  time.Duration
	}{{0, 10 * time.Millisecond}, {2, 30 * time.Millisecond}, {1, 10 * time.Millisecond}, {3, 10 * time.Millisecond}} {
		c.packet(p.number, p.delay)
	}
	want := ((20.0/16)*15/16 + 20.0/16) * 15 / 16
	if c.late != 1 || c.received != 4 || math.Abs(c.jitter-want) > 1e-9 {
		t.Errorf("%+v, want a jitter of %v", c, want)
	}
}
