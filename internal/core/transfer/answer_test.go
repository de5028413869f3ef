package transfer

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
)

func TestShortAnswer(t *testing.T) {
	t.Run("R97 less than asked is legal", func(t *testing.T) {
		s, _ := running(t, Config{}, 1, 1*mB)
		s.ask(0, 64*kB, 512*kB)
		a := s.wantFetch(0, 64*kB, 512*kB)
		s.head(a, Event{Size: 1 * mB, Range: span(64*kB, 100*kB)})
		s.wantFree(span(100*kB, 1*mB))
		s.complete(a)
		s.ask(0, 100*kB, 1*mB)
		b := s.wantFetch(0, 100*kB, 1*mB)
		if b.conn != a.conn {
			t.Error("the connection is not used again")
		}
		s.answer(b, 1*mB)
		s.deliver()
		s.wantDone()
		s.wantWaste(0)
	})
	t.Run("R97 of the first request", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB}, 1)
		a := s.wantFetch(0, 0, 64*kB)
		s.opened(s.wantOpen(0), 0)
		s.head(a, Event{Size: 1 * mB, Range: span(0, 1*kB)})
		s.wantFree(span(1*kB, 1*mB))
	})
	t.Run("a 200 in place of the first range", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB}, 1)
		a := s.wantFetch(0, 0, 64*kB)
		s.opened(s.wantOpen(0), 0)
		s.head(a, Event{Size: 1 * mB, Range: span(0, 1*mB)})
		s.wantFree()
		s.wantCredit(a, 1*mB)
	})
}

func TestReset(t *testing.T) {
	reset := func(t *testing.T, cfg Config) (*script, *asked) {
		s, _ := running(t, cfg, 2, 1*mB)
		s.ask(0, 128*kB, 512*kB)
		a := s.wantFetch(0, 128*kB, 512*kB)
		s.headReceived(a, 1*mB)
		s.read(a, 100*kB)
		s.ended(a, fault.Reset)
		return s, a
	}
	t.Run("the prefix counts, another link continues at the cursor", func(t *testing.T) {
		s, _ := reset(t, Config{})
		s.wantFree(span(228*kB, 1*mB))
		s.ask(1, 228*kB, 1*mB)
		b := s.wantFetch(1, 228*kB, 1*mB)
		s.answer(b, 1*mB)
		s.deliver()
		s.wantDone()
		s.wantWaste(0)
	})
	t.Run("restart continuation fetches the prefix again", func(t *testing.T) {
		s, _ := reset(t, Config{Restart: true})
		s.wantFree(span(128*kB, 1*mB))
		s.ask(1, 128*kB, 1*mB)
		b := s.wantFetch(1, 128*kB, 1*mB)
		s.headReceived(b, 1*mB)
		s.read(b, 100*kB)
		s.wantWaste(100 * kB)
		s.complete(b)
		s.deliver()
		s.wantDone()
		s.wantWaste(100 * kB)
	})
	t.Run("restart continuation does not fetch what the client has", func(t *testing.T) {
		s, _ := running(t, Config{Restart: true}, 1, 1*mB)
		s.ask(0, 64*kB, 512*kB)
		a := s.wantFetch(0, 64*kB, 512*kB)
		s.headReceived(a, 1*mB)
		s.read(a, 100*kB)
		s.deliver()
		s.ended(a, fault.Reset)
		s.wantFree(span(164*kB, 1*mB))
	})
	t.Run("each time without a byte the link waits longer, then it leaves", func(t *testing.T) {
		s, _ := running(t, Config{}, 1, 1*mB)
		s.sched.piece = 1 * mB
		s.tick()
		begun := s.now
		n := 0
		for ; len(s.pending) == 0 || s.pending[len(s.pending)-1].Kind != Fail; n++ {
			if n > 20 {
				t.Fatal("asks for ever")
			}
			a := s.wantFetch(0, 64*kB, 1*mB)
			if n > 0 {
				s.opened(s.wantOpen(0), 20*ms)
			}
			s.ended(a, fault.Reset)
			for len(s.pending) == 0 {
				s.advance(10 * ms)
			}
		}
		s.wantFail(fault.Reset)
		if n != maxFailures || s.now.Sub(begun) < time.Second {
			t.Errorf("%d requests in %v", n, s.now.Sub(begun))
		}
	})
	t.Run("with bytes between it goes on", func(t *testing.T) {
		s, _ := running(t, Config{}, 1, 1*mB)
		s.sched.piece = 1 * mB
		s.tick()
		for at := int64(64 * kB); at < 1*mB; at += 64 * kB {
			a := s.wantFetch(0, at, 1*mB)
			if at > 64*kB {
				s.opened(s.wantOpen(0), 20*ms)
			}
			s.headReceived(a, 1*mB)
			s.read(a, 64*kB)
			if at < 1*mB-64*kB {
				s.ended(a, fault.Reset)
			}
		}
		s.deliver()
		s.wantDone()
		s.wantWaste(0)
	})
}

