package transfer

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
)

// TestStandstill: a link is charged with the bytes that the others could have delivered while they waited for it, and with nothing
// else.
func TestStandstill(t *testing.T) {
	// held makes a transfer whose link 0 owes the next offset, and whose link 1 has filled the window at about 1 MB/s;
	// it was asked for some bytes beyond.
	held := func(t *testing.T, beyond int64) (s *script, owed, a *asked) {
		s, _ = running(t, Config{Reorder: 256 * kB}, 2, 8*mB)
		const at = 128 * kB
		s.ask(0, at, at+64*kB)
		owed = s.wantFetch(0, at, at+64*kB)
		s.headReceived(owed, 8*mB)
		s.ask(1, at+64*kB, at+256*kB+beyond)
		a = s.wantFetch(1, at+64*kB, at+256*kB+beyond)
		s.headReceived(a, 8*mB)
		for range 11 {
			s.advance(16 * ms)
			s.read(a, 16*kB)
			s.read(owed, 1) // it is slow, not silent
		}
		s.advance(16 * ms)
		if g := s.state().Links[0].Gain; g != float64(s.state().Links[0].Got) {
			t.Fatalf("link 0 costs %v while the other one is busy", float64(s.state().Links[0].Got)-g)
		}
		if s.read(a, 16*kB); beyond == 0 {
			s.complete(a)
		}
		return s, owed, a
	}
	cost := func(s *script, i int) float64 {
		l := s.state().Links[i]
		return float64(l.Got) - l.Gain
	}
	// crawl lets the owed bytes arrive one by one for the time d.
	crawl := func(s *script, owed *asked, d time.Duration) {
		for range d / (100 * ms) {
			s.advance(100 * ms)
			s.read(owed, 1)
		}
	}
	for name, beyond := range map[string]int64{"the window is full": 0, "the window is full, and more was requested": 64 * kB} {
		t.Run(name, func(t *testing.T) {
			s, owed, a := held(t, beyond)
			rate := s.state().Links[1].Rate
			stood := s.state().Stood
			crawl(s, owed, time.Second)
			// The client has not taken the owed bytes that arrived: until then it has something to do.
			if c := cost(s, 0); c != 0 {
				t.Errorf("link 0 costs %v while the client has bytes to take", c)
			}
			take := func() {
				s.deliver()
				for a.cursor < a.credit { // the window has moved on
					s.read(a, a.credit-a.cursor)
				}
			}
			take()
			for range 10 {
				s.advance(100 * ms)
				s.read(owed, 1)
				take()
			}
			if c := cost(s, 0); rate < 0.9*mB || c < 0.99*rate || c > 1.01*rate {
				t.Errorf("link 0 costs %v in a second, the other one has %v", c, rate)
			}
			if c := cost(s, 1); c != 0 {
				t.Errorf("link 1 costs %v", c)
			}
			if d := s.state().Stood - stood; d != 2*time.Second {
				t.Errorf("link 1 stood still for %v", d)
			}
			if !s.state().Links[1].Busy {
				t.Error("a link that is held up is not reported: its rate would be forgotten")
			}
		})
	}
	t.Run("a silent link is a matter of its own", func(t *testing.T) {
		s, _ := silent(t, 2, 300*kB)
		s.wantReport(ReportHedged, 0)
		s.answer(s.last(1), 2*mB)
		s.deliver()
		s.tick()
		before := s.m.links[1].heldUp
		s.advance(hedgeAfter - 1) // link 1 stands still before the next piece
		s.tick()
		if s.m.links[1].heldUp != before {
			t.Error("link 0 holds up link 1")
		}
	})
	t.Run("a link that is not usable does not wait", func(t *testing.T) {
		s, owed, _ := held(t, 0)
		s.link(1, health.Suspect)
		s.deliver()
		for range 10 {
			s.advance(100 * ms)
			s.read(owed, 1)
			s.deliver()
		}
		if c := cost(s, 0); c != 0 {
			t.Errorf("link 0 costs %v", c)
		}
	})
	t.Run("a link without a connection and without a free slot does not wait", func(t *testing.T) {
		s, owed, a := held(t, 0)
		s.handle(Event{Kind: ConnClosed, Conn: a.conn})
		s.ask(1, 1*mB, 2*mB)
		s.wantFetch(1, 1*mB, 2*mB)
		s.openFailed(s.wantOpen(1), fault.NoSlot)
		s.deliver()
		stood := s.state().Stood
		for range 10 {
			s.advance(100 * ms)
			s.read(owed, 1)
			s.deliver()
		}
		if c := cost(s, 0); c != 0 {
			t.Errorf("link 0 costs %v", c)
		}
		if d := s.state().Stood - stood; d != 0 {
			t.Errorf("link 1 stood still for %v", d)
		}
	})
	t.Run("two fetch the byte", func(t *testing.T) {
		s, owed := silent(t, 3, 160*kB)
		s.wantReport(ReportHedged, 0)
		second := s.last(1)
		wait := func(what string) {
			t.Helper()
			before := s.m.links[2].heldUp
			s.advance(100 * ms)
			s.tick()
			if s.m.links[2].heldUp != before {
				t.Errorf("%s: link 2 is held up", what)
			}
		}
		wait("at first")
		s.read(owed, 1)
		wait("link 0 speaks again")
		s.headReceived(second, 2*mB)
		s.read(second, 16*kB)
		s.handle(Event{Kind: Delivered, N: 8 * kB})
		wait("the client has bytes to take")
	})
}

// TestNoGain: a link that is left out because it adds nothing is not asked for more, but the requested bytes still arrive.
func TestNoGain(t *testing.T) {
	s, conns := running(t, Config{}, 2, 2*mB)
	s.ask(1, 128*kB, 256*kB)
	a := s.wantFetch(1, 128*kB, 256*kB)
	s.handle(Event{Kind: LinkState, Link: 1, State: health.Banned, Cause: health.NoGain})
	s.ask(1, 256*kB, 384*kB)
	s.quiet()
	s.answer(a, 2*mB)
	s.handle(Event{Kind: LinkState, Link: 1, State: health.Up})
	if b := s.wantFetch(1, 256*kB, 384*kB); a.conn != conns[1] || b.conn != conns[1] {
		t.Errorf("requests on connections %d and %d, not on %d", a.conn, b.conn, conns[1])
	}
	t.Run("also when it was silent for a time", func(t *testing.T) {
		s, _ := running(t, Config{}, 2, 2*mB)
		s.ask(1, 128*kB, 256*kB)
		a := s.wantFetch(1, 128*kB, 256*kB)
		s.headReceived(a, 2*mB)
		s.handle(Event{Kind: LinkState, Link: 1, State: health.Banned, Cause: health.NoGain})
		s.advance(s.limit(1))
		s.wantReport(ReportSilent, 1)
		s.read(a, 1*kB)
		s.wantReport(ReportAlive, 1)
		s.drop(Fetch, ReportHedged)
		s.ask(1, 256*kB, 384*kB)
		s.quiet()
		s.complete(a)
		s.quiet()
		s.handle(Event{Kind: LinkState, Link: 1, State: health.Up})
		s.wantFetch(1, 256*kB, 384*kB)
	})
}
