package transfer

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/schedule"
)

// cut makes a transfer of 2 MiB over n links in which attempt a on link 0 has read 100 KiB of [n*64 KiB, 2 MiB), and b on
// link 1 has been asked for its tail from 1 MiB on.
func cut(t *testing.T, n int) (s *script, a, b *asked) {
	return cutOver(t, n, false)
}

func cutOver(t *testing.T, n int, h2 bool) (s *script, a, b *asked) {
	s, _ = runningOver(t, Config{}, n, 2*mB, h2)
	from := int64(n) * 64 * kB
	s.ask(0, from, 2*mB)
	a = s.wantFetch(0, from, 2*mB)
	s.headReceived(a, 2*mB)
	s.read(a, 100*kB)
	s.take(1, a, 1*mB, 2*mB)
	b = s.wantFetch(1, 1*mB, 2*mB)
	s.quiet()
	return s, a, b
}

// TestCutIsProvisional: R119: an attempt loses its tail only when the other one has a valid head.
func TestCutIsProvisional(t *testing.T) {
	t.Run("until the head", func(t *testing.T) {
		s, a, b := cut(t, 2)
		if w := s.m.Wanted(a.id); w != 2*mB {
			t.Errorf("wanted up to %d before the other head", w)
		}
		s.headReceived(b, 2*mB)
		if w := s.m.Wanted(a.id); w != 1*mB {
			t.Errorf("wanted up to %d after the other head", w)
		}
		s.quiet()
		s.complete(b)
		s.read(a, 1*mB-a.cursor)
		s.deliver()
		s.wantDone()
		s.wantWaste(0)
	})
	for _, outcome := range []fault.Outcome{fault.Unwanted, fault.Reset, fault.Changed} {
		t.Run("dropped when the other attempt ends: "+outcome.String(), func(t *testing.T) {
			s, a, b := cut(t, 3)
			if !s.m.attempt(a.id).stolen {
				t.Error("a scheduler may cut it twice")
			}
			s.ended(b, outcome)
			s.wantFree()
			if s.m.attempt(a.id).stolen {
				t.Error("no scheduler will cut it again")
			}
			if w := s.m.Wanted(a.id); w != 2*mB {
				t.Errorf("wanted up to %d", w)
			}
			s.take(2, a, 1*mB, 2*mB) // and may be tried again elsewhere
			s.wantFetch(2, 1*mB, 2*mB)
			s.complete(a)
			s.wantWaste(0)
			s.deliver()
			s.wantDone()
		})
	}
	t.Run("the first runs past the cut", func(t *testing.T) {
		s, a, b := cut(t, 2)
		s.read(a, 1*mB+32*kB-a.cursor)
		s.headReceived(b, 2*mB)
		s.complete(b)
		s.wantWaste(32 * kB)
		s.deliver()
		s.wantDone()
	})
	t.Run("the first has brought all before the other head", func(t *testing.T) {
		s, a, _ := cut(t, 2)
		s.complete(a)
		s.deliver()
		s.wantDone()
		s.wantWaste(0)
	})
	t.Run("the first has brought all of it before the other head: nothing of it is left to move on", func(t *testing.T) {
		s, _ := running(t, Config{}, 3, 2*mB)
		s.ask(0, 192*kB, 512*kB)
		a := s.wantFetch(0, 192*kB, 512*kB)
		s.headReceived(a, 2*mB)
		s.take(1, a, 256*kB, 512*kB)
		b := s.wantFetch(1, 256*kB, 512*kB)
		s.complete(a)
		if w := s.m.Wanted(b.id); w != b.cursor {
			t.Errorf("%d bytes are wanted a second time", w-b.cursor)
		}
		if n := len(s.m.look(s.now).Attempts); n != 0 {
			t.Errorf("%d attempts are shown to the scheduler", n)
		}
	})
	t.Run("the first fails", func(t *testing.T) {
		s, a, b := cut(t, 2)
		at := a.cursor
		s.ended(a, fault.Reset)
		s.wantFree(span(at, 1*mB))
		s.headReceived(b, 2*mB)
		s.wantFree(span(at, 1*mB))
		if w := s.m.Wanted(b.id); w != 2*mB {
			t.Errorf("wanted up to %d", w)
		}
	})
	t.Run("a part out of the middle", func(t *testing.T) {
		s, conns := running(t, Config{}, 2, 2*mB)
		s.ask(0, 128*kB, 2*mB)
		a := s.wantFetch(0, 128*kB, 2*mB)
		s.headReceived(a, 2*mB)
		s.read(a, 1*kB)
		s.take(1, a, 1*mB, 1*mB+64*kB)
		b := s.wantFetch(1, 1*mB, 1*mB+64*kB)
		s.headReceived(b, 2*mB)
		s.wantFree(span(1*mB+64*kB, 2*mB)) // the rest belongs to nobody
		if b.conn != conns[1] {
			t.Error("leaves a connection idle")
		}
	})
	t.Run("the answer of the first turns out shorter than the cut", func(t *testing.T) {
		s, _ := running(t, Config{}, 2, 2*mB)
		s.ask(0, 128*kB, 2*mB)
		a := s.wantFetch(0, 128*kB, 2*mB)
		s.take(1, a, 1*mB, 2*mB)
		b := s.wantFetch(1, 1*mB, 2*mB)
		s.head(a, Event{Size: 2 * mB, Range: span(128*kB, 256*kB)})
		s.wantFree(span(256*kB, 1*mB))
		s.headReceived(b, 2*mB)
		s.wantFree(span(256*kB, 1*mB))
		if w := s.m.Wanted(a.id); w != 256*kB {
			t.Errorf("wanted up to %d of an answer that ends at %d", w, 256*kB)
		}
		s.complete(a)
		s.wantFree(span(256*kB, 1*mB))
	})
	t.Run("what was not begun is taken whole", func(t *testing.T) {
		s, _ := running(t, Config{}, 2, 2*mB)
		s.ask(0, 128*kB, 2*mB)
		a := s.wantFetch(0, 128*kB, 2*mB)
		s.take(1, a, 128*kB, 2*mB)
		b := s.wantFetch(1, 128*kB, 2*mB)
		s.headReceived(b, 2*mB)
		s.headReceived(a, 2*mB) // its answer arrives after all, but is not needed
		s.drop(CloseConn)
		s.complete(b)
		s.deliver()
		s.wantDone()
	})
}

