package transfer

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
)

func TestLinkDownAndUp(t *testing.T) {
	for _, st := range []health.State{health.Down, health.Banned} {
		t.Run(st.String(), func(t *testing.T) {
			s, _ := running(t, Config{}, 2, 1*mB)
			s.ask(0, 128*kB, 512*kB)
			a := s.wantFetch(0, 128*kB, 512*kB)
			s.headReceived(a, 1*mB)
			s.read(a, 100*kB)
			s.sched.piece = 1 * mB
			s.sched.todo = nil
			s.link(0, st)
			s.wantClose(a.conn)
			b := s.wantFetch(1, 228*kB, 1*mB) // at once
			s.quiet()
			s.headReceived(b, 1*mB)
			s.ended(b, fault.Reset)
			s.link(0, health.Probing)
			s.drop(Open, Fetch)
			s.ended(s.last(1), fault.Reset)
			s.quiet() // link 1 has failed twice and pauses, link 0 is not up
			s.link(0, health.Up)
			c := s.wantFetch(0, 228*kB, 1*mB)
			if d := s.wantOpen(0); d != c.conn || d == a.conn {
				t.Error("asks on an old connection")
			}
			s.opened(c.conn, 20*ms)
			s.answer(c, 1*mB)
			s.deliver()
			s.wantDone()
			s.wantWaste(0)
		})
	}
}

// TestLinkAppears: a link that was not there at the start.
func TestLinkAppears(t *testing.T) {
	s, _ := running(t, Config{}, 1, 1*mB)
	s.appears(1, true)
	s.ask(1, 64*kB, 1*mB)
	s.quiet()
	s.link(1, health.Up)
	a := s.wantFetch(1, 64*kB, 1*mB)
	s.opened(s.wantOpen(1), 20*ms)
	s.answer(a, 1*mB)
	s.deliver()
	s.wantDone()

	t.Run("that the policy forbids", func(t *testing.T) {
		s, _ := running(t, Config{}, 1, 1*mB)
		s.appears(1, false)
		s.link(1, health.Up)
		s.link(0, health.Down)
		s.sched.piece = 1 * mB
		s.tick()
		s.drop(CloseConn)
		s.quiet()
		s.advance(10 * time.Second)
		s.wantFail(fault.Silence)
	})
	t.Run("before the first head", func(t *testing.T) {
		s := prepare(t, Config{Initial: 64 * kB}, 1)
		s.tick()
		s.appears(1, true)
		s.link(1, health.Up)
		s.wantFetch(1, 0, 64*kB)
	})
}

// TestReturn: a link that was away and is back works on fresh connections, whatever the old ones wait for.
func TestReturn(t *testing.T) {
	away := func(t *testing.T) (*script, uint32) { // link 1 has an idle connection
		s, conns := running(t, Config{}, 2, 2*mB)
		s.handle(Event{Kind: ConnClosed, Conn: conns[1]})
		s.sched.todo = append(s.sched.todo, schedule.Decision{Do: schedule.Open, Link: 1})
		s.tick()
		c := s.wantOpen(1)
		s.quiet()
		s.link(1, health.Suspect) // as another transfer has found out
		return s, c
	}
	t.Run("a handshake on which nothing waits", func(t *testing.T) {
		s, c := away(t)
		s.advance(health.SuspectAfter + 20*ms)
		s.quiet()
		s.link(1, health.Up)
		s.wantClose(c)
		s.ask(1, 128*kB, 192*kB)
		if d := s.wantOpen(1); d == c {
			t.Error("waits for a handshake whose packet was lost")
		}
		s.wantFetch(1, 128*kB, 192*kB)
		s.quiet()
	})
	t.Run("one that has just begun", func(t *testing.T) {
		s, _ := away(t)
		s.advance(health.SuspectAfter + 20*ms - 1)
		s.link(1, health.Up)
		s.quiet()
	})
	t.Run("an outage between two answers shows nothing about pipelining", func(t *testing.T) {
		s, a, _ := behind(t)
		s.advance(2 * time.Second)
		s.wantReport(ReportSilent, 0)
		s.link(0, health.Suspect)
		s.link(0, health.Up)
		s.wantClose(a.conn)
		s.sched.piece = 64 * kB
		s.tick()
		b := s.wantFetch(0, 64*kB, 128*kB)
		s.opened(s.wantOpen(0), 20*ms)
		s.quiet()
		s.headReceived(b, 1*mB)
		if c := s.wantFetch(0, 128*kB, 192*kB); c.conn != b.conn {
			t.Error("the link gets several connections")
		}
		s.quiet()
	})
	t.Run("a connection that is open", func(t *testing.T) {
		s, c := away(t)
		s.opened(c, 20*ms)
		s.advance(time.Second)
		s.link(1, health.Up)
		s.quiet()
	})
}

