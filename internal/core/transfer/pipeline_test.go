package transfer

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
)

// TestPipeliningIsEarned: one request until the first head, two until a second answer arrived in step, then up to eight.
func TestPipeliningIsEarned(t *testing.T) {
	s := start(t, Config{Initial: 64 * kB}, 1)
	s.sched.piece = 64 * kB
	var q []*asked
	more := func(n int) {
		t.Helper()
		s.tick()
		for range n {
			at := int64(64*kB) * int64(len(q))
			q = append(q, s.wantFetch(0, at, at+64*kB))
		}
		s.quiet()
	}
	q = append(q, s.wantFetch(0, 0, 64*kB))
	c := s.wantOpen(0)
	more(0)
	s.opened(c, 20*ms)
	more(0)
	s.headReceived(q[0], 10*mB)
	more(1) // the first head arrived: one more
	s.complete(q[0])
	more(1)
	s.headReceived(q[1], 10*mB) // the answer to a request that was sent before the previous answer was read: in step
	more(6)
	s.complete(q[1])
	more(1)
	for _, a := range q {
		if a.conn != c {
			t.Errorf("attempt %d runs on connection %d", a.id, a.conn)
		}
	}
	if p := s.state().Links[0].Learned.Pipelining; p != estimate.Works {
		t.Errorf("learned %v", p)
	}
}

// TestPipeliningIsKnown: the findings of an earlier transfer save the second step, never the first.
func TestPipeliningIsKnown(t *testing.T) {
	for _, p := range []struct {
		learned estimate.Pipelining
		depth   int
	}{{estimate.Untried, 2}, {estimate.Works, 8}, {estimate.Broken, 1}} {
		s := start(t, Config{Initial: 64 * kB, Links: []LinkConfig{{Learned: estimate.Entry{Pipelining: p.learned}}}}, 1)
		a := s.wantFetch(0, 0, 64*kB)
		c := s.wantOpen(0)
		s.opened(c, 20*ms)
		s.sched.piece = 64 * kB
		s.tick()
		s.quiet()
		s.headReceived(a, 10*mB)
		if n := len(s.queues[c]); n != p.depth {
			t.Errorf("book says %v: %d requests on the connection, want %d", p.learned, n, p.depth)
		}
	}
}

// behind makes a transfer whose connection has answered once, with two requests outstanding.
func behind(t *testing.T) (s *script, a, b *asked) {
	s = start(t, Config{Initial: 64 * kB}, 1)
	f := s.wantFetch(0, 0, 64*kB)
	s.opened(s.wantOpen(0), 20*ms)
	s.headReceived(f, 1*mB)
	s.ask(0, 64*kB, 128*kB)
	a = s.wantFetch(0, 64*kB, 128*kB)
	s.complete(f)
	s.ask(0, 128*kB, 192*kB)
	b = s.wantFetch(0, 128*kB, 192*kB)
	s.quiet()
	return s, a, b
}

