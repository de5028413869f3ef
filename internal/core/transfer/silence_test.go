package transfer

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
)

// silent makes a transfer of 2 MiB over n links in which link 0 owes all but 100 KiB of a range of size bytes at the next offset,
// and has fallen silent.
func silent(t *testing.T, n int, size int64) (s *script, a *asked) {
	s, _ = running(t, Config{}, n, 2*mB)
	from := int64(n) * 64 * kB
	s.ask(0, from, from+size)
	a = s.wantFetch(0, from, from+size)
	s.advance(20 * ms)
	s.headReceived(a, 2*mB)
	for range 10 { // slow enough for second copies of 64 KiB
		s.advance(20 * ms)
		s.read(a, 10*kB)
	}
	s.deliver()
	s.quiet()
	s.advance(s.limit(0) - 1)
	s.quiet()
	s.advance(1)
	s.wantReport(ReportSilent, 0)
	return s, a
}

// limit returns how long a link may be silent in mid-body.
func (s *script) limit(link int8) time.Duration {
	l := &s.m.links[link]
	return min(health.SuspectAfter+4*l.response.Variation(), max(l.pause(), 2*l.rtt()))
}

// TestSilenceAtTheHead: the bytes that a silent link owes are requested once more, in pieces, from the next offset on, and
// never a third time.
func TestSilenceAtTheHead(t *testing.T) {
	t.Run("one copy per byte", func(t *testing.T) {
		s, a := silent(t, 2, 300*kB)
		var copied int64
		for at := a.cursor; at < a.r.End; {
			s.wantReport(ReportHedged, 0)
			b := s.last(1)
			if b.r.Start != at {
				t.Fatalf("asks for %v, not for the next offset %d", b.r, at)
			}
			s.wantFetch(1, b.r.Start, b.r.End)
			s.quiet() // piece by piece: the silent link may deliver again
			s.advance(20 * ms)
			s.answer(b, 2*mB)
			s.deliver()
			at = b.r.End
			copied += b.r.Len()
			if at < a.r.End {
				s.advance(hedgeAfter - 1)
				s.quiet()
				s.advance(1)
			}
		}
		s.quiet()
		if copied != 200*kB || s.state().Offset != a.r.End {
			t.Errorf("%d bytes copied, offset %d", copied, s.state().Offset)
		}
		s.wantWaste(0)
	})
	t.Run("no ping-pong when the second falls silent, too", func(t *testing.T) {
		s, _ := silent(t, 3, 160*kB)
		s.wantReport(ReportHedged, 0)
		b := s.last(1)
		s.wantFetch(1, b.r.Start, b.r.End)
		s.quiet() // it is one piece: nothing is left to copy
		s.advance(500 * ms)
		s.wantReport(ReportSilent, 1)
		s.quiet() // link 2 could ask for it a third time
	})
	t.Run("a third link may ask when one of the two has ended", func(t *testing.T) {
		s, a := silent(t, 3, 160*kB)
		s.wantReport(ReportHedged, 0)
		b := s.last(1)
		s.wantFetch(1, b.r.Start, b.r.End)
		s.ended(b, fault.Reset)
		s.drop(Open)
		s.advance(hedgeAfter)
		s.wantReport(ReportHedged, 0)
		c := s.last(1)
		s.drop(Open)
		s.wantFetch(1, a.cursor, c.r.End)
		s.quiet()
	})
	t.Run("late bytes count", func(t *testing.T) {
		s, a := silent(t, 2, 160*kB)
		s.wantReport(ReportHedged, 0)
		b := s.last(1)
		s.wantFetch(1, b.r.Start, b.r.End)
		s.advance(20 * ms)
		s.headReceived(b, 2*mB)
		s.read(b, 20*kB)
		s.wantWaste(0)
		s.read(a, 30*kB) // 20 kB of it came from link 1
		s.wantReport(ReportAlive, 0)
		s.wantWaste(20 * kB)
		s.read(a, 30*kB)
		s.wantWaste(20 * kB)
		if at := s.state().Offset + s.state().Ready; at != a.cursor {
			t.Errorf("can be delivered up to %d, read up to %d", at, a.cursor)
		}
	})
	t.Run("the copy ends where the late bytes have come", func(t *testing.T) {
		s, a := silent(t, 2, 160*kB)
		b := s.last(1)
		s.drop(Fetch, ReportHedged)
		s.advance(20 * ms)
		s.headReceived(b, 2*mB)
		s.read(b, 10*kB)
		s.complete(a)
		s.wantReport(ReportAlive, 0)
		s.wantWaste(10 * kB)
		if w := s.m.Wanted(b.id); w != b.cursor {
			t.Errorf("wanted up to %d", w)
		}
	})
	t.Run("a suspect that speaks again is used again", func(t *testing.T) {
		s, a := silent(t, 2, 160*kB)
		s.drop(Fetch, ReportHedged)
		s.link(0, health.Suspect)
		s.ask(0, 1*mB, 1*mB+1)
		s.quiet()
		s.read(a, 1)
		s.wantReport(ReportAlive, 0)
		s.link(0, health.Up)
		s.wantFetch(0, 1*mB, 1*mB+1)
		if len(s.queues[a.conn]) != 2 {
			t.Error("its connection is not used on")
		}
	})
	t.Run("what is free before it comes first", func(t *testing.T) {
		s, _ := running(t, Config{}, 3, 2*mB)
		s.ask(0, 256*kB, 512*kB)
		a := s.wantFetch(0, 256*kB, 512*kB)
		s.advance(health.BodyPause)
		s.wantReport(ReportSilent, 0)
		s.quiet() // [192 KiB, 256 KiB) is free, and it is the scheduler's to ask for it
		s.ask(1, 192*kB, 256*kB)
		b := s.wantFetch(1, 192*kB, 256*kB)
		s.answer(b, 2*mB)
		s.deliver() // the next offset has reached the bytes that the silent link owes
		s.quiet()
		s.advance(hedgeAfter)
		s.wantReport(ReportHedged, 0)
		if b := s.last(1); b.r.Start != a.cursor {
			t.Errorf("asks for %v", b.r)
		}
	})
	t.Run("at once when nothing else is left to ask for", func(t *testing.T) {
		s, a := silent(t, 2, 2*mB-128*kB)
		for at := a.cursor; at < 1*mB; {
			b := s.oldest(1)
			if b.r.Start != at {
				t.Fatalf("asks for %v, not for the next offset %d", b.r, at)
			}
			s.advance(20 * ms)
			s.answer(b, 2*mB)
			at = b.r.End
		}
	})
	t.Run("what lies beyond the window is not copied", func(t *testing.T) {
		s, _ := running(t, Config{Reorder: 256 * kB}, 2, 2*mB)
		s.ask(0, 128*kB, 192*kB)
		s.ask(1, 192*kB, 2*mB)
		a, b := s.wantFetch(0, 128*kB, 192*kB), s.wantFetch(1, 192*kB, 2*mB)
		s.answer(a, 2*mB)
		s.headReceived(b, 2*mB)
		s.advance(health.BodyPause)
		s.wantReport(ReportSilent, 1)
		for range 10 {
			if q := s.last(0); q.r.Start >= s.m.led.Limit() {
				t.Fatalf("asks for %v, the window ends at %d", q.r, s.m.led.Limit())
			}
			s.drop(Fetch, ReportHedged)
			q := s.last(0)
			s.headReceived(q, 2*mB)
			if q.credit < q.r.End {
				break
			}
			s.complete(q)
			if len(s.pending) == 0 {
				break
			}
		}
		s.wantWaste(0)
	})
}

