package estimate

import (
	"testing"
	"time"
)

// TestOthers checks that bytes that an interface receives beyond its known connections count for 300 ms, and that bytes of known
// connections do not, however the two counters lag behind each other.
func TestOthers(t *testing.T) {
	const ms = time.Millisecond
	own := func(n int64) Counters { return Counters{n, n * 1448} }
	wire := func(n int64) Counters { return Counters{n, n * 1500} }
	now := time.Unix(1000, 0)
	var o Others
	if n := o.PerSecond(now); n != -1 {
		t.Errorf("at first %d", n)
	}
	count := func(all, known Counters) int64 {
		now = now.Add(10 * ms)
		o.Count(now, all, known)
		return o.PerSecond(now)
	}
	for i := range 200 {
		if n := count(wire(29+2*int64(i%2)), own(30)); n != -1 { // every second reading lacks a packet that connections counted
			t.Fatalf("own packets, look %d: %d bytes per second for others", i, n)
		}
	}
	if n := count(wire(30).Plus(Counters{1, 60}), own(30)); n != 60*50 {
		t.Errorf("a small packet: %d", n)
	}
	if n := count(wire(50), own(30)); n < 20*1500*50 || n > (20*1500+60)*50 {
		t.Errorf("20 packets in 10 ms: %d", n)
	}
	for range 20 { // small packets, such as those that acknowledge an upload
		count(wire(30).Plus(Counters{10, 520}), own(30))
	}
	now = now.Add(280 * ms)
	if n := count(wire(30), own(30)); n < 0 {
		t.Error("forgotten within 300 ms")
	}
	now = now.Add(300 * ms)
	if n := count(wire(30), own(30)); n != -1 {
		t.Errorf("after a silence of 300 ms: %d", n)
	}
	if n := count(Counters{3, 3 * 15000}, own(30)); n != -1 {
		t.Errorf("an interface that counts ten packets as one: %d", n)
	}
}