// TestPipeliningIsBroken: if it is broken, the link gets several connections with one request each, and the requests are repeated
// once.
func TestPipeliningIsBroken(t *testing.T) {
	fallsBack := func(t *testing.T, s *script) {
		t.Helper()
		s.wantFree(span(64*kB, 1*mB))
		s.sched.piece = 64 * kB
		s.tick()
		var conns []uint32
		for i := range int64(3) {
			a := s.wantFetch(0, 64*kB*(i+1), 64*kB*(i+2))
			conns = append(conns, s.wantOpen(0))
			if a.conn != conns[i] {
				t.Error("two requests on a connection")
			}
		}
		s.quiet()
		for _, c := range conns {
			s.opened(c, 20*ms)
		}
		s.quiet()
		a := s.queues[conns[0]][0]
		s.headReceived(a, 1*mB)
		s.quiet()
		s.complete(a)
		if b := s.wantFetch(0, 256*kB, 320*kB); b.conn != conns[0] {
			t.Error("leaves a connection idle")
		}
		s.quiet()
		s.wantWaste(0)
		if p := s.state().Links[0].Learned.Pipelining; p != estimate.Broken {
			t.Errorf("learned %v", p)
		}
	}
	t.Run("closes after one answer", func(t *testing.T) {
		s, a, _ := behind(t)
		s.ended(a, fault.Unanswered)
		fallsBack(t, s)
	})
	t.Run("answers out of step", func(t *testing.T) {
		s, a, _ := behind(t)
		s.ended(a, fault.BadRange)
		fallsBack(t, s)
	})
	t.Run("swallows the second request", func(t *testing.T) {
		s, a, _ := behind(t)
		s.advance(3*time.Second + ms)
		s.wantReport(ReportSilent, 0)
		s.wantClose(a.conn)
		s.wantReport(ReportNothingDue, 0)
		s.quiet()
		s.link(0, health.Suspect)
		s.link(0, health.Up)
		fallsBack(t, s)
	})
	t.Run("closes though it seemed to work", func(t *testing.T) {
		s, a, b := behind(t)
		s.headReceived(a, 1*mB) // sent over a long round trip, it arrived after the first answer was sent
		s.complete(a)
		s.ended(b, fault.Unanswered)
		s.sched.piece = 64 * kB
		s.tick()
		a = s.wantFetch(0, 128*kB, 192*kB)
		s.opened(s.wantOpen(0), 20*ms)
		s.headReceived(a, 1*mB)
		for at := int64(192); at < 640; at += 64 {
			s.wantFetch(0, at*kB, (at+64)*kB)
		}
		s.complete(a)
		s.drop(Fetch)
		s.ended(s.queues[a.conn][0], fault.Unanswered)
		if p := s.m.links[0].pipelining; p != estimate.Broken {
			t.Errorf("pipelining: %v", p)
		}
	})
	t.Run("breaks answers off though it seemed to work", func(t *testing.T) {
		s, a, b := behind(t)
		s.headReceived(a, 1*mB)
		s.complete(a)
		s.sched.piece = 64 * kB
		s.tick()
		for range 2 { // with a request behind it, each time
			if p := s.m.links[0].pipelining; p != estimate.Works {
				t.Errorf("pipelining: %v", p)
			}
			s.headReceived(b, 1*mB)
			s.read(b, 10*kB)
			s.drop(Fetch)
			s.drop(Open)
			s.ended(b, fault.Short)
			s.tick()
			s.drop(Fetch)
			conn := s.wantOpen(0)
			s.opened(conn, 20*ms)
			b = s.queues[conn][0]
		}
		if p := s.m.links[0].pipelining; p != estimate.Broken {
			t.Errorf("pipelining: %v", p)
		}
	})
	t.Run("a request alone on its connection proves nothing", func(t *testing.T) {
		s, conns := running(t, Config{}, 1, 1*mB)
		s.ask(0, 64*kB, 128*kB)
		a := s.wantFetch(0, 64*kB, 128*kB)
		s.ended(a, fault.Unanswered)
		s.ask(0, 64*kB, 128*kB)
		if b := s.wantFetch(0, 64*kB, 128*kB); b.conn == conns[0] {
			t.Error("asks on a connection that is gone")
		}
		if p := s.state().Links[0].Learned.Pipelining; p != estimate.Untried {
			t.Errorf("learned %v", p)
		}
	})
	t.Run("an error page in place of a range excludes the link", func(t *testing.T) {
		s, conns := running(t, Config{}, 2, 1*mB)
		s.ask(0, 128*kB, 192*kB)
		a := s.wantFetch(0, 128*kB, 192*kB)
		if a.conn != conns[0] {
			t.Error("leaves a connection idle")
		}
		s.ended(a, fault.BadRange)
		s.ask(0, 128*kB, 192*kB)
		s.quiet()
	})
}

// TestAnnouncedClose: RFC 9112 section 9.6: requests behind the answer that announces the close stay unanswered.
func TestAnnouncedClose(t *testing.T) {
	t.Run("what was asked behind is free at once", func(t *testing.T) {
		s, a, b := behind(t)
		s.head(a, Event{Size: 1 * mB, Close: true})
		s.wantFree(span(128*kB, 1*mB))
		if s.m.Wanted(b.id) != 0 {
			t.Error("the request behind is still waited for")
		}
		if s.m.links[0].pipelining != estimate.Untried {
			t.Error("a server that says when it closes is not broken")
		}
	})
	t.Run("the answer itself is read to its end, and nothing more is asked on its connection", func(t *testing.T) {
		s, a, _ := behind(t)
		s.head(a, Event{Size: 1 * mB, Close: true})
		s.sched.piece = 64 * kB
		s.read(a, 10*kB)
		b := s.wantFetch(0, 128*kB, 192*kB)
		s.wantOpen(0)
		if b.conn == a.conn {
			t.Error("asks on a connection that closes")
		}
		s.queues[a.conn] = s.queues[a.conn][:1]
		s.complete(a)
		s.wantClose(a.conn) // or its reader would wait forever
		s.quiet()
		s.wantWaste(0)
	})
	t.Run("a hundred times", func(t *testing.T) { // Apache's default is 100 requests on a connection
		s, _ := running(t, Config{}, 1, 8*mB)
		s.sched.piece = 64 * kB
		s.tick()
		for s.state().Offset < 8*mB {
			for c, q := range s.queues {
				if len(q) == 0 {
					continue
				}
				s.handle(Event{Kind: Opened, Conn: c, RTT: 20 * ms})
				s.head(q[0], Event{Size: 8 * mB, Close: true})
				s.queues[c] = s.queues[c][:1]
				s.complete(q[0])
				s.deliver()
				break
			}
			if n := len(s.m.conns); n > 2 {
				t.Fatalf("%d connections", n)
			}
		}
		s.wantDone()
		s.wantWaste(0)
	})
}
