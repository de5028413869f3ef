package transfer

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
)

// unverified is a transfer of 1 MiB that has arrived completely, the second half over link 1, whose check was inconclusive. The
// client has every byte that it may have. No link takes requests: the origin asked both to wait.
func unverified(t *testing.T) *script {
	const size = mB
	s, a := spotted(t, Config{}, 2, size)
	s.complete(a)
	s.ask(0, 64*kB, 512*kB)
	a = s.wantFetch(0, 64*kB, 512*kB)
	s.ask(1, 512*kB, size)
	b := s.find(s.want("a check", func(a Action) bool { return a.Kind == Fetch && a.Link == 1 && a.Prefix > 0 }))
	s.opened(s.wantOpen(1), 20*ms)
	s.headReceived(b, size)
	s.dropChecks(1)
	s.read(b, 256*kB)
	for i := range s.m.links {
		s.m.links[i].resting = s.now.Add(time.Hour)
	}
	s.answer(a, size)
	s.complete(b)
	s.quiet()
	s.deliver()
	return s
}

// asks ends the wait of a link.
func (s *script) asks(link int8) {
	s.t.Helper()
	s.m.links[link].resting = time.Time{}
	s.tick()
}

// wantVerification takes the request over a link for n bytes up to end, which another link delivered, and its answer except for the
// compared bytes.
func (s *script) wantVerification(link, tail int8, end, n int64) *asked {
	s.t.Helper()
	a := s.find(s.want("a verification", func(a Action) bool {
		return a.Kind == Fetch && a.Link == link && a.Tail == tail && a.Prefix == n && a.Range == span(end-n, end)
	}))
	for i := range s.pending {
		if o := s.pending[i]; o.Kind == Open && o.Conn == a.conn {
			s.opened(s.wantOpen(link), 20*ms)
			break
		}
	}
	return a
}

func TestVerify(t *testing.T) {
	const size, n = mB, mB / spotShare
	held := func(s *script) {
		s.t.Helper()
		if st := s.state(); st.Offset != size-1 || st.Ready != 0 {
			s.t.Errorf("%+v: the last byte is to be held back", st)
		}
	}
	t.Run("R210 over the proven link", func(t *testing.T) {
		s := unverified(t)
		held(s)
		s.asks(0)
		a := s.wantVerification(0, 1, size, n)
		s.headReceived(a, size)
		s.read(a, n)
		held(s)
		s.compared(a, false, size-1)
		s.trusts(proven, proven)
		s.drop(Keep, CloseConn)
		s.deliver()
		s.wantDone()
	})
	t.Run("R210 its bytes differ", func(t *testing.T) {
		s := unverified(t)
		s.asks(0)
		a := s.wantVerification(0, 1, size, n)
		s.headReceived(a, size)
		s.read(a, n)
		s.compared(a, true, size-1)
		s.trusts(proven, refuted)
		s.wantReport(ReportDiffers, 1)
		if f := s.want("Fail", func(a Action) bool { return a.Kind == Fail }); f.Outcome != fault.Differs || f.UpTo != 512*kB {
			t.Errorf("%+v", f)
		}
	})
	t.Run("R210 the proven link is gone: the other one fetches what that has brought", func(t *testing.T) {
		s := unverified(t)
		s.link(0, health.Down)
		s.drop(CloseConn)
		s.asks(1)
		a := s.wantVerification(1, 0, 512*kB, n)
		s.headReceived(a, size)
		s.read(a, n)
		held(s)
		s.compared(a, true, size-1)
		s.trusts(proven, refuted)
		s.want("Fail", func(a Action) bool { return a.Kind == Fail && a.Outcome == fault.Differs })
	})
	t.Run("R210 both links are gone", func(t *testing.T) {
		s := unverified(t)
		s.link(1, health.Down)
		s.link(0, health.Down)
		s.drop(CloseConn)
		s.advance(9 * time.Second)
		s.quiet()
		held(s)
		s.advance(2 * time.Second)
		s.want("Fail", func(a Action) bool { return a.Kind == Fail && a.Outcome == fault.Silence })
	})
	t.Run("its request fails: another one follows", func(t *testing.T) {
		s := unverified(t)
		s.asks(0)
		a := s.wantVerification(0, 1, size, n)
		s.headReceived(a, size)
		s.read(a, n/2)
		s.ended(a, fault.Reset)
		held(s)
		a = s.wantVerification(0, 1, size, n)
		s.headReceived(a, size)
		s.read(a, n)
		s.compared(a, false, size-1)
		s.drop(Keep, CloseConn)
		s.deliver()
		s.wantDone()
	})
	t.Run("the origin answers each of its requests in part", func(t *testing.T) {
		s := unverified(t)
		s.asks(0)
		for range verifyMost {
			a := s.wantVerification(0, 1, size, n)
			s.head(a, Event{Size: size, Range: span(a.r.Start, a.r.Start+1)})
			s.complete(a)
		}
		s.want("Fail", func(a Action) bool { return a.Kind == Fail })
		s.drop(CloseConn, Keep)
		s.quiet()
	})
	t.Run("R210 bytes that are written as they come", func(t *testing.T) {
		s := unverified(t)
		s.handle(Event{Kind: Scatter})
		s.handle(Event{Kind: Delivered, N: 1})
		s.quiet()
		s.asks(0)
		a := s.wantVerification(0, 1, size, n)
		s.headReceived(a, size)
		s.read(a, n)
		s.quiet()
		s.compared(a, false, size)
		s.drop(Keep, CloseConn)
		s.wantDone()
	})
	t.Run("a check that is through is told after the last byte", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, size)
		b := s.checked(1, 64*kB, size, n/2)
		s.complete(b)
		s.read(a, 64*kB)
		s.quiet()
		s.compared(b, false, 0)
		s.drop(Keep, CloseConn)
		s.deliver()
		s.wantDone()
	})
}

// TestVerifyEarly: the proven link verifies the other one while it has nothing else to do.
func TestVerifyEarly(t *testing.T) {
	const size, n = mB, mB / spotShare
	s, a := spotted(t, Config{}, 2, size)
	b := s.checked(1, 64*kB, size, n/2)
	s.dropChecks(1)
	s.read(b, n/2+verifyLeast-1)
	s.complete(a)
	s.quiet() // too little has arrived
	s.read(b, n)
	s.quiet()
	s.tick()
	c := s.wantVerification(0, 1, 64*kB+n+verifyLeast-1, n)
	s.headReceived(c, size)
	s.read(c, n)
	s.compared(c, false, 64*kB)
	s.trusts(proven, proven)
	s.complete(b)
	s.drop(Keep, CloseConn)
	s.deliver()
	s.wantDone()
}
