package transfer

import (
	"math"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
)

func TestStartWithRange(t *testing.T) {
	s := start(t, Config{Initial: 64 * kB}, 1)
	a := s.wantFetch(0, 0, 64*kB)
	s.wantCredit(a, 64*kB)
	c := s.wantOpen(0)
	s.quiet()
	if s.state().Size != Unknown {
		t.Fatalf("size %d before the first head", s.state().Size)
	}
	s.opened(c, 20*ms)
	s.quiet()
	s.headReceived(a, 1*mB)
	if n := s.want("Want", func(a Action) bool { return a.Kind == Want }).N; n != 1*mB || s.state().Size != 1*mB {
		t.Errorf("wants a window of %d for an object of %d", n, s.state().Size)
	}
	s.wantFree(span(64*kB, 1*mB))
	s.sched.piece = 2 * mB
	s.tick()
	b := s.wantFetch(0, 64*kB, 1*mB)
	if b.conn != a.conn {
		t.Error("asks on another connection")
	}
	s.complete(a)
	s.answer(b, 1*mB)
	s.wantKeep(c)
	s.quiet() // nothing is done before the client has it
	s.deliver()
	s.wantDone()
	s.wantWaste(0)
}

func TestStartWithOwnGET(t *testing.T) {
	s := start(t, Config{Reorder: 16 * mB}, 1)
	a := s.wantFetchAll(0)
	s.opened(s.wantOpen(0), 20*ms)
	s.headReceived(a, 40*mB)
	s.wantFree()
	s.wantCredit(a, 16*mB)
	for s.state().Offset < 40*mB {
		s.read(a, min(a.credit, a.r.End)-a.cursor)
		s.deliver()
	}
	s.complete(a)
	s.wantDone()
}

func TestStartInsideTheObject(t *testing.T) {
	t.Run("a bounded window", func(t *testing.T) {
		s := start(t, Config{Requested: span(100*kB, 300*kB), Initial: 64 * kB}, 1)
		a := s.wantFetch(0, 100*kB, 164*kB)
		s.opened(s.wantOpen(0), 0)
		s.headReceived(a, 1*mB)
		s.wantFree(span(164*kB, 300*kB))
	})
	t.Run("an open window", func(t *testing.T) {
		s := start(t, Config{Requested: span(100*kB, Unknown)}, 1)
		a := s.wantFetchAll(0)
		s.opened(s.wantOpen(0), 0)
		s.head(a, Event{Size: 1 * mB, Range: span(100*kB, 1*mB)})
		s.complete(a)
		s.deliver()
		s.wantDone()
	})
	t.Run("an end beyond the object", func(t *testing.T) {
		s := start(t, Config{Requested: span(100*kB, 3*mB)}, 1)
		a := s.wantFetchAll(0)
		s.opened(s.wantOpen(0), 0)
		s.head(a, Event{Size: 1 * mB, Range: span(100*kB, 1*mB)})
		s.complete(a)
		s.deliver()
		s.wantDone()
	})
	t.Run("a start near the largest offset", func(t *testing.T) {
		s := start(t, Config{Requested: span(math.MaxInt64-10, Unknown), Initial: 64 * kB}, 1)
		s.wantFetch(0, math.MaxInt64-10, math.MaxInt64)
	})
}

func TestSmallObject(t *testing.T) {
	s := start(t, Config{Initial: 64 * kB}, 1)
	a := s.wantFetch(0, 0, 64*kB)
	c := s.wantOpen(0)
	s.opened(c, 0)
	s.answer(a, 10)
	s.wantKeep(c)
	s.deliver()
	s.wantDone()
}

func TestEmptyObject(t *testing.T) {
	s := start(t, Config{}, 1)
	a := s.wantFetchAll(0)
	s.opened(s.wantOpen(0), 0)
	s.headReceived(a, 0)
	s.wantDone()
}

func TestFirstLink(t *testing.T) {
	up := []LinkConfig{{State: health.Up}, {State: health.Up}, {State: health.Up, Metered: true}}
	t.Run("the preferred one is asked", func(t *testing.T) {
		s := prepare(t, Config{Initial: 64 * kB, Links: up[:2]}, 2)
		s.m.cfg.Order = []int8{1, 0}
		s.tick()
		s.wantFetch(1, 0, 64*kB)
		s.wantOpen(1)
		s.quiet()
	})
	t.Run("unmetered ones connect at once", func(t *testing.T) {
		s := prepare(t, Config{Initial: 64 * kB, Links: up, Warm: true}, 3)
		s.tick()
		s.wantFetch(0, 0, 64*kB)
		s.wantOpen(0)
		s.wantOpen(1)
		s.quiet()
	})
	t.Run("one that the policy forbids is not asked", func(t *testing.T) {
		s := prepare(t, Config{Initial: 64 * kB, Links: up[:2], Warm: true}, 2)
		s.m.links[0].allowed, s.m.cfg.Order = false, []int8{1}
		s.tick()
		s.wantFetch(1, 0, 64*kB)
		s.wantOpen(1)
		s.quiet()
	})
}

