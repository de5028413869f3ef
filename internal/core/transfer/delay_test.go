package transfer

import (
	"testing"
	"time"
)

// TestDelay: the scheduler sees the delay that was measured on a link while the link is busy.
func TestDelay(t *testing.T) {
	s, conns := running(t, Config{}, 1, 2*mB)
	delay := func() time.Duration { return s.m.look(s.now).Links[0].Delay }
	sampled := func(d time.Duration) {
		s.handle(Event{Kind: Sampled, Conn: conns[0], Path: PathSample{Delay: d}})
	}
	expect := func(what string, want time.Duration) {
		t.Helper()
		if got := delay(); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	sampled(300 * ms)
	expect("of an idle connection", 0)
	s.ask(0, 64*kB, 2*mB)
	a := s.wantFetch(0, 64*kB, 2*mB)
	sampled(300 * ms)
	expect("before its answer", 0)
	s.headReceived(a, 2*mB)
	s.read(a, 10*kB)
	expect("before it was measured", 0)
	sampled(300 * ms)
	expect("measured", 300*ms)
	sampled(0)
	expect("nothing new", 300*ms)
	sampled(200 * ms)
	expect("measured again", 200*ms)
	s.complete(a)
	s.advance(ms)
	expect("idle", 0)
}