// TestSteadyLink: the longer a link has delivered without a rest, the sooner a silence in mid-body is noticed.
func TestSteadyLink(t *testing.T) {
	for _, tt := range []struct {
		name    string
		carries time.Duration
		rest    time.Duration
		outage  time.Duration
		want    time.Duration // 0 = as on a new link
	}{
		{"too short to know", 460 * ms, 20 * ms, 0, 0},
		{"a steady one", 500 * ms, 20 * ms, 0, health.SteadyPause},
		{"that has rested", 500 * ms, 60 * ms, 0, max(health.SteadyPause, 240*ms)},
		{"for long", 500 * ms, 190 * ms, 0, 0},
		{"that was away", 500 * ms, 20 * ms, 600 * ms, health.SteadyPause},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := running(t, Config{}, 1, 8*mB)
			s.ask(0, 64*kB, 8*mB)
			a := s.wantFetch(0, 64*kB, 8*mB)
			s.advance(20 * ms)
			s.headReceived(a, 8*mB)
			for range tt.carries / (20 * ms) {
				s.advance(20 * ms)
				s.read(a, 1*kB)
			}
			s.advance(tt.rest)
			s.read(a, 1*kB)
			if tt.outage > 0 {
				s.advance(tt.outage)
				s.wantReport(ReportSilent, 0)
				s.read(a, 1*kB)
				s.wantReport(ReportAlive, 0)
			}
			if tt.want == 0 {
				tt.want = s.limit(0)
			}
			s.advance(tt.want - 1)
			s.quiet()
			s.advance(1)
			s.wantReport(ReportSilent, 0)
		})
	}
}

