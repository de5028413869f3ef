package transfer

import (
	"testing"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/segment"
)

func startAhead(t *testing.T, first int64, asks segment.Range, links ...LinkConfig) *script {
	s := prepare(t, Config{Initial: first, Warm: true, Ahead: asks, AheadEach: 64 * kB, Links: links}, len(links))
	s.tick()
	return s
}

// ahead starts a transfer whose second link is asked for [64 kB, 128 kB) before the first response; first is the size of the
// first range, 0 for the client's own GET.
func ahead(t *testing.T, first int64) (s *script, a, b *asked) {
	s = startAhead(t, first, span(64*kB, 128*kB), LinkConfig{State: health.Up}, LinkConfig{State: health.Up})
	if first > 0 {
		a = s.wantFetch(0, 0, first)
	} else {
		a = s.wantFetchAll(0)
	}
	s.wantOpen(0)
	b = s.wantFetchAhead(1, 64*kB, 128*kB)
	s.wantOpen(1)
	return s, a, b
}

func TestAhead(t *testing.T) {
	t.Run("beside a first range", func(t *testing.T) {
		s, a, b := ahead(t, 64*kB)
		s.quiet()
		s.opened(a.conn, 20*ms)
		s.opened(b.conn, 20*ms)
		s.headReceived(a, 1*mB)
		s.wantFree(span(128*kB, 1*mB))
		s.headReceived(b, 1*mB)
		s.complete(b)
		s.complete(a)
		s.wantWaste(0)
	})
	t.Run("beside the client's own GET", func(t *testing.T) {
		s, a, b := ahead(t, 0)
		s.opened(a.conn, 20*ms)
		s.opened(b.conn, 20*ms)
		s.headReceived(a, 1*mB)
		s.wantFree()
		s.headReceived(b, 1*mB) // the first response is wanted up to here now
		s.wantFree(span(128*kB, 1*mB))
		if w := s.m.Wanted(a.id); w != 64*kB {
			t.Errorf("the first response is wanted up to %d", w)
		}
	})
	t.Run("an object that ends before it", func(t *testing.T) {
		s, a, b := ahead(t, 64*kB)
		s.opened(a.conn, 20*ms)
		s.opened(b.conn, 20*ms)
		s.headReceived(a, 60*kB)
		s.ended(b, fault.Changed)
		s.complete(a)
		s.deliver()
		s.wantDone()
	})
	t.Run("a response that does not fit is not the link's fault", func(t *testing.T) {
		s, a, b := ahead(t, 64*kB)
		s.opened(a.conn, 20*ms)
		s.opened(b.conn, 20*ms)
		s.headReceived(a, 1*mB)
		s.ended(b, fault.Changed)
		s.wantFree(span(64*kB, 1*mB))
		if !s.m.Usable(s.now, 1) {
			t.Error("the link is left out")
		}
	})
	t.Run("the first link fails", func(t *testing.T) {
		s, a, b := ahead(t, 64*kB)
		s.openFailed(a.conn, fault.Unreachable)
		s.wantClose(b.conn)
		s.wantFetch(1, 0, 64*kB)
	})
	t.Run("never over a metered link", func(t *testing.T) {
		s := startAhead(t, 64*kB, span(64*kB, 128*kB), LinkConfig{State: health.Up}, LinkConfig{State: health.Up, Metered: true})
		s.wantFetch(0, 0, 64*kB)
		s.wantOpen(0)
		s.quiet()
	})
	t.Run("over one link only", func(t *testing.T) {
		up := LinkConfig{State: health.Up}
		s := startAhead(t, 64*kB, span(64*kB, 128*kB), up, up, up)
		s.wantFetch(0, 0, 64*kB)
		s.wantOpen(0)
		s.wantFetchAhead(1, 64*kB, 128*kB)
		s.wantOpen(1)
		s.wantOpen(2)
		s.quiet()
	})
	t.Run("over each link where the size is known", func(t *testing.T) {
		up := LinkConfig{State: health.Up}
		s := startAhead(t, 64*kB, span(64*kB, 160*kB), up, up, up, up)
		a := s.wantFetch(0, 0, 64*kB)
		s.wantOpen(0)
		b := s.wantFetchAhead(1, 64*kB, 128*kB)
		s.wantOpen(1)
		c := s.wantFetchAhead(2, 128*kB, 160*kB)
		s.wantOpen(2)
		s.wantOpen(3)
		s.quiet()
		for _, q := range []*asked{a, b, c} {
			s.opened(q.conn, 20*ms)
		}
		s.headReceived(a, 1*mB)
		s.wantFree(span(160*kB, 1*mB))
		s.headReceived(c, 1*mB)
		s.ended(b, fault.Changed)
		s.wantFree(span(64*kB, 128*kB), span(160*kB, 1*mB))
		s.complete(c)
		s.complete(a)
		s.wantWaste(0)
	})
	t.Run("over one link beside the client's own GET", func(t *testing.T) {
		up := LinkConfig{State: health.Up}
		s := startAhead(t, 0, span(64*kB, 160*kB), up, up, up)
		s.wantFetchAll(0)
		s.wantOpen(0)
		s.wantFetchAhead(1, 64*kB, 128*kB)
		s.wantOpen(1)
		s.wantOpen(2)
		s.quiet()
	})
}

// TestAheadIsNotSilent: the response to a request made ahead may have arrived; it is handled once the first response has arrived.
func TestAheadIsNotSilent(t *testing.T) {
	t.Run("its time begins with the first response", func(t *testing.T) {
		s, a, b := ahead(t, 64*kB)
		s.opened(b.conn, 20*ms)
		s.advance(700 * ms)
		s.opened(a.conn, 20*ms)
		s.advance(2900 * ms) // a thinking origin
		s.headReceived(a, 1*mB)
		s.complete(a)
		s.quiet()
		s.advance(s.limit(1) + health.ThinkingTime + 2*20*ms - 1)
		s.quiet()
		s.advance(1)
		s.wantReport(ReportSilent, 1)
		s.headReceived(b, 1*mB)
		s.wantReport(ReportAlive, 1)
	})
	t.Run("its link gets a copy of the first request", func(t *testing.T) {
		s, a, b := ahead(t, 64*kB)
		s.opened(a.conn, 20*ms)
		s.opened(b.conn, 20*ms)
		s.advance(health.BanAfter - 1)
		s.quiet()
		s.advance(1)
		s.wantClose(b.conn)
		s.wantFetch(1, 0, 64*kB)
		s.wantOpen(1)
		s.quiet()
	})
	t.Run("also if its connection hangs, too", func(t *testing.T) {
		s, _, b := ahead(t, 64*kB)
		s.advance(health.SuspectAfter + health.ThinkingTime - 1)
		s.quiet()
		s.advance(1)
		s.wantClose(b.conn)
		s.wantReport(ReportNothingDue, 1)
		s.wantFetch(1, 0, 64*kB)
		s.wantOpen(1)
		s.quiet()
	})
}