func TestNoAnswerFromTheFirstLink(t *testing.T) {
	hedged := func(t *testing.T, first int64) (s *script, a, b *asked) {
		s = start(t, Config{Initial: first}, 2)
		if first > 0 {
			a = s.wantFetch(0, 0, first)
		} else {
			a = s.wantFetchAll(0)
		}
		s.opened(s.wantOpen(0), 20*ms)
		s.advance(2900 * ms)
		s.quiet() // a thinking origin is not asked twice at once
		s.advance(200 * ms)
		if first > 0 {
			b = s.wantFetch(1, 0, first)
		} else {
			b = s.wantFetchAll(1)
		}
		s.opened(s.wantOpen(1), 20*ms)
		s.quiet()
		return s, a, b
	}
	t.Run("R119 the second answers", func(t *testing.T) {
		s, a, b := hedged(t, 64*kB)
		s.headReceived(b, 1*mB)
		s.wantReport(ReportSilent, 0) // the origin is there, so it is the link's silence
		s.wantClose(a.conn)
		s.wantReport(ReportNothingDue, 0)
		s.complete(b)
		s.wantFree(span(64*kB, 1*mB))
		s.quiet()
	})
	t.Run("R119 the first answers after all", func(t *testing.T) {
		s, a, b := hedged(t, 64*kB)
		s.headReceived(a, 1*mB)
		s.complete(a)
		s.wantReport(ReportAlive, 0)
		s.quiet()
		s.headReceived(b, 1*mB) // a bounded copy is read and discarded
		s.read(b, 10*kB)
		s.wantWaste(10 * kB)
	})
	t.Run("the answers to both are the whole object", func(t *testing.T) {
		s, a, b := hedged(t, 0)
		s.headReceived(b, 100*mB)
		s.wantClose(a.conn)
		s.wantReport(ReportSilent, 0)
		s.wantReport(ReportNothingDue, 0)
		s.quiet()
		s.read(b, 1*mB)
		s.wantWaste(0)
	})
	t.Run("the first comes to life between", func(t *testing.T) {
		s, a, b := hedged(t, 0)
		s.headReceived(a, 100*mB)
		s.wantClose(b.conn)
		s.wantReport(ReportAlive, 0)
		s.quiet() // nothing of it is requested elsewhere
		s.read(a, 1*mB)
		s.wantWaste(0)
	})
	t.Run("R119 the second is refused, the first is waited for", func(t *testing.T) {
		s, a, b := hedged(t, 0)
		s.ended(b, fault.Unwanted)
		s.quiet()
		s.headReceived(a, 1*mB)
		s.wantFree()
		s.wantReport(ReportAlive, 0)
	})
	t.Run("the second is refused and the first says nothing", func(t *testing.T) {
		s, _, b := hedged(t, 0)
		s.ended(b, fault.Unwanted)
		s.advance(3 * time.Second)
		s.quiet() // some origins think for a long time
		s.advance(10 * time.Second)
		s.wantFail(fault.Silence)
	})
	t.Run("a third link does not ask for what two have been asked for", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB}, 3)
		a := s.wantFetch(0, 0, 64*kB)
		s.wantOpen(0) // its handshake hangs
		s.advance(s.limit(0) + health.ThinkingTime)
		b := s.wantFetch(1, 0, 64*kB)
		s.opened(s.wantOpen(1), 20*ms)
		s.headReceived(b, 1*mB)
		s.read(b, 1*kB)
		s.wantReport(ReportSilent, 0)
		s.quiet()
		s.advance(s.limit(1))
		s.wantReport(ReportSilent, 1)
		if s.m.attempt(a.id) == nil || s.m.attempt(b.id) == nil {
			t.Fatal("one of them is given up")
		}
		s.quiet()
	})
}

