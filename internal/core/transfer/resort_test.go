package transfer

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
)

// TestResort: a link that is a last resort carries nothing while another link may serve, and is tried before the transfer fails.
func TestResort(t *testing.T) {
	cfg := func() Config { return Config{Initial: 64 * kB, Links: []LinkConfig{{}, {Resort: true}}} }
	t.Run("R118 the other link cannot connect", func(t *testing.T) {
		s := start(t, cfg(), 2)
		s.wantFetch(0, 0, 64*kB)
		s.openFailed(s.wantOpen(0), fault.Unreachable)
		a := s.wantFetch(1, 0, 64*kB)
		s.opened(s.wantOpen(1), 20*ms)
		s.answer(a, 64*kB)
		s.deliver()
		s.drop(ReportFailed)
		s.wantDone()
	})
	t.Run("R118 neither can", func(t *testing.T) {
		s := start(t, cfg(), 2)
		s.wantFetch(0, 0, 64*kB)
		s.openFailed(s.wantOpen(0), fault.Unreachable)
		s.wantFetch(1, 0, 64*kB)
		s.openFailed(s.wantOpen(1), fault.Unreachable)
		s.wantFail(fault.Unreachable)
	})
	t.Run("R118 the other one serves", func(t *testing.T) {
		s := start(t, cfg(), 2)
		a := s.wantFetch(0, 0, 64*kB)
		s.opened(s.wantOpen(0), 20*ms)
		s.answer(a, 1*mB)
		s.sched.piece = 1 * mB
		s.tick()
		b := s.wantFetch(0, 64*kB, 1*mB)
		s.quiet()
		s.ended(b, fault.Changed)
		d := s.wantFetch(1, 64*kB, 1*mB) // the other one does not serve this version anymore
		s.opened(s.wantOpen(1), 20*ms)
		s.answer(d, 1*mB)
		s.deliver()
		s.wantDone()
	})
	t.Run("R118 the other one is gone", func(t *testing.T) {
		s := start(t, cfg(), 2)
		a := s.wantFetch(0, 0, 64*kB)
		s.opened(s.wantOpen(0), 20*ms)
		s.link(0, health.Down)
		s.forget(a.conn)
		s.drop(CloseConn)
		s.quiet()
		s.advance(10 * time.Second)
		b := s.wantFetch(1, 0, 64*kB)
		s.opened(s.wantOpen(1), 20*ms)
		s.answer(b, 64*kB)
		s.deliver()
		s.wantDone()
	})
}