// TestSteadyLinkOfTwoConnections: each of them rests while the other one delivers, but the link does not.
func TestSteadyLinkOfTwoConnections(t *testing.T) {
	s, _ := running(t, Config{Links: []LinkConfig{{Learned: estimate.Entry{Pipelining: estimate.Broken}}}}, 1, 8*mB)
	s.ask(0, 64*kB, 128*kB)
	a := s.wantFetch(0, 64*kB, 128*kB)
	s.ask(0, 128*kB, 192*kB)
	b := s.wantFetch(0, 128*kB, 192*kB)
	s.opened(s.wantOpen(0), 20*ms)
	s.advance(20 * ms)
	s.headReceived(a, 8*mB)
	s.headReceived(b, 8*mB)
	for range 5 {
		s.advance(60 * ms)
		s.read(a, 1*kB)
		s.read(b, 1*kB)
	}
	if d := s.m.links[0].pause(); d != health.BodyPause {
		t.Errorf("a pause of %v after 300 ms: they count twice", d)
	}
	for range 10 {
		s.advance(50 * ms)
		s.read(a, 1*kB)
		s.advance(50 * ms)
		s.read(b, 1*kB)
	}
	s.advance(max(health.SteadyPause, 240*ms) - 1)
	s.quiet()
	s.advance(1)
	s.wantReport(ReportSilent, 0)
}

// TestGiveUp: after 3 s of silence a connection is closed, and a fresh one may work where the old one waits for a
// retransmission.
func TestGiveUp(t *testing.T) {
	t.Run("the last link", func(t *testing.T) {
		s, a := silent(t, 1, 200*kB)
		at := a.cursor
		s.sched.piece = 2 * mB
		s.advance(health.BanAfter - s.limit(0) - 1)
		s.quiet()
		s.advance(1)
		s.wantClose(a.conn)
		s.wantReport(ReportNothingDue, 0)
		s.wantFree(span(at, 2*mB))
		s.quiet()
		s.advance(pauseAfterFailure)
		b := s.wantFetch(0, at, 2*mB)
		if c := s.wantOpen(0); c == a.conn {
			t.Error("asks on the connection that was given up")
		}
		s.opened(b.conn, 20*ms)
		s.answer(b, 2*mB)
		s.deliver()
		s.wantDone()
		s.wantWaste(0)
	})
	t.Run("a probe that connects is faster", func(t *testing.T) {
		s, a := silent(t, 1, 200*kB)
		at := a.cursor
		s.sched.piece = 2 * mB
		s.link(0, health.Suspect)
		s.advance(time.Second)
		s.quiet()
		s.link(0, health.Up)
		s.wantClose(a.conn)
		s.wantFetch(0, at, 2*mB)
		s.wantOpen(0)
		s.quiet()
	})
	t.Run("only this response can bring the rest", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB}, 1)
		a := s.wantFetch(0, 0, 64*kB)
		s.opened(s.wantOpen(0), 20*ms)
		s.advance(20 * ms)
		s.head(a, Event{Size: 2 * mB, Range: span(0, 2*mB)}) // the whole object in place of the range
		s.read(a, 64*kB)
		s.deliver()
		s.advance(health.SuspectAfter + 4*s.m.links[0].response.Variation() + health.BodyPause)
		s.wantReport(ReportSilent, 0)
		s.link(0, health.Suspect)
		s.link(0, health.Up)
		s.quiet() // neither closed nor reported again
		s.advance(health.BanAfter - time.Second)
		s.read(a, 64*kB)
		s.wantReport(ReportAlive, 0)
	})
	t.Run("the copies of what it owed go on", func(t *testing.T) {
		s, a := silent(t, 2, 160*kB)
		s.drop(ReportHedged, Fetch)
		b := s.last(1)
		s.headReceived(b, 2*mB)
		for range 30 { // link 1 is slow, not silent
			s.advance(100 * ms)
			s.read(b, 1*kB)
		}
		s.wantClose(a.conn)
		s.wantReport(ReportNothingDue, 0)
		s.wantFree(span(288*kB, 2*mB))
		s.quiet()
	})
	t.Run("a head that comes late and a body that does not", func(t *testing.T) {
		s, _ := running(t, Config{}, 1, 2*mB)
		s.ask(0, 64*kB, 128*kB)
		a := s.wantFetch(0, 64*kB, 128*kB)
		s.advance(2500 * ms)
		s.headReceived(a, 2*mB)
		s.wantReport(ReportSilent, 0)
		s.wantReport(ReportAlive, 0)
		s.advance(20 * time.Second) // harness: the machine does not spin
		s.wantClose(a.conn)
	})
	t.Run("a handshake that hangs", func(t *testing.T) {
		s, _ := running(t, Config{}, 2, 2*mB)
		s.m.dropConn(s.m.conns[0].id)
		s.ask(0, 128*kB, 192*kB)
		a := s.wantFetch(0, 128*kB, 192*kB)
		s.wantOpen(0)
		s.advance(s.limit(0) + health.ThinkingTime + 20*ms)
		s.wantReport(ReportSilent, 0)
		s.wantReport(ReportHedged, 0)
		s.wantFetch(1, 128*kB, 192*kB)
		s.opened(a.conn, time.Second)
		s.headReceived(a, 2*mB) // it arrived after all
		s.wantReport(ReportAlive, 0)
	})
}

