package transfer

import (
	"testing"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
)

// TestSpare: a link that the policy spares carries nothing. The policy is asked when another link leaves or comes back, before the
// transfer fails.
func TestSpare(t *testing.T) {
	begin := func(t *testing.T) *script {
		s := start(t, Config{Initial: 64 * kB, Links: []LinkConfig{{}, {Spare: true}}}, 2)
		s.wantFetch(0, 0, 64*kB)
		return s
	}
	wants := func(s *script, ask bool) {
		s.t.Helper()
		if s.again != ask {
			s.t.Errorf("asks the policy: %v", s.again)
		}
	}
	fail := func(t *testing.T) *script {
		s := begin(t)
		s.openFailed(s.wantOpen(0), fault.Unreachable)
		wants(s, true)
		s.quiet()
		return s
	}
	t.Run("it takes the place of one that leaves", func(t *testing.T) {
		s := fail(t)
		s.handle(Event{Kind: Permitted, Link: 1, Allowed: true})
		a := s.wantFetch(1, 0, 64*kB)
		s.opened(s.wantOpen(1), 20*ms)
		s.answer(a, 64*kB)
		s.deliver()
		s.drop(ReportFailed)
		s.wantDone()
	})
	t.Run("it may not", func(t *testing.T) {
		s := fail(t)
		s.tick()
		s.wantFail(fault.Unreachable)
	})
	t.Run("links go and come back", func(t *testing.T) {
		s := begin(t)
		s.opened(s.wantOpen(0), 20*ms)
		wants(s, false)
		for _, state := range []health.State{health.Banned, health.Up} {
			s.link(0, state)
			wants(s, true)
			s.tick()
			wants(s, false)
		}
		s.link(0, health.Suspect)
		wants(s, false)
	})
	t.Run("it appears", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB, Links: []LinkConfig{{}}}, 1)
		s.wantFetch(0, 0, 64*kB)
		c := s.wantOpen(0)
		s.handle(Event{Kind: LinkState, Link: 1, State: health.Down, New: &LinkConfig{Spare: true}})
		s.link(1, health.Up)
		s.openFailed(c, fault.Unreachable)
		wants(s, true)
		s.handle(Event{Kind: Permitted, Link: 1, Allowed: true})
		s.wantFetch(1, 0, 64*kB)
		s.wantOpen(1)
	})
}