// TestSurplus: the rest of an answer that was cut is read and discarded if it is short; otherwise its connection is closed.
func TestSurplus(t *testing.T) {
	t.Run("short: drained, and the connection serves on", func(t *testing.T) {
		s, _ := running(t, Config{}, 2, 512*kB)
		s.ask(0, 128*kB, 512*kB)
		a := s.wantFetch(0, 128*kB, 512*kB)
		s.headReceived(a, 512*kB)
		s.take(1, a, 480*kB, 512*kB)
		b := s.wantFetch(1, 480*kB, 512*kB)
		s.headReceived(b, 512*kB)
		s.read(a, 352*kB)
		s.wantCredit(a, 512*kB)
		s.read(a, 30*kB) // not yet its end
		s.wantWaste(30 * kB)
		s.quiet()
	})
	t.Run("longer, with a request behind it: drained", func(t *testing.T) {
		s, _ := running(t, Config{}, 2, 2*mB)
		l := &s.m.links[0]
		l.rate.Seed(1e6) // at 20 ms 20 kB in a round trip, 80 kB in four
		s.ask(0, 128*kB, 512*kB)
		a := s.wantFetch(0, 128*kB, 512*kB)
		if l.rtt() != 20*ms {
			t.Fatalf("round trip %v", l.rtt())
		}
		c := s.m.conn(a.conn)
		if n := s.m.drains(c); n != drainMax {
			t.Errorf("alone: %d bytes", n)
		}
		s.headReceived(a, 2*mB)
		s.ask(0, 1*mB, 2*mB)
		s.wantFetch(0, 1*mB, 2*mB)
		if n := s.m.drains(c); n != 80_000 {
			t.Errorf("with a request behind it: %d bytes", n)
		}
	})
	t.Run("long: closed as soon as the last wanted byte is there", func(t *testing.T) {
		s, a, b := cut(t, 2)
		s.headReceived(b, 2*mB)
		s.read(a, 1*mB-a.cursor-1)
		s.quiet()
		s.read(a, 1)
		s.wantClose(a.conn)
		s.quiet()
		s.wantWaste(0)
	})
	t.Run("long: the next request goes on a new connection meanwhile", func(t *testing.T) {
		s, a, b := cut(t, 2)
		s.headReceived(b, 2*mB)
		s.ended(b, fault.Reset)
		s.ask(0, 1*mB, 2*mB)
		c := s.wantFetch(0, 1*mB, 2*mB)
		if s.wantOpen(0) != c.conn || c.conn == a.conn {
			t.Error("asks behind an answer that will be cut off")
		}
	})
	t.Run("long: it counts until it is closed, beside the one that replaces it", func(t *testing.T) {
		s, a, b := cut(t, 2)
		s.headReceived(b, 2*mB)
		s.ended(b, fault.Reset)
		s.m.links[0].parallel.Begin(s.now, 2, MostConns, MostConns, 0)
		s.ask(0, 1*mB, 1*mB+64*kB)
		c := s.wantFetch(0, 1*mB, 1*mB+64*kB)
		s.wantOpen(0)
		s.opened(c.conn, 20*ms)
		s.quiet() // two are open
		s.read(a, 1*mB-a.cursor)
		s.wantClose(a.conn)
		s.wantOpen(0)
	})
}

