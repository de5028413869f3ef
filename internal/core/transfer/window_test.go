package transfer

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// TestSlowClient: bytes that the client does not take are not fetched, and a link that may not deliver does not count as silent.
func TestSlowClient(t *testing.T) {
	s, _ := running(t, Config{Reorder: 256 * kB}, 1, 1*mB)
	s.ask(0, 64*kB, 1*mB)
	a := s.wantFetch(0, 64*kB, 1*mB)
	s.wantCredit(a, 320*kB)
	s.headReceived(a, 1*mB)
	s.read(a, 256*kB)
	s.wantCredit(a, 320*kB)
	for range 10 { // minutes in which the client does not read
		s.advance(time.Minute)
		s.quiet()
	}
	s.wantCredit(a, 320*kB)
	if s.state().Links[0].Busy {
		t.Error("a link that waits for the client is called busy")
	}
	s.handle(Event{Kind: Delivered, N: 1})
	s.wantCredit(a, 320*kB+1) // it has nothing to read: any step wakes it
	s.handle(Event{Kind: Delivered, N: 20 * kB})
	s.wantCredit(a, 320*kB+1) // one step in eight of the window
	s.handle(Event{Kind: Delivered, N: 12 * kB})
	s.wantCredit(a, 352*kB+1)
	s.advance(s.limit(0) - 1) // from now on bytes are due
	s.quiet()
	s.advance(1)
	s.wantReport(ReportSilent, 0)
	s.read(a, a.credit-a.cursor)
	s.wantReport(ReportAlive, 0)
	for s.state().Offset < 1*mB {
		s.deliver()
		if s.asked[a.id] != nil {
			s.read(a, min(a.credit, a.r.End)-a.cursor)
		}
	}
	s.wantDone()
}