func TestNoLinkAnswers(t *testing.T) {
	t.Run("no connection", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB}, 2)
		s.wantFetch(0, 0, 64*kB)
		s.openFailed(s.wantOpen(0), fault.Unreachable)
		s.wantFetch(1, 0, 64*kB)
		c := s.wantOpen(1)
		s.quiet() // it is not known whether the origin is there at all: no report
		s.openFailed(c, fault.Unreachable)
		s.wantFail(fault.Unreachable)
	})
	t.Run("R105 an error page, then busy", func(t *testing.T) {
		s := start(t, Config{}, 2)
		a := s.wantFetchAll(0)
		s.opened(s.wantOpen(0), 0)
		s.ended(a, fault.Unwanted)
		b := s.wantFetchAll(1)
		s.opened(s.wantOpen(1), 0)
		s.ended(b, fault.Busy)
		s.wantFail(fault.Busy)
	})
	t.Run("not even a binding", func(t *testing.T) {
		s := start(t, Config{}, 1)
		s.wantFetchAll(0)
		s.openFailed(s.wantOpen(0), fault.Unbound)
		if a := s.wantReport(ReportFailed, 0); a.Cause != health.BindFailed {
			t.Errorf("cause %v", a.Cause)
		}
		s.wantFail(fault.Unbound)
	})
	t.Run("the only link goes away", func(t *testing.T) {
		s := start(t, Config{WaitForLink: 10 * time.Second}, 1)
		s.wantFetchAll(0)
		c := s.wantOpen(0)
		s.opened(c, 0)
		s.link(0, health.Down)
		s.wantClose(c)
		s.advance(10 * time.Second)
		s.wantFail(fault.Silence)
	})
	t.Run("the only link answers the second handshake", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB, WaitForLink: time.Minute}, 1)
		s.wantFetch(0, 0, 64*kB)
		c := s.wantOpen(0)
		s.advance(health.BanAfter)
		s.wantClose(c)
		s.advance(pauseAfterFailure)
		a := s.wantFetch(0, 0, 64*kB)
		s.opened(s.wantOpen(0), 20*ms)
		s.headReceived(a, 1*mB)
	})
	t.Run("the only link never answers", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB, WaitForLink: time.Minute}, 1)
		for range 5 { // see askFirst
			s.wantFetch(0, 0, 64*kB)
			c := s.wantOpen(0)
			s.advance(health.BanAfter)
			s.wantClose(c)
			s.advance(pauseAfterFailure)
		}
		s.drop(ReportNothingDue)
		s.wantFail(fault.Silence)
	})
	t.Run("the fault was the link's", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB}, 2)
		s.wantFetch(0, 0, 64*kB)
		s.openFailed(s.wantOpen(0), fault.Unreachable)
		a := s.wantFetch(1, 0, 64*kB)
		s.opened(s.wantOpen(1), 0)
		s.headReceived(a, 1*mB)
		if a := s.wantReport(ReportFailed, 0); a.Cause != health.DialFailed {
			t.Errorf("cause %v", a.Cause)
		}
	})
	t.Run("R184 a link over which the address may not be dialed gets no other chance", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB}, 2)
		s.wantFetch(0, 0, 64*kB)
		s.openFailed(s.wantOpen(0), fault.Denied)
		a := s.wantFetch(1, 0, 64*kB)
		s.opened(s.wantOpen(1), 0)
		s.headReceived(a, 1*mB)
		s.drop(Want)
		s.advance(time.Minute)
		s.ask(0, 64*kB, 128*kB)
		for _, x := range s.m.attempts {
			if x.link == 0 {
				t.Errorf("attempt %+v", x)
			}
		}
	})
	t.Run("a link that was refused gets another chance with the known object", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB}, 2)
		a := s.wantFetch(0, 0, 64*kB)
		s.opened(s.wantOpen(0), 0)
		s.ended(a, fault.Unwanted)
		b := s.wantFetch(1, 0, 64*kB)
		s.opened(s.wantOpen(1), 0)
		s.headReceived(b, 1*mB)
		s.ask(0, 64*kB, 128*kB)
		s.wantFetch(0, 64*kB, 128*kB)
	})
}

func TestNoLinkIsUp(t *testing.T) {
	t.Run("one comes", func(t *testing.T) {
		s := prepare(t, Config{Initial: 64 * kB, WaitForLink: 10 * time.Second}, 2)
		s.tick()
		s.advance(9 * time.Second)
		s.quiet()
		s.link(1, health.Up)
		s.wantFetch(1, 0, 64*kB)
	})
	t.Run("none comes", func(t *testing.T) {
		s := prepare(t, Config{Initial: 64 * kB, WaitForLink: 10 * time.Second}, 2)
		s.tick()
		s.advance(10 * time.Second)
		s.wantFail(fault.Silence)
	})
}

// TestFailOnce: a transfer fails once, however many reasons there are.
func TestFailOnce(t *testing.T) {
	s := start(t, Config{}, 1)
	for _, outcome := range []fault.Outcome{fault.Stale, fault.Stale, fault.Stale, fault.Stale, fault.Reset} {
		a := s.wantFetchAll(0)
		s.handle(Event{Kind: Opened, Conn: s.wantOpen(0), Reused: true})
		s.ended(a, outcome)
	}
	s.wantFail(fault.Reset)
}

// TestStaleFirst: RFC 9112 section 9.3.1: a reused connection may turn out to be closed; the request is sent again.
func TestStaleFirst(t *testing.T) {
	s := start(t, Config{}, 1)
	for range 4 { // as many as the pool keeps for a link and an origin
		a := s.wantFetchAll(0)
		s.handle(Event{Kind: Opened, Conn: s.wantOpen(0), Reused: true})
		s.ended(a, fault.Stale)
	}
	a := s.wantFetchAll(0)
	s.opened(s.wantOpen(0), 20*ms)
	s.headReceived(a, 1*mB)
	if f := s.m.links[0].failures; f != 0 {
		t.Errorf("stale connections count as %d failures", f)
	}
}
