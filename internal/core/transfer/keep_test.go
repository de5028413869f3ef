package transfer

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
)

// keeping makes a transfer over two links whose first response covers the whole object. Link 1 takes [1 MiB, 2 MiB), and a reserve is
// requested.
func keeping(t *testing.T, initial int64) (s *script, a, b, reserve *asked) {
	t.Helper()
	s = start(t, Config{Initial: initial, Reserve: true}, 2)
	if initial == 0 {
		a = s.wantFetchAll(0)
	} else {
		a = s.wantFetch(0, 0, Unknown)
	}
	s.opened(s.wantOpen(0), 20*ms)
	a.r.End = reserveSize
	s.headReceived(a, reserveSize)
	s.read(a, 64*kB)
	s.deliver()
	s.take(1, a, 1*mB, 2*mB)
	b = s.wantFetch(1, 1*mB, 2*mB)
	s.opened(s.wantOpen(1), 20*ms)
	s.want("a connection for the reserve", func(a Action) bool { return a.Kind == OpenApart })
	reserve = s.wantFetch(0, 1*mB, reserveSize)
	s.opened(reserve.conn, 20*ms)
	s.headReceived(b, reserveSize)
	s.quiet()
	return s, a, b, reserve
}

func TestKeep(t *testing.T) {
	for name, initial := range map[string]int64{"the client's own GET": 0, "an open range": Unknown} {
		t.Run("R252 it ends where others begin once a reserve is accepted, "+name, func(t *testing.T) {
			s, a, _, reserve := keeping(t, initial)
			s.ask(0, 2*mB, 3*mB) // no request: it is read on
			s.quiet()
			if w := s.m.Wanted(a.id); w != 3*mB {
				t.Errorf("it is read up to %d", w)
			}
			s.headReceived(reserve, reserveSize)
			s.ask(0, 3*mB, 4*mB)
			s.wantFetch(0, 3*mB, 4*mB)
			s.wantOpen(0)
			s.drop(Credit)
			for a.cursor < 3*mB {
				s.read(a, 512*kB)
				s.deliver()
				s.drop(Credit)
			}
			s.wantClose(a.conn)
		})
		t.Run("R252 it serves the client if everything else is refused, "+name, func(t *testing.T) {
			s, a, b, reserve := keeping(t, initial)
			s.ended(reserve, fault.Unwanted)
			s.complete(b)
			s.refuse(1, 2*mB, 3*mB)
			s.ask(0, 2*mB, reserveSize)
			for a.cursor < reserveSize {
				s.read(a, min(512*kB, reserveSize-a.cursor))
				s.deliver()
				s.drop(Credit)
			}
			s.wantDone()
			if w := s.state().Waste; w != 1*mB {
				t.Errorf("%d bytes of waste, want what the other link had delivered", w)
			}
		})
	}
	t.Run("R252 it is given up late once another request was refused", func(t *testing.T) {
		s, a, b, reserve := keeping(t, 0)
		s.m.cfg.WaitForLink = time.Minute
		s.ended(reserve, fault.Unwanted)
		s.ended(b, fault.Unwanted)
		s.advance(health.LastChance - ms)
		if s.m.conn(a.conn) == nil {
			t.Fatal("given up")
		}
		s.advance(2 * ms)
		s.wantClose(a.conn)
	})
	t.Run("R252 if it breaks off after every link was refused, the refusal is the reason", func(t *testing.T) {
		s, a, b, reserve := keeping(t, 0)
		s.ended(reserve, fault.Unwanted)
		s.m.links[0].excluded = true // by a refusal over another of its connections
		s.ended(b, fault.Unwanted)
		s.ended(a, fault.Short)
		s.want("the transfer fails because of the refusal", func(f Action) bool { return f.Kind == Fail && f.Outcome == fault.Unwanted })
	})
	t.Run("R210 it delivers what nothing can verify any more", func(t *testing.T) {
		s, a, b, reserve := keeping(t, 0)
		s.unproven()
		s.m.links[0].spot.trust = proven
		s.ended(reserve, fault.Unwanted)
		s.complete(b)
		s.refuse(1, 2*mB, 3*mB)
		s.want("bytes of link 1 are forgotten", func(a Action) bool { return a.Kind == Forget && a.Link == 1 && a.Range == span(1*mB, 2*mB) })
		s.ask(0, 1*mB, reserveSize)
		for a.cursor < reserveSize {
			s.read(a, min(512*kB, reserveSize-a.cursor))
			s.deliver()
			s.drop(Credit)
		}
		s.wantDone()
	})
	t.Run("R252 it is read on until what others delivered is known to be right, which it shows itself", func(t *testing.T) {
		s, a, b, reserve := keeping(t, 0)
		s.unproven()
		s.m.links[0].spot.trust = proven
		s.complete(b)
		s.headReceived(reserve, reserveSize)
		if s.m.Kept() != a.id {
			t.Fatal("it ends although nothing shows that link 1 delivered the right bytes")
		}
		s.ask(0, 2*mB, 3*mB) // no request: it is read on
		check := s.want("the bytes of link 1 are compared", func(a Action) bool { return a.Kind == Compare && a.Link == 1 && a.Range == span(2*mB-4*kB, 2*mB) })
		for a.cursor < 2*mB {
			s.read(a, 192*kB)
			s.drop(Credit)
		}
		s.handle(Event{Kind: Compared, Attempt: check.Attempt})
		s.trusts(proven, proven)
		if s.m.Kept() != 0 {
			t.Error("it is kept")
		}
	})
	t.Run("R252 it shows nothing if it breaks off before", func(t *testing.T) {
		s, a, b, _ := keeping(t, 0)
		s.unproven()
		s.m.links[0].spot.trust = proven
		s.complete(b)
		s.ask(0, 2*mB, 3*mB)
		s.want("the bytes of link 1 are compared", func(a Action) bool { return a.Kind == Compare })
		s.ended(a, fault.Reset)
		if c := s.m.links[1].spot.checks; len(c) > 0 {
			t.Errorf("under way: %+v", c)
		}
	})
	t.Run("R252 it ends if the origin answers later requests without a reserve", func(t *testing.T) {
		s, a, b, reserve := keeping(t, 0)
		s.ended(reserve, fault.Reset)
		s.advance(ms)
		s.complete(b)
		s.ask(1, 2*mB, 3*mB)
		c := s.wantFetch(1, 2*mB, 3*mB)
		s.drop(Credit)
		for a.cursor < 1*mB {
			s.read(a, 192*kB)
			s.deliver()
			s.drop(Credit)
		}
		s.quiet()
		s.headReceived(c, reserveSize)
		s.wantClose(a.conn)
	})
	t.Run("R252 nor if there is no connection for a reserve, or no answer", func(t *testing.T) {
		s, _, _, reserve := keeping(t, 0)
		s.advance(health.BanAfter)
		s.tick()
		if s.m.kept.doubted.IsZero() {
			t.Error("it waits for the reserve for good")
		}
		s.openFailed(reserve.conn, fault.NoSlot)
		if s.m.Kept() != 0 {
			t.Error("it is kept")
		}
	})
	t.Run("R253 it is kept only where that costs nothing", func(t *testing.T) {
		for name, cfg := range map[string]Config{
			"a metered link": {Links: []LinkConfig{{Metered: true}}}, "background": {Background: true}, "no reserve": {},
		} {
			cfg.Reserve = name != "no reserve"
			s := start(t, cfg, 1)
			a := s.wantFetchAll(0)
			s.opened(s.wantOpen(0), 20*ms)
			s.headReceived(a, reserveSize)
			if s.m.Kept() != 0 {
				t.Errorf("%s: kept", name)
			}
		}
	})
}
