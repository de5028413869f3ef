package transfer

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
)

// slotFreed says that a connection over a link may be opened again.
func (s *script) slotFreed(link int8) {
	s.t.Helper()
	s.handle(Event{Kind: SlotFreed, Link: link})
}

// It is nobody's fault if a host has the maximum number of connections over a link.
func TestNoSlotAtTheStart(t *testing.T) {
	t.Run("the next link is asked at once", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB}, 2)
		s.wantFetch(0, 0, 64*kB)
		s.openFailed(s.wantOpen(0), fault.NoSlot)
		a := s.wantFetch(1, 0, 64*kB)
		s.opened(s.wantOpen(1), 20*ms)
		s.headReceived(a, 1*mB)
		s.quiet() // nothing is reported about link 0
		if s.m.links[0].failures != 0 || s.m.links[0].excluded {
			t.Errorf("%+v", s.m.links[0])
		}
		s.slotFreed(0)
		s.ask(0, 64*kB, 128*kB)
		s.wantFetch(0, 64*kB, 128*kB)
		s.wantOpen(0)
	})
	t.Run("no link: it waits, and that is no silence", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB, WaitForLink: time.Minute}, 1)
		for range 20 { // more often than links that do not answer are tried
			s.wantFetch(0, 0, 64*kB)
			s.openFailed(s.wantOpen(0), fault.NoSlot)
			s.advance(10 * time.Second)
			s.quiet()
			s.slotFreed(0)
		}
		a := s.wantFetch(0, 0, 64*kB)
		s.opened(s.wantOpen(0), 20*ms)
		s.headReceived(a, 1*mB)
		s.quiet()
	})
	t.Run("the other link is dead", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB}, 2)
		s.wantFetch(0, 0, 64*kB)
		s.openFailed(s.wantOpen(0), fault.NoSlot)
		s.wantFetch(1, 0, 64*kB)
		s.openFailed(s.wantOpen(1), fault.Unreachable)
		s.advance(9 * time.Second)
		s.quiet()
		s.slotFreed(0)
		s.wantFetch(0, 0, 64*kB)
		s.wantOpen(0)
	})
	t.Run("not for ever", func(t *testing.T) {
		s := start(t, Config{Initial: 64 * kB}, 1)
		s.wantFetch(0, 0, 64*kB)
		s.openFailed(s.wantOpen(0), fault.NoSlot)
		s.advance(10*time.Second - 1)
		s.quiet()
		s.advance(1)
		s.wantFail(fault.NoSlot)
	})
	t.Run("links that connect ahead", func(t *testing.T) {
		s := prepare(t, Config{Initial: 64 * kB, Links: []LinkConfig{{State: health.Up}, {State: health.Up}}, Warm: true}, 2)
		s.tick()
		s.wantFetch(0, 0, 64*kB)
		s.opened(s.wantOpen(0), 20*ms)
		s.openFailed(s.wantOpen(1), fault.NoSlot)
		s.quiet()
	})
}

func TestNoSlotInTheMiddle(t *testing.T) {
	t.Run("what was to be fetched is free again", func(t *testing.T) {
		s, conns := running(t, Config{}, 1, 1*mB)
		s.handle(Event{Kind: ConnClosed, Conn: conns[0]})
		s.ask(0, 64*kB, 128*kB)
		s.wantFetch(0, 64*kB, 128*kB)
		s.openFailed(s.wantOpen(0), fault.NoSlot)
		s.wantFree(span(64*kB, 1*mB))
		if v := s.m.look(s.now); v.Links[0].Usable || v.Links[0].CanAsk {
			t.Errorf("%+v: a scheduler would count on it", v.Links[0])
		}
		s.advance(time.Hour) // a download that the client has begun to get is not interrupted when it lacks a slot
		s.quiet()
		s.sched.piece = 2 * mB
		s.slotFreed(0)
		a := s.wantFetch(0, 64*kB, 1*mB)
		s.opened(s.wantOpen(0), 20*ms)
		s.answer(a, 1*mB)
		s.drop(Keep)
		s.deliver()
		s.wantDone()
	})
	t.Run("the connections that it has go on", func(t *testing.T) {
		s, _ := running(t, Config{}, 1, 1*mB)
		s.ask(0, 64*kB, 128*kB)
		a := s.wantFetch(0, 64*kB, 128*kB)
		s.sched.todo = append(s.sched.todo, schedule.Decision{Do: schedule.Open, Link: 0})
		s.tick()
		s.openFailed(s.wantOpen(0), fault.NoSlot)
		if v := s.m.look(s.now); !v.Links[0].Usable {
			t.Errorf("%+v", v.Links[0])
		}
		s.answer(a, 1*mB)
		s.deliver()
		s.ask(0, 128*kB, 192*kB)
		if b := s.wantFetch(0, 128*kB, 192*kB); b.conn != a.conn {
			t.Error("asked on another connection")
		}
		s.quiet()
	})
}