// TestHeadIsNeverBlocked: promise 3: a full window cannot deadlock.
func TestHeadIsNeverBlocked(t *testing.T) {
	// blocked makes a transfer whose two links have all asked for ranges that only the delivery of the next offset unblocks.
	blocked := func(t *testing.T) (s *script, head *asked) {
		s, _ = running(t, Config{Reorder: 256 * kB}, 2, 8*mB)
		s.ask(0, 128*kB, 192*kB)
		head = s.wantFetch(0, 128*kB, 192*kB)
		s.headReceived(head, 8*mB)
		s.ask(0, 256*kB, 4*mB) // behind the next offset, on the same connection
		s.wantFetch(0, 256*kB, 4*mB)
		s.ask(1, 192*kB, 256*kB)
		q := s.wantFetch(1, 192*kB, 256*kB)
		s.headReceived(q, 8*mB)
		s.ask(1, 4*mB, 8*mB) // beyond the window: the scheduler should not, but may
		s.wantFetch(1, 4*mB, 8*mB)
		s.complete(q)
		far := s.last(1)
		s.headReceived(far, 8*mB)
		s.wantCredit(far, 4*mB)
		s.quiet()
		return s, head
	}
	t.Run("its link dies", func(t *testing.T) {
		s, head := blocked(t)
		s.sched.piece = 1 * mB
		at := head.cursor
		s.link(0, health.Down) // and with it the requests behind
		s.drop(CloseConn)
		q := s.wantFetch(1, at, 192*kB)
		s.wantOpen(1)
		s.wantCredit(q, 192*kB)
	})
	t.Run("its link falls silent", func(t *testing.T) {
		s, head := blocked(t)
		s.advance(time.Second)
		s.wantReport(ReportSilent, 0)
		s.wantReport(ReportHedged, 0)
		s.wantFetch(1, head.cursor, 192*kB)
		c := s.wantOpen(1)
		s.opened(c, 20*ms)
		q := s.last(1)
		s.headReceived(q, 8*mB)
		s.complete(q)
		s.deliver()
		if s.state().Offset != 256*kB {
			t.Errorf("offset %d", s.state().Offset)
		}
	})
	t.Run("its link has as many connections as it may have", func(t *testing.T) {
		links := []LinkConfig{{Learned: estimate.Entry{Pipelining: estimate.Broken}}}
		s, conns := running(t, Config{Reorder: 256 * kB, Links: links}, 1, 8*mB)
		for i := range int64(3) {
			s.ask(0, (i+1)*2*mB, (i+2)*2*mB)
			a := s.wantFetch(0, (i+1)*2*mB, (i+2)*2*mB)
			if a.conn != conns[0] {
				s.opened(s.wantOpen(0), 20*ms)
			}
			s.headReceived(a, 8*mB)
			s.wantCredit(a, a.r.Start)
		}
		s.sched.piece = 64 * kB
		s.tick()
		s.wantFetch(0, 64*kB, 128*kB)
		s.wantOpen(0)
	})
	// refused makes a transfer in which link 0 waits for bytes that link 1 owed and will not deliver.
	refused := func(t *testing.T) (s *script, far *asked) {
		s, _ = running(t, Config{Reorder: 256 * kB}, 2, 8*mB)
		s.ask(0, 512*kB, 8*mB)
		far = s.wantFetch(0, 512*kB, 8*mB)
		s.headReceived(far, 8*mB)
		s.ask(1, 128*kB, 512*kB)
		s.ended(s.wantFetch(1, 128*kB, 512*kB), fault.Unwanted)
		s.sched.piece = 1 * mB
		s.tick()
		s.wantFetch(0, 128*kB, 512*kB)
		return s, far
	}
	t.Run("the origin serves no further connection", func(t *testing.T) {
		s, far := refused(t)
		s.opened(s.wantOpen(0), 20*ms)
		s.ended(s.last(0), fault.Busy)
		s.wantFree(span(128*kB, 8*mB)) // the connection that waits was given up
		if s.m.conn(far.conn) != nil {
			t.Error("it still waits")
		}
		s.advance(pauseAfterFailure)
		s.wantFetch(0, 128*kB, 128*kB+1*mB)
		s.opened(s.wantOpen(0), 20*ms)
		s.quiet()
	})
	t.Run("the host may have no further connection", func(t *testing.T) {
		s, far := refused(t)
		s.openFailed(s.wantOpen(0), fault.NoSlot)
		s.wantClose(far.conn) // which frees its slot
		s.wantFetch(0, 128*kB, 512*kB)
		s.openFailed(s.wantOpen(0), fault.NoSlot)
		s.wantFree(span(128*kB, 8*mB))
		s.quiet()
		s.handle(Event{Kind: SlotFreed, Link: 0})
		s.wantFetch(0, 128*kB, 128*kB+1*mB)
		s.opened(s.wantOpen(0), 20*ms)
		s.quiet()
	})
	t.Run("not behind what waits for it", func(t *testing.T) {
		s, _ := running(t, Config{Reorder: 256 * kB}, 1, 8*mB)
		s.ask(0, 256*kB, 8*mB)
		s.headReceived(s.wantFetch(0, 256*kB, 8*mB), 8*mB)
		s.ask(0, 64*kB, 256*kB)
		s.wantFetch(0, 64*kB, 256*kB)
		s.wantOpen(0)
	})
}