// TestLinkLeaves: an answer that is not part of the object takes its link out of the transfer, and the transfer fails when no
// link is left.
func TestLinkLeaves(t *testing.T) {
	for _, outcome := range []fault.Outcome{fault.Unwanted, fault.NoRange, fault.Changed, fault.BadRange} {
		t.Run(outcome.String(), func(t *testing.T) {
			s, _ := running(t, Config{}, 2, 1*mB)
			s.ask(0, 128*kB, 512*kB)
			a := s.wantFetch(0, 128*kB, 512*kB)
			s.ended(a, outcome)
			s.wantFree(span(128*kB, 1*mB))
			s.sched.piece = 64 * kB
			s.tick()
			b := s.wantFetch(1, 128*kB, 192*kB)
			s.headReceived(b, 1*mB)
			s.advance(time.Minute)
			for _, a := range s.pending {
				if a.Link == 0 {
					t.Fatalf("link 0 is used again: %s", s.show())
				}
			}
			s.drop(Open, Fetch, CloseConn, ReportSilent, ReportNothingDue)
			s.link(0, health.Suspect)
			s.link(0, health.Up) // it works, but it does not serve this object
			s.drop(Open, Fetch)
			s.ended(s.last(1), outcome)
			s.wantFail(outcome)
		})
	}
}

// last returns the latest request on link.
func (s *script) last(link int8) *asked {
	s.t.Helper()
	var last *asked
	for _, q := range s.asked {
		if q.link == link && (last == nil || q.id > last.id) {
			last = q
		}
	}
	if last == nil {
		s.t.Fatalf("nothing is asked of link %d", link)
	}
	return last
}

// oldest returns the request that a link answers next.
func (s *script) oldest(link int8) *asked {
	s.t.Helper()
	first := s.last(link)
	for _, q := range s.asked {
		if q.link == link && q.id < first.id {
			first = q
		}
	}
	return first
}

// TestNextRange: a connection whose answer was read to its end serves the next range.
func TestNextRange(t *testing.T) {
	t.Run("R134 on the same connection", func(t *testing.T) {
		s, conns := running(t, Config{}, 1, 1*mB)
		s.ask(0, 64*kB, 128*kB)
		a := s.wantFetch(0, 64*kB, 128*kB)
		s.headReceived(a, 1*mB)
		s.complete(a)
		s.ask(0, 128*kB, 256*kB)
		if b := s.wantFetch(0, 128*kB, 256*kB); a.conn != conns[0] || b.conn != conns[0] {
			t.Errorf("connections %d, %d and %d", conns[0], a.conn, b.conn)
		}
	})
}

func TestBusy(t *testing.T) {
	for _, c := range []struct {
		name        string
		after, want time.Duration
	}{{"Retry-After", 5 * time.Second, 5 * time.Second}, {"no Retry-After", 0, pauseAfterFailure}} {
		t.Run("R120 "+c.name, func(t *testing.T) {
			s, _ := running(t, Config{}, 2, 1*mB)
			s.ask(0, 128*kB, 512*kB)
			a := s.wantFetch(0, 128*kB, 512*kB)
			s.end(a, Event{Outcome: fault.Busy, RetryAfter: c.after})
			s.ask(0, 128*kB, 512*kB)
			s.advance(c.want - ms)
			s.quiet()
			s.advance(ms)
			s.wantFetch(0, 128*kB, 512*kB)
			if n := s.state().Links[0].Learned.MaxConns; n != 1 {
				t.Errorf("learned %d connections", n)
			}
		})
	}
	t.Run("the end of a suspicion does not shorten it", func(t *testing.T) {
		s, _ := running(t, Config{}, 2, 1*mB)
		s.ask(0, 128*kB, 512*kB)
		s.end(s.wantFetch(0, 128*kB, 512*kB), Event{Outcome: fault.Busy, RetryAfter: 5 * time.Second})
		s.link(0, health.Suspect)
		s.link(0, health.Up)
		s.ask(0, 128*kB, 512*kB)
		s.advance(5*time.Second - ms)
		s.quiet()
		s.advance(ms)
		s.wantFetch(0, 128*kB, 512*kB)
	})
}

// TestStale: RFC 9112 section 9.3.1: a reused connection that was closed before its first answer is nobody's fault.
func TestStale(t *testing.T) {
	s, _ := running(t, Config{}, 2, 1*mB)
	s.sched.piece = 1 * mB
	s.m.dropConn(s.m.conns[0].id) // its idle connection is gone
	s.tick()
	a := s.wantFetch(0, 128*kB, 1*mB)
	s.handle(Event{Kind: Opened, Conn: s.wantOpen(0), Reused: true})
	s.ended(a, fault.Stale)
	b := s.wantFetch(0, 128*kB, 1*mB) // at once, on the same link
	s.opened(s.wantOpen(0), 20*ms)
	s.answer(b, 1*mB)
	s.deliver()
	s.wantDone()
	s.wantWaste(0)
}

func TestIdleConnectionCloses(t *testing.T) {
	s, conns := running(t, Config{}, 1, 1*mB)
	s.handle(Event{Kind: ConnClosed, Conn: conns[0]})
	s.quiet()
	s.ask(0, 64*kB, 1*mB)
	s.wantFetch(0, 64*kB, 1*mB)
	s.wantOpen(0)
}
