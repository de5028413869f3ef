package transfer

import (
	"fmt"
	"testing"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
)

const reserveSize = 16 * mB

// wantReserve takes the request for a reserve, and lets its head arrive.
func (s *script) wantReserve(link int8, from int64) *asked {
	s.t.Helper()
	conn := s.want(fmt.Sprintf("OpenApart on link %d", link), func(a Action) bool { return a.Kind == OpenApart && a.Link == link }).Conn
	r := s.wantFetch(link, from, reserveSize)
	if r.conn != conn {
		s.t.Fatalf("the reserve is asked for on connection %d, not %d", r.conn, conn)
	}
	s.wantCredit(r, from)
	s.opened(conn, 20*ms)
	s.headReceived(r, reserveSize)
	return r
}

// reserved makes a transfer over two links, with 64 KiB from each, and a reserve on link 0.
func reserved(t *testing.T) (*script, *asked) {
	t.Helper()
	s := start(t, Config{Initial: 64 * kB, Reserve: true}, 2)
	a := s.wantFetch(0, 0, 64*kB)
	s.opened(s.wantOpen(0), 20*ms)
	s.headReceived(a, reserveSize)
	s.read(a, kB)
	r := s.wantReserve(0, 64*kB)
	s.complete(a)
	s.ask(1, 64*kB, 128*kB)
	b := s.wantFetch(1, 64*kB, 128*kB)
	s.opened(s.wantOpen(1), 20*ms)
	s.answer(b, reserveSize)
	s.deliver()
	s.quiet()
	return s, r
}

// refuse lets a link be refused its next range.
func (s *script) refuse(link int8, from, to int64) {
	s.t.Helper()
	s.ask(link, from, to)
	s.ended(s.wantFetch(link, from, to), fault.Unwanted)
}

func TestReserve(t *testing.T) {
	t.Run("R250 it is read when later requests are refused", func(t *testing.T) {
		s, r := reserved(t)
		s.refuse(1, 128*kB, 192*kB)
		s.wantCredit(r, 64*kB) // link 0 can still be asked
		s.refuse(0, 128*kB, 192*kB)
		if free := s.m.led.Free(); len(free) > 0 {
			t.Errorf("%v may be requested again, although the reserve fetches it", free)
		}
		s.complete(r)
		s.deliver()
		s.wantDone()
		if st := s.state(); st.Waste != 64*kB {
			t.Errorf("%d bytes of waste, want what had arrived", st.Waste)
		}
	})
	t.Run("it makes room where the origin counts the requests of an address", func(t *testing.T) {
		s, r := reserved(t)
		s.ask(0, 128*kB, 192*kB)
		s.ended(s.wantFetch(0, 128*kB, 192*kB), fault.Busy)
		if s.m.Usable(s.now, 0) {
			t.Error("the link does not rest")
		}
		s.advance(ms)
		s.ask(1, 192*kB, 256*kB)
		s.headReceived(s.wantFetch(1, 192*kB, 256*kB), reserveSize)
		s.wantClose(r.conn)
		if !s.m.Usable(s.now, 0) {
			t.Error("the link still rests")
		}
	})
	t.Run("R250 no other response can take its place, so its silence is tolerated", func(t *testing.T) {
		s, r := reserved(t)
		s.refuse(1, 128*kB, 192*kB)
		s.refuse(0, 128*kB, 192*kB)
		s.read(r, 1*mB)
		s.advance(2 * health.BanAfter)
		s.link(0, health.Suspect)
		s.link(0, health.Up) // a probe got through
		s.advance(health.BanAfter)
		s.complete(r)
		s.deliver()
		s.wantDone()
	})
	t.Run("R250 what others still fetch is not lost with them", func(t *testing.T) {
		s, r := reserved(t)
		s.ask(1, 192*kB, 256*kB)
		b := s.wantFetch(1, 192*kB, 256*kB)
		s.headReceived(b, reserveSize)
		s.refuse(0, 128*kB, 192*kB)
		s.read(b, 10*kB)
		s.ended(b, fault.Changed)
		s.complete(r)
		s.deliver()
		s.wantDone()
	})
	t.Run("R250 the origin serves again", func(t *testing.T) {
		s, r := reserved(t)
		s.refuse(1, 128*kB, 192*kB)
		s.refuse(0, 128*kB, 192*kB)
		s.read(r, 1*mB)
		s.deliver()
		for end := s.now.Add(renewAfter); s.now.Before(end); s.advance(100 * ms) {
			s.read(r, kB)
		}
		s.wantReserve(0, r.cursor)
		s.take(1, r, 8*mB, 9*mB) // the first one may be cut now, by a link that was refused
		s.wantFetch(1, 8*mB, 9*mB)
	})
	t.Run("R250 its link goes down", func(t *testing.T) {
		s, r := reserved(t)
		s.link(0, health.Down)
		s.wantClose(r.conn)
		s.drop(CloseConn)
		s.wantReserve(1, 128*kB)
		s.quiet()
	})
	t.Run("R251 only on an unmetered link, for a large rest", func(t *testing.T) {
		for size, link := range map[int64]LinkConfig{reserveSize: {Metered: true}, reserveLeast: {}} {
			s := start(t, Config{Initial: 64 * kB, Reserve: true, Links: []LinkConfig{link}}, 1)
			a := s.wantFetch(0, 0, 64*kB)
			s.opened(s.wantOpen(0), 20*ms)
			s.answer(a, size)
			s.quiet()
		}
	})
	t.Run("R251 it is hardly read", func(t *testing.T) {
		s, r := reserved(t)
		for n := int64(1); n <= 3; n++ {
			s.advance(sipEvery)
			s.read(r, sipSize)
			s.wantCredit(r, 64*kB+n*sipSize)
		}
		s.drop(Credit)
		s.quiet()
	})
	t.Run("R251 refused reserves are few", func(t *testing.T) {
		s, r := reserved(t)
		s.ended(r, fault.Reset)
		for range mostLost - 1 {
			s.advance(renewAfter << mostLost)
			r = s.find(s.want("a request", func(a Action) bool { return a.Kind == Fetch }))
			s.drop(OpenApart)
			s.ended(r, fault.Unwanted)
		}
		s.advance(renewAfter << (2 * mostLost))
		s.quiet()
	})
}