// TestNoFurtherConnection: the host has its maximum of connections over a link, one of them reads, and a request behind it waits
// for the window. An earlier range cannot be requested there.
func TestNoFurtherConnection(t *testing.T) {
	// full makes a transfer whose links are all of this kind, except that the last one of several is idle. They read reads.
	full := func(t *testing.T, n int) (s *script, reads []*asked) {
		works := LinkConfig{Learned: estimate.Entry{Pipelining: estimate.Works}}
		s, _ = running(t, Config{Reorder: 256 * kB, Links: slices.Repeat([]LinkConfig{works}, n)}, n, 16*mB)
		at := int64(n) * 64 * kB
		for i := range max(1, n-1) {
			link := int8(i)
			s.ask(link, at, at+32*kB)
			a := s.wantFetch(link, at, at+32*kB)
			s.headReceived(a, 16*mB)
			far := int64(i+1) * 4 * mB
			s.ask(link, far, far+4*mB)
			s.wantFetch(link, far, far+4*mB)
			s.sched.todo = append(s.sched.todo, schedule.Decision{Do: schedule.Open, Link: link})
			s.tick()
			s.openFailed(s.wantOpen(link), fault.NoSlot)
			reads = append(reads, a)
			at += 32 * kB
		}
		s.quiet()
		s.sched.piece = 16 * mB
		return s, reads
	}
	t.Run("the only link reads on, and then gives way", func(t *testing.T) {
		s, reads := full(t, 1)
		a := reads[0]
		from := a.r.End
		s.tick()
		s.quiet() // above all, it does not try to connect
		s.read(a, 16*kB)
		s.quiet()
		far := s.queues[a.conn][1]
		s.complete(a)
		s.quiet()
		s.headReceived(far, 16*mB)
		s.wantClose(a.conn)
		b := s.wantFetch(0, from, 4*mB)
		s.wantOpen(0)
		if b.conn == a.conn {
			t.Error("on the connection that is closed")
		}
	})
	t.Run("another link has work", func(t *testing.T) {
		s, reads := full(t, 2)
		from := reads[0].r.End
		s.tick()
		s.wantFetch(1, from, 4*mB)
		s.quiet()
	})
	t.Run("a third link has work", func(t *testing.T) {
		s, reads := full(t, 3)
		from := reads[1].r.End
		s.tick()
		s.wantFetch(2, from, 4*mB)
		s.quiet()
	})
	t.Run("another link brings what a silent one owes", func(t *testing.T) {
		works := LinkConfig{Learned: estimate.Entry{Pipelining: estimate.Works}}
		s, _ := running(t, Config{Reorder: 256 * kB, Links: slices.Repeat([]LinkConfig{works}, 3)}, 3, 16*mB)
		s.m.links[1].connect = estimate.RTT{}
		s.m.links[1].connect.Add(5 * time.Second) // else it would be chosen at once
		s.ask(0, 256*kB, 320*kB)
		a := s.wantFetch(0, 256*kB, 320*kB)
		s.headReceived(a, 16*mB)
		s.ask(0, 400*kB, 500*kB)
		s.wantFetch(0, 400*kB, 500*kB)
		s.sched.todo = append(s.sched.todo, schedule.Decision{Do: schedule.Open, Link: 0})
		s.tick()
		s.openFailed(s.wantOpen(0), fault.NoSlot)
		s.ask(2, 192*kB, 256*kB)
		s.headReceived(s.wantFetch(2, 192*kB, 256*kB), 16*mB)
		for range health.BodyPause / (50 * ms) {
			s.advance(50 * ms)
			s.read(a, 2*kB)
		}
		s.wantReport(ReportSilent, 2)
		s.wantReport(ReportHedged, 2)
		s.wantFetch(1, 192*kB, 256*kB)
		s.quiet()
	})
}

// TestSpareConnection: an open connection is used before another one is made, even if the link should have fewer.
func TestSpareConnection(t *testing.T) {
	s, conns := running(t, Config{Reorder: 256 * kB}, 1, 8*mB)
	s.sched.todo = append(s.sched.todo, schedule.Decision{Do: schedule.Open, Link: 0})
	s.tick()
	spare := s.wantOpen(0)
	s.opened(spare, 20*ms)
	s.ask(0, 256*kB, 8*mB)
	a := s.wantFetch(0, 256*kB, 8*mB)
	s.headReceived(a, 8*mB)
	s.ask(0, 64*kB, 256*kB)
	if b := s.wantFetch(0, 64*kB, 256*kB); a.conn != conns[0] || b.conn != spare {
		t.Errorf("requests on connections %d and %d, want %d and %d", a.conn, b.conn, conns[0], spare)
	}
	s.quiet()
}