// TestNoLinkLeft: promise 2: the transfer waits for a bounded time and resumes at the same byte.
func TestNoLinkLeft(t *testing.T) {
	gone := func(t *testing.T) (*script, *asked) {
		s, _ := running(t, Config{WaitForLink: 30 * time.Second}, 2, 1*mB)
		s.ask(0, 128*kB, 1*mB)
		a := s.wantFetch(0, 128*kB, 1*mB)
		s.headReceived(a, 1*mB)
		s.read(a, 100*kB)
		s.sched.piece = 1 * mB
		s.link(1, health.Down)
		s.link(0, health.Down)
		s.drop(CloseConn)
		s.quiet()
		return s, a
	}
	t.Run("one comes back", func(t *testing.T) {
		s, _ := gone(t)
		s.advance(30*time.Second - ms)
		s.quiet()
		s.link(1, health.Up)
		a := s.wantFetch(1, 228*kB, 1*mB)
		s.opened(s.wantOpen(1), 20*ms)
		s.answer(a, 1*mB)
		s.deliver()
		s.wantDone()
		s.wantWaste(0)
	})
	t.Run("none comes back", func(t *testing.T) {
		s, _ := gone(t)
		s.advance(30 * time.Second)
		s.wantFail(fault.Silence)
	})
	t.Run("the patience begins anew", func(t *testing.T) {
		s, _ := gone(t)
		s.advance(29 * time.Second)
		s.link(0, health.Up)
		a := s.wantFetch(0, 228*kB, 1*mB)
		s.opened(s.wantOpen(0), 20*ms)
		s.headReceived(a, 1*mB)
		s.read(a, 1)
		s.link(0, health.Down)
		s.drop(CloseConn)
		s.advance(29 * time.Second)
		s.quiet()
		s.advance(time.Second)
		s.wantFail(fault.Silence)
	})
	t.Run("all are silent", func(t *testing.T) {
		s, _ := running(t, Config{WaitForLink: 30 * time.Second}, 1, 1*mB)
		s.ask(0, 64*kB, 1*mB)
		s.wantFetch(0, 64*kB, 1*mB)
		s.link(0, health.Suspect)
		s.advance(time.Second)
		s.drop(ReportSilent)
		s.quiet()
		s.advance(29 * time.Second)
		s.wantReport(ReportNothingDue, 0)
		s.advance(time.Second)
		s.wantFail(fault.Silence)
	})
	t.Run("all are suspects, and what was asked of them waits for the window", func(t *testing.T) {
		s, _ := running(t, Config{Reorder: 256 * kB, WaitForLink: 30 * time.Second}, 2, 8*mB)
		for i := range int8(2) {
			from := int64(1+i) * 2 * mB
			s.ask(i, from, from+2*mB)
			s.headReceived(s.wantFetch(i, from, from+2*mB), 8*mB)
		}
		s.link(0, health.Suspect)
		s.advance(time.Minute) // link 1 could be asked for the rest
		s.quiet()
		s.link(1, health.Suspect)
		s.advance(30*time.Second - 1)
		s.quiet()
		s.advance(1)
		s.wantFail(fault.Silence)
	})
	t.Run("what the client has not taken yet is still delivered", func(t *testing.T) {
		s, _ := running(t, Config{}, 1, 128*kB)
		s.ask(0, 64*kB, 128*kB)
		s.answer(s.wantFetch(0, 64*kB, 128*kB), 128*kB)
		s.drop(Keep)
		s.link(0, health.Down)
		s.advance(time.Hour)
		s.quiet()
		s.deliver()
		s.wantDone()
	})
}