// TestCutAndSilence: both copies of a tail count: it is not asked for a third time.
func TestCutAndSilence(t *testing.T) {
	s, a, b := cut(t, 3)
	s.advance(health.BodyPause) // both fall silent
	s.wantReport(ReportSilent, 0)
	s.wantReport(ReportSilent, 1)
	for s.m.led.Missing(span(a.cursor, 1*mB)) != span(1*mB, 1*mB) { // link 2 fetches bytes that link 0 alone owes
		q := s.oldest(2)
		if q.reason != schedule.HedgeCopy || q.r.End > 1*mB {
			t.Fatalf("asks for %v: %v", q.r, q.reason)
		}
		s.headReceived(q, 2*mB)
		s.complete(q)
		s.advance(20 * ms)
	}
	s.drop(Fetch, ReportHedged)
	s.quiet()
	s.headReceived(b, 2*mB) // from now on only b fetches the tail
	s.wantReport(ReportAlive, 1)
	s.advance(time.Second)
	s.wantReport(ReportSilent, 1)
	s.drop(ReportHedged)
	s.wantFetch(2, 1*mB, s.oldest(2).r.End)
}

// TestCutOverHTTP2: R125: an answer whose tail has moved on is cut there, and its connection stays in use.
func TestCutOverHTTP2(t *testing.T) {
	t.Run("R125 with the other head, not before", func(t *testing.T) {
		s, a, b := cutOver(t, 2, true)
		s.headReceived(b, 2*mB)
		s.wantCut(a, 1*mB)
		s.quiet()
		s.complete(b)
		s.complete(a) // up to the cut
		s.wantWaste(0)
		s.deliver()
		for range 2 {
			s.drop(Keep)
		}
		s.wantDone()
	})
	t.Run("R125 the next request goes over the same connection", func(t *testing.T) {
		s, a, b := cutOver(t, 3, true)
		s.headReceived(b, 2*mB)
		s.wantCut(a, 1*mB)
		s.ended(b, fault.Reset)
		s.ask(0, 1*mB, 1*mB+64*kB)
		if c := s.wantFetch(0, 1*mB, 1*mB+64*kB); c.conn != a.conn {
			t.Error("another connection is made")
		}
		s.complete(a)
	})
	t.Run("R125 not if the other attempt fails", func(t *testing.T) {
		s, a, b := cutOver(t, 3, true)
		s.ended(b, fault.Reset)
		s.quiet()
		s.complete(a)
		s.deliver()
		s.wantDone()
	})
	t.Run("R125 the first has run past the cut", func(t *testing.T) {
		s, a, b := cutOver(t, 2, true)
		s.read(a, 1*mB+32*kB-a.cursor)
		s.headReceived(b, 2*mB)
		s.wantCut(a, 1*mB+32*kB)
		s.complete(a)
		s.complete(b)
		s.wantWaste(32 * kB)
		s.deliver()
		s.wantDone()
	})
	t.Run("R125 what was not begun is taken whole", func(t *testing.T) {
		s, _ := runningOver(t, Config{}, 2, 2*mB, true)
		s.ask(0, 128*kB, 2*mB)
		a := s.wantFetch(0, 128*kB, 2*mB)
		s.take(1, a, 128*kB, 2*mB)
		b := s.wantFetch(1, 128*kB, 2*mB)
		s.headReceived(b, 2*mB)
		s.wantCut(a, 128*kB)
		s.head(a, Event{Size: 2 * mB, Range: span(128*kB, 2*mB)}) // its answer arrives after all
		s.wantCut(a, 128*kB)
		s.complete(a)
		s.complete(b)
		s.wantWaste(0)
		s.deliver()
		s.wantDone()
	})
	t.Run("R125 what others have brought", func(t *testing.T) {
		s, a, b := cutOver(t, 2, true)
		s.headReceived(b, 2*mB)
		s.wantCut(a, 1*mB)
		s.complete(b)
		s.advance(health.BodyPause) // a falls silent
		s.wantReport(ReportSilent, 0)
		for s.m.led.Missing(span(a.cursor, 1*mB)) != span(1*mB, 1*mB) {
			q := s.oldest(1)
			s.headReceived(q, 2*mB)
			s.complete(q)
			s.advance(20 * ms)
			s.drop(Fetch, ReportHedged)
		}
		s.wantCut(a, a.cursor)
	})
}