func TestWindowChanges(t *testing.T) {
	s, _ := running(t, Config{Reorder: 256 * kB}, 1, 8*mB)
	s.ask(0, 64*kB, 8*mB)
	a := s.wantFetch(0, 64*kB, 8*mB)
	s.headReceived(a, 8*mB)
	s.wantCredit(a, 320*kB)
	s.handle(Event{Kind: Granted, N: 1 * mB})
	s.wantCredit(a, 64*kB+1*mB)
	s.read(a, 512*kB)
	if c := s.m.committed(); c != 1*mB {
		t.Errorf("%d bytes committed", c)
	}
	s.handle(Event{Kind: Granted, N: 128 * kB}) // credit cannot be taken back
	s.wantCredit(a, 64*kB+1*mB)
	s.read(a, 512*kB)
	s.handle(Event{Kind: Delivered, N: 512 * kB})
	s.wantCredit(a, 64*kB+1*mB)
	if c := s.m.committed(); c != 512*kB || s.state().Held != 512*kB {
		t.Errorf("%d bytes committed, %d held", c, s.state().Held)
	}
	s.advance(time.Minute)
	s.quiet()
	s.deliver()
	s.wantCredit(a, 64*kB+1*mB+128*kB)
	t.Run("no window at all", func(t *testing.T) {
		s, _ := running(t, Config{}, 1, 1*mB)
		s.handle(Event{Kind: Granted, N: 0})
		s.sched.piece = 1 * mB
		s.tick()
		if a := s.wantFetch(0, 64*kB, 1*mB); a.credit <= a.cursor {
			t.Error("nothing may be read")
		}
	})
}

// TestWanted: the engine discards bytes that an attempt reads beyond its wanted part before the machine sees them.
func TestWanted(t *testing.T) {
	s, a, b := cut(t, 2)
	if w := s.m.Wanted(a.id); w != 2*mB {
		t.Errorf("wanted up to %d", w)
	}
	s.ended(b, fault.Reset)
	if w := s.m.Wanted(b.id); w != 0 {
		t.Errorf("a forgotten attempt is wanted up to %d", w)
	}
	s.handle(Event{Kind: Read, Attempt: b.id, N: 10}) // read before the loop knew
	s.handle(Event{Kind: HeadReceived, Attempt: b.id, Range: segment.Range{Start: 1 * mB, End: 2 * mB}, Size: 2 * mB})
	s.handle(Event{Kind: Ended, Attempt: b.id, Outcome: fault.Complete})
	s.quiet()
}

// TestMultiplexedWindow: over HTTP/2 (R123) everything that was requested may have to be held, so it fits into the grant.
func TestMultiplexedWindow(t *testing.T) {
	s := start(t, Config{Initial: 64 * kB, Reorder: 256 * kB}, 1)
	a := s.wantFetch(0, 0, 64*kB)
	c := s.wantOpen(0)
	s.handle(Event{Kind: Opened, Conn: c, RTT: 20 * ms, Multiplexed: true})
	s.handle(Event{Kind: Granted, N: 900 * kB})
	s.headReceived(a, 8*mB)
	if w := s.state().Window; w != 800*kB {
		t.Fatalf("a window of %d: with what a range may reach beyond it, it is not %d", w, 900*kB)
	}
	s.ask(0, 64*kB, 8*mB)
	s.wantFetch(0, 64*kB, 800*kB)
	if n := s.m.committed(); n != 800*kB {
		t.Errorf("%d bytes may have to be held", n)
	}
	s.complete(a)
	s.ask(0, 800*kB-1, 8*mB) // at the edge a range reaches beyond the window, or slivers would be requested
	s.wantFetch(0, 800*kB-1, 900*kB-1)
	if n := s.m.committed(); n > 900*kB {
		t.Errorf("%d bytes may have to be held, %d are granted", n, 900*kB)
	}
}