func TestOpenFails(t *testing.T) {
	fail := func(t *testing.T, e Event) (*script, *asked) {
		s, _ := running(t, Config{}, 2, 1*mB)
		s.handle(Event{Kind: ConnClosed, Conn: s.m.conns[0].id})
		s.ask(0, 128*kB, 1*mB)
		a := s.wantFetch(0, 128*kB, 1*mB)
		e.Kind, e.Conn = OpenFailed, s.wantOpen(0)
		s.forget(e.Conn)
		s.handle(e)
		s.wantFree(span(128*kB, 1*mB))
		return s, a
	}
	t.Run("unreachable", func(t *testing.T) {
		s, _ := fail(t, Event{Outcome: fault.Unreachable})
		if a := s.wantReport(ReportFailed, 0); a.Cause != health.DialFailed {
			t.Errorf("cause %v", a.Cause)
		}
	})
	t.Run("unbound", func(t *testing.T) {
		s, _ := fail(t, Event{Outcome: fault.Unbound})
		if a := s.wantReport(ReportFailed, 0); a.Cause != health.BindFailed {
			t.Errorf("cause %v", a.Cause)
		}
	})
	t.Run("R183 the address may not be dialed over it: no fault, and no second try", func(t *testing.T) {
		s, _ := fail(t, Event{Outcome: fault.Denied})
		s.ask(0, 128*kB, 1*mB)
		s.quiet()
		s.advance(time.Minute)
		s.quiet()
	})
	t.Run("the address may be dialed once the link has been away: routes change", func(t *testing.T) {
		s, _ := fail(t, Event{Outcome: fault.Denied})
		s.handle(Event{Kind: LinkState, Link: 0, State: health.Down})
		s.handle(Event{Kind: LinkState, Link: 0, State: health.Up})
		s.ask(0, 128*kB, 1*mB)
		s.wantFetch(0, 128*kB, 1*mB)
		s.wantOpen(0)
		s.quiet()
	})
	t.Run("the origin refused: the link is well, and pauses", func(t *testing.T) {
		s, _ := fail(t, Event{Outcome: fault.Unreachable, OriginRefused: true})
		s.ask(0, 128*kB, 1*mB)
		s.quiet()
		s.advance(pauseAfterFailure)
		s.wantFetch(0, 128*kB, 1*mB)
		s.wantOpen(0)
		s.quiet()
	})
}

// TestWithheld: a link that may carry nothing more, since it costs money now, counts as one that may come back.
func TestWithheld(t *testing.T) {
	permit := func(s *script, i int8, may bool) {
		s.t.Helper()
		s.handle(Event{Kind: Permitted, Link: i, Allowed: may})
		s.tick()
	}
	begin := func(t *testing.T) (*script, *asked) {
		s, _ := running(t, Config{WaitForLink: 30 * time.Second}, 2, 1*mB)
		s.ask(0, 128*kB, 1*mB)
		a := s.wantFetch(0, 128*kB, 1*mB)
		s.headReceived(a, 1*mB)
		s.read(a, 100*kB)
		s.sched.piece = 1 * mB
		return s, a
	}
	t.Run("another link takes over", func(t *testing.T) {
		s, a := begin(t)
		permit(s, 0, false)
		s.wantClose(a.conn)
		s.link(0, health.Up) // without effect
		b := s.wantFetch(1, 228*kB, 1*mB)
		s.answer(b, 1*mB)
		s.deliver()
		s.wantDone()
		s.wantWaste(0)
	})
	t.Run("none is left", func(t *testing.T) {
		s, _ := begin(t)
		permit(s, 1, false)
		permit(s, 0, false)
		s.drop(CloseConn)
		s.advance(30*time.Second - ms)
		s.quiet()
		s.advance(ms)
		s.wantFail(fault.Silence)
	})
	t.Run("it is allowed again", func(t *testing.T) {
		s, _ := begin(t)
		permit(s, 1, false)
		permit(s, 0, false)
		s.drop(CloseConn)
		s.advance(20 * time.Second)
		s.quiet()
		permit(s, 0, true)
		a := s.wantFetch(0, 228*kB, 1*mB)
		s.opened(s.wantOpen(0), 20*ms)
		s.answer(a, 1*mB)
		s.deliver()
		s.wantDone()
	})
	t.Run("a silent one", func(t *testing.T) {
		s, _ := begin(t)
		s.advance(health.BanAfter - ms)
		s.drop(ReportSilent, ReportHedged, Fetch)
		permit(s, 0, false)
		s.wantReport(ReportNothingDue, 0)
		s.drop(CloseConn)
	})
	t.Run("one that was never allowed", func(t *testing.T) {
		s, _ := running(t, Config{}, 1, 1*mB)
		s.appears(1, false)
		s.link(1, health.Up)
		s.ask(1, 64*kB, 1*mB)
		s.quiet()
		permit(s, 1, true)
		s.wantFetch(1, 64*kB, 1*mB)
		s.wantOpen(1)
	})
	t.Run("before the first head", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB}, 2)
		s.tick()
		a := s.wantFetch(0, 0, 64*kB)
		s.wantOpen(0)
		permit(s, 0, false)
		s.wantClose(a.conn)
		s.wantFetch(1, 0, 64*kB)
	})
}