// TestExcused: a link from which nothing more is expected is not silent; that proves nothing else about the link.
func TestExcused(t *testing.T) {
	t.Run("its connection is reset", func(t *testing.T) {
		s, a := silent(t, 1, 200*kB)
		at := a.cursor
		s.sched.piece = 2 * mB
		s.ended(a, fault.Reset)
		s.wantReport(ReportNothingDue, 0)
		s.advance(pauseAfterFailure - 1)
		s.quiet()
		s.advance(1)
		s.wantFetch(0, at, 2*mB)
		s.wantOpen(0)
		s.quiet()
	})
	t.Run("a suspect remains one", func(t *testing.T) {
		s, a := silent(t, 1, 200*kB)
		at := a.cursor
		s.sched.piece = 2 * mB
		s.link(0, health.Suspect)
		s.ended(a, fault.Reset)
		s.wantReport(ReportNothingDue, 0)
		s.advance(time.Second)
		s.quiet()
		s.link(0, health.Up)
		s.wantFetch(0, at, 2*mB)
		s.wantOpen(0)
		s.quiet()
	})
	t.Run("the end of an answer shows that it is alive", func(t *testing.T) {
		s, _ := running(t, Config{}, 1, 1*mB)
		s.ask(0, 64*kB, 128*kB)
		a := s.wantFetch(0, 64*kB, 128*kB)
		s.headReceived(a, 1*mB)
		s.read(a, 64*kB)
		s.advance(s.limit(0))
		s.wantReport(ReportSilent, 0)
		s.link(0, health.Suspect)
		s.complete(a)
		s.wantReport(ReportAlive, 0)
		s.quiet()
		if !s.m.Usable(s.now, 0) {
			t.Error("it is not used")
		}
	})
}

// TestDiskBehind: while the disk is behind nothing is read, which is not the links' silence.
func TestDiskBehind(t *testing.T) {
	s, _ := running(t, Config{}, 2, 2*mB)
	var all []*asked
	for i := range int8(2) {
		from := (2 + int64(i)) * 64 * kB
		s.ask(i, from, from+64*kB)
		a := s.wantFetch(i, from, from+64*kB)
		s.headReceived(a, 2*mB)
		s.read(a, 1*kB)
		all = append(all, a)
	}
	s.advance(100 * ms)
	for range 2 { // without a tick
		s.now = s.now.Add(time.Second)
		s.handle(Event{Kind: Paused, For: time.Second})
	}
	s.quiet()
	s.read(all[0], 1*kB)
	s.advance(s.limit(1) - 100*ms - 1)
	s.quiet()
	s.advance(1)
	s.wantReport(ReportSilent, 1)
	s.quiet()
}

// TestThinkingOrigin: how long an origin thinks before its first byte says nothing about how long a body may pause.
func TestThinkingOrigin(t *testing.T) {
	s := start(t, Config{Initial: 64 * kB}, 2)
	a := s.wantFetch(0, 0, 64*kB)
	s.opened(s.wantOpen(0), 20*ms)
	s.advance(8 * time.Second)
	s.drop(ReportSilent, Fetch, Open)
	s.headReceived(a, 1*mB)
	s.wantReport(ReportAlive, 0)
	s.read(a, 10*kB)
	s.advance(time.Second)
	s.wantReport(ReportSilent, 0)
}

// TestIdleIsNotSlow: a goodput that decayed while a link is idle would disable the end game.
func TestIdleIsNotSlow(t *testing.T) {
	s, _ := running(t, Config{}, 1, 8*mB)
	s.ask(0, 64*kB, 1*mB)
	a := s.wantFetch(0, 64*kB, 1*mB)
	s.headReceived(a, 8*mB)
	for a.cursor < a.r.End {
		s.advance(10 * ms)
		s.read(a, 10*kB)
	}
	s.complete(a)
	s.deliver()
	was := s.state().Links[0].Rate
	s.advance(time.Minute)
	if l := s.state().Links[0]; l.Rate != was || l.Busy || was < 900*kB {
		t.Errorf("%.0f B/s after a minute without work, %.0f before; busy %v", l.Rate, was, l.Busy)
	}
	s.ask(0, 1*mB, 2*mB)
	s.tick()
	s.advance(100 * ms)
	if l := s.state().Links[0]; l.Rate != was || !l.Busy {
		t.Errorf("%.0f B/s before the head of the next answer, %.0f before; busy %v", l.Rate, was, l.Busy)
	}
}
