package transfer

import (
	"fmt"
	"testing"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// spotSize is the size of an object that is large enough for some spot checks of full length.
const spotSize = 64 * mB

// spotted makes a transfer over n links that have not been checked yet. Link 0 owes [0, 64 KiB) and has shown its head.
func spotted(t *testing.T, cfg Config, n int, size int64) (s *script, a *asked) {
	t.Helper()
	cfg.Initial, cfg.Reorder = 64*kB, 2*spotSize
	for range n {
		cfg.Links = append(cfg.Links, LinkConfig{Learned: estimate.Entry{Pipelining: estimate.Works}})
	}
	s = start(t, cfg, n)
	s.unproven()
	from := cfg.Requested.Start
	a = s.wantFetch(0, from, from+64*kB)
	s.opened(s.wantOpen(0), 20*ms)
	s.headReceived(a, size)
	s.quiet()
	return s, a
}

// wantCheck takes a request whose first k bytes are for a spot check; its wanted part is [from, to). Its connection opens.
func (s *script) wantCheck(link int8, from, to, k int64) *asked {
	s.t.Helper()
	a := s.want(fmt.Sprintf("Fetch of %v behind %d bytes on link %d", span(from, to), k, link), func(a Action) bool {
		return a.Kind == Fetch && a.Link == link && a.Range == span(from-k, to) && a.Prefix == k
	})
	for i := range s.pending {
		if o := s.pending[i]; o.Kind == Open && o.Conn == a.Conn {
			s.opened(s.wantOpen(link), 20*ms)
			break
		}
	}
	return s.find(a)
}

// checked asks a link for a range whose request must begin with k bytes for a spot check, none if k is 0. If it is the first one on
// its connection, its head arrives.
func (s *script) checked(link int8, from, to, k int64) *asked {
	s.t.Helper()
	s.ask(link, from, to)
	b := s.wantCheck(link, from, to, k)
	if s.queues[b.conn][0] == b {
		s.headReceived(b, s.state().Size)
	}
	s.quiet()
	return b
}

// dropChecks ends all checks of a link.
func (s *script) dropChecks(link int8) {
	for p := &s.m.links[link].spot; len(p.checks) > 0; {
		s.m.dropCheck(p, 0)
	}
}

// compared delivers the result of a spot check; the client has the bytes before gone.
func (s *script) compared(b *asked, differs bool, gone int64) {
	s.t.Helper()
	s.handle(Event{Kind: Compared, Attempt: b.id, Differs: differs, N: gone})
}

// trusts fails the test unless the links have this trust.
func (s *script) trusts(all ...trust) {
	s.t.Helper()
	for i, want := range all {
		if got := s.m.links[i].spot.trust; got != want {
			s.t.Fatalf("link %d: trust %d, want %d", i, got, want)
		}
	}
}

// wantForget takes the action that forgets a range of a link.
func (s *script) wantForget(link int8, r segment.Range, n int64) {
	s.t.Helper()
	s.want(fmt.Sprintf("Forget %v", r), func(a Action) bool {
		return a.Kind == Forget && a.Link == link && a.Range == r && a.N == n
	})
}

func TestSpotCheckPrefix(t *testing.T) {
	t.Run("R210 bytes that another link owes", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		b := s.checked(1, 64*kB, 128*kB, 4*kB)
		c := s.checked(1, 128*kB, 192*kB, 0) // one check is enough
		s.read(a, 1*kB)
		s.read(b, 10*kB)
		s.complete(a)
		if st := s.state(); st.Received != 74*kB || st.Waste != 4*kB || st.Held != 70*kB {
			t.Errorf("%+v: the prefix is waste, and held by nobody", st)
		}
		s.compared(b, false, 0)
		s.trusts(proven, proven)
		s.complete(b)
		s.answer(c, spotSize)
		s.checked(1, 192*kB, 256*kB, 0)
		s.wantWaste(4 * kB)
	})
	t.Run("R210 bytes that nobody was asked for", func(t *testing.T) {
		s, _ := spotted(t, Config{}, 2, spotSize)
		s.checked(1, 128*kB, 192*kB, 4*kB)
	})
	t.Run("R210 the last bytes that another link has brought", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		s.complete(a)
		s.ask(1, 64*kB, 128*kB)
		f := s.want("a check with what link 0 brought", func(a Action) bool { return a.Kind == Fetch && a.Prefix == 4*kB && a.Tail == 0 })
		s.compared(s.find(f), false, 0)
		s.trusts(proven, proven)
	})
	t.Run("R210 the last bytes that came, and the next ones that are owed", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		s.read(a, 62*kB)
		s.ask(1, 64*kB, 128*kB)
		s.want("a check", func(a Action) bool { return a.Kind == Fetch && a.Prefix == 4*kB && a.Tail == 0 })
	})
	t.Run("none of what came long ago", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		s.complete(a)
		s.read(s.checked(0, 128*kB, 192*kB, 0), spotLeast)
		s.checked(1, 64*kB, 128*kB, 0)
	})
	t.Run("none that the link itself owes", func(t *testing.T) {
		s, _ := spotted(t, Config{}, 3, spotSize)
		s.checked(1, 128*kB, 192*kB, 4*kB)
		s.m.uncheck(&s.m.links[1].spot, 0)
		s.checked(1, 192*kB, 256*kB, 0)
		s.checked(2, 256*kB, 320*kB, 4*kB) // but another one may be compared with it
	})
	t.Run("no more than the client wants", func(t *testing.T) {
		s, a := spotted(t, Config{Requested: span(1000, Unknown)}, 2, spotSize)
		s.take(1, a, 3000, 10*kB)
		s.wantCheck(1, 3000, 10*kB, 2000)
	})
	t.Run("only as far as the answer reaches", func(t *testing.T) {
		s, _ := spotted(t, Config{}, 2, spotSize)
		s.ask(1, 64*kB, 128*kB)
		b := s.wantCheck(1, 64*kB, 128*kB, 4*kB)
		s.head(b, Event{Size: spotSize, Range: span(60*kB, 62*kB)})
		s.complete(b)
		s.wantFree(span(64*kB, spotSize))
		s.wantWaste(2 * kB)
		s.checked(1, 64*kB, 128*kB, 4*kB)
	})
	t.Run("the reference needs none", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		s.checked(1, 64*kB, 128*kB, 4*kB)
		s.read(a, 1)
		s.trusts(proven, unknown)
		s.checked(0, 128*kB, 192*kB, 0)
	})
	t.Run("the reference is the link that brings the first byte of the content", func(t *testing.T) {
		s, a := spotted(t, Config{Requested: span(1000, Unknown)}, 2, spotSize)
		b := s.checked(1, 64*kB+1000, 128*kB, 4*kB)
		s.read(b, 5*kB)
		s.trusts(unknown, unknown)
		s.read(a, 1)
		s.trusts(proven, unknown)
	})
	t.Run("the link that was asked first is not the reference", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		s.link(0, health.Down)
		s.wantClose(a.conn)
		s.read(s.checked(1, 0, 64*kB, 0), 1)
		s.trusts(unknown, proven)
		s.link(0, health.Up)
		s.checked(0, 64*kB, 128*kB, 4*kB)
	})
	t.Run("none of a link that is known to be right", func(t *testing.T) {
		s, _ := spotted(t, Config{}, 2, spotSize)
		s.m.links[1].spot.trust = proven
		s.checked(1, 64*kB, 128*kB, 0)
	})
}

// Over all links, one in 2,000 bytes may be compared, and as much is left for a second check of each. The least is 64 bytes per
// link.
func TestSpotCheckShare(t *testing.T) {
	for _, c := range []struct {
		links int
		size  int64
		want  int64
	}{{2, 4e6, 1000}, {2, 16e6, 4000}, {2, 1e9, 4 * kB}, {3, 4e6, 666}, {2, 256e3, 64}, {2, 80e3, 64}, {3, 80e3, 64}} {
		s, _ := spotted(t, Config{}, c.links, c.size)
		s.checked(1, 64*kB, 65*kB, c.want)
	}
	// Inconclusive checks have 4 KiB more: enough for many, in a small object too.
	for _, c := range []struct{ size, checks int64 }{{4e6, 6}, {1e6, 16}} {
		t.Run(fmt.Sprintf("R210 %d bytes, used up", c.size), func(t *testing.T) {
			s, a := spotted(t, Config{}, 2, c.size)
			s.complete(a)
			var spent, checks int64
			for from := int64(64 * kB); from < c.size; from += 16 * kB {
				s.ask(1, from, from+8*kB)
				f := s.want("Fetch", func(a Action) bool { return a.Kind == Fetch })
				if f.Prefix == 0 {
					break
				}
				b := s.find(f)
				if from == 64*kB {
					s.opened(s.wantOpen(1), 20*ms)
				}
				s.answer(b, c.size)
				s.dropChecks(1)
				spent += f.Prefix
				checks++
			}
			most := c.size/spotShare + spotMost
			if checks < c.checks || spent < most-100 || spent > most || s.state().Waste != spent {
				t.Errorf("%d checks, %d bytes of %d, waste %d", checks, spent, most, s.state().Waste)
			}
		})
	}
}

func TestSpotCheckAgain(t *testing.T) {
	t.Run("its request fails before the prefix came", func(t *testing.T) {
		s, _ := spotted(t, Config{}, 2, 4e6)
		b := s.checked(1, 64*kB, 128*kB, 1000)
		s.read(b, 400)
		s.ended(b, fault.Reset)
		s.ask(1, 64*kB, 128*kB)
		s.wantOpen(1)
		s.wantCheck(1, 64*kB, 128*kB, 800) // of the 1600 that are left
	})
	t.Run("its request fails later: that changes nothing", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		b := s.checked(1, 64*kB, 128*kB, 4*kB)
		s.read(b, 5*kB)
		s.ended(b, fault.Reset)
		s.complete(a)
		s.compared(b, false, 0)
		s.trusts(proven, proven)
	})
	t.Run("the link itself is asked for the bytes that nobody was asked for", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		b := s.checked(1, 128*kB, 192*kB, 4*kB)
		s.read(a, 1)
		c := s.checked(1, 64*kB, 128*kB, 4*kB) // this one precedes bytes that link 0 certainly owes
		s.read(b, 6*kB)
		s.trusts(proven, unknown)
		s.compared(c, false, 0)
		s.trusts(proven, proven)
	})
	t.Run("no other is given up for one that is not certain", func(t *testing.T) {
		s, _ := spotted(t, Config{}, 2, spotSize)
		b := s.checked(1, 128*kB, 192*kB, 4*kB)
		s.checked(1, 320*kB, 384*kB, 0)
		s.checked(0, 64*kB, 128*kB, 0)
		s.checked(1, 256*kB, 320*kB, 0)
		s.compared(b, false, 0)
	})
	t.Run("the other link dies: what it has brought is compared", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		b := s.checked(1, 64*kB, 128*kB, 4*kB)
		s.read(a, 20*kB)
		s.link(0, health.Down)
		s.wantClose(a.conn)
		s.ask(1, 20*kB, 64*kB)
		f := s.want("a check", func(a Action) bool { return a.Kind == Fetch && a.Prefix == 4*kB && a.Tail == 0 })
		s.complete(b)
		s.compared(s.find(f), true, 0)
		s.trusts(proven, refuted)
	})
	t.Run("others deliver what its request is for: the prefix is read all the same", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		s.answer(a, spotSize)
		b := s.checked(0, 64*kB, 512*kB, 0)
		s.take(1, b, 128*kB, 512*kB)
		c := s.wantCheck(1, 128*kB, 512*kB, 4*kB)
		s.complete(b)
		s.headReceived(c, spotSize)
		s.read(c, 1*kB)
		s.quiet()
		s.read(c, 3*kB)
		s.wantClose(c.conn)
		s.compared(c, false, 0)
		s.trusts(proven, proven)
	})
	t.Run("a link that was silent brings what its check waits for, though another one has begun", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		b := s.checked(1, 64*kB, 128*kB, 4*kB)
		s.read(b, 8*kB)
		s.link(0, health.Suspect)
		s.m.links[0].silent = true
		s.take(1, a, 32*kB, 64*kB)
		c := s.find(s.want("another check", func(a Action) bool { return a.Kind == Fetch && a.Prefix > 0 }))
		s.read(a, 64*kB)
		s.ended(c, fault.Unwanted)
		s.trusts(proven, unknown)
		s.compared(b, false, 0)
		s.trusts(proven, proven)
	})
	t.Run("the link brings the bytes before another one does", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		s.read(a, 1*kB)
		b := s.checked(1, 64*kB, 128*kB, 4*kB)
		s.m.spent = spotSize // nothing is left for another check
		s.take(1, a, 32*kB, 64*kB)
		c := s.wantCheck(1, 32*kB, 64*kB, 0)
		s.complete(b)
		s.answer(c, spotSize)
		s.compared(b, false, 0) // with its own bytes
		s.trusts(proven, unknown)
		s.m.spent = 0
		s.checked(0, 128*kB, 192*kB, 0)
		s.checked(1, 192*kB, 256*kB, 4*kB)
	})
	t.Run("the link is asked for the bytes of its own check", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		s.read(a, 1*kB)
		b := s.checked(1, 64*kB, 128*kB, 4*kB)
		s.take(1, a, 32*kB, 64*kB)
		c := s.wantCheck(1, 32*kB, 64*kB, 4*kB)
		s.complete(b)
		s.headReceived(c, spotSize)
		s.read(a, 31*kB)
		s.read(c, 4*kB)
		s.compared(c, false, 0)
		s.trusts(proven, proven)
	})
}

func TestSpotCheckFails(t *testing.T) {
	// doubtful is a transfer in which link 1 has delivered [64 KiB, 96 KiB) of its range, and its check fails once it is compared.
	doubtful := func(t *testing.T) (s *script, b *asked) {
		s, a := spotted(t, Config{}, 2, spotSize)
		b = s.checked(1, 64*kB, 128*kB, 4*kB)
		s.read(a, 1*kB)
		s.read(b, 36*kB)
		s.complete(a)
		s.quiet()
		return s, b
	}
	t.Run("R210 before the client has a byte of it", func(t *testing.T) {
		s, b := doubtful(t)
		s.compared(b, true, 64*kB)
		s.wantReport(ReportDiffers, 1)
		s.wantClose(b.conn)
		s.wantForget(1, span(64*kB, 96*kB), 32*kB)
		s.quiet()
		s.wantFree(span(64*kB, spotSize))
		s.wantWaste(36 * kB)
		if st := s.state(); st.Ready != 64*kB || s.m.Usable(s.now, 1) {
			t.Errorf("%+v, usable %v", st, s.m.Usable(s.now, 1))
		}
		s.sched.piece = spotSize
		s.tick()
		s.answer(s.wantFetch(0, 64*kB, spotSize), spotSize)
		s.deliver()
		s.wantDone()
	})
	t.Run("R210 when the client has a byte of it", func(t *testing.T) {
		s, b := doubtful(t)
		s.compared(b, true, 64*kB+1)
		s.wantReport(ReportDiffers, 1)
		if f := s.want("Fail", func(a Action) bool { return a.Kind == Fail }); f.Outcome != fault.Differs || f.Link != 1 || f.UpTo != 64*kB {
			t.Errorf("%+v", f)
		}
		s.drop(CloseConn, Keep)
		s.quiet()
	})
	t.Run("of a link that has brought nothing else", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		b := s.checked(1, 64*kB, 128*kB, 4*kB)
		s.read(b, 4*kB)
		s.complete(a)
		s.compared(b, true, 64*kB)
		s.wantReport(ReportDiffers, 1)
		s.wantClose(b.conn)
		s.quiet()
		s.wantFree(span(64*kB, spotSize))
	})
	t.Run("after its last byte was the last one", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, 300*kB)
		b := s.checked(1, 64*kB, 300*kB, 76)
		s.read(a, 1*kB)
		s.complete(b)
		s.read(a, 63*kB)
		s.compared(b, true, 0)
		s.wantReport(ReportDiffers, 1)
		s.wantForget(1, span(64*kB, 300*kB), 236*kB)
		s.drop(CloseConn)
		s.complete(a)
		s.sched.piece = spotSize
		s.tick()
		c := s.wantFetch(0, 64*kB, 300*kB)
		s.answer(c, 300*kB)
		s.deliver()
		s.wantDone()
	})
	t.Run("what another link brought first is kept", func(t *testing.T) {
		s, a := spotted(t, Config{}, 2, spotSize)
		s.read(a, 1*kB)
		s.take(1, a, 32*kB, 64*kB)
		b := s.wantCheck(1, 32*kB, 64*kB, 4*kB)
		s.read(a, 47*kB) // beyond the cut, before the other head
		s.headReceived(b, spotSize)
		s.read(b, 30*kB)
		s.compared(b, true, 48*kB)
		s.wantReport(ReportDiffers, 1)
		s.wantForget(1, span(48*kB, 58*kB), 10*kB)
		if st := s.state(); st.Ready != 48*kB {
			t.Errorf("%+v", st)
		}
	})
	t.Run("no link is left", func(t *testing.T) {
		s, b := doubtful(t)
		s.m.links[0].excluded = true
		s.compared(b, true, 0)
		s.want("Fail", func(a Action) bool { return a.Kind == Fail && a.Outcome == fault.Differs })
	})
}

// A check may end before the first byte of the content has arrived.
func TestSpotCheckBeforeTheFirstByte(t *testing.T) {
	// early is a transfer in which link 1 was compared with link 0 while its own first range still stalls.
	early := func(t *testing.T, differs bool) (s *script, a *asked) {
		s, a = spotted(t, Config{}, 2, spotSize)
		s.m.links[0].pipelining, s.m.links[0].parallel.N = estimate.Broken, 2
		s.ask(0, 64*kB, 128*kB)
		other := s.wantFetch(0, 64*kB, 128*kB)
		s.opened(s.wantOpen(0), 20*ms)
		s.headReceived(other, spotSize)
		b := s.checked(1, 128*kB, 192*kB, 4*kB)
		s.complete(other)
		s.complete(b)
		s.compared(b, differs, 0)
		s.trusts(unknown, unknown)
		s.quiet()
		s.read(a, 1*kB)
		return s, a
	}
	t.Run("R210 the bytes are equal", func(t *testing.T) {
		s, _ := early(t, false)
		s.trusts(proven, proven)
		s.quiet()
	})
	t.Run("R210 the bytes differ", func(t *testing.T) {
		s, a := early(t, true)
		s.trusts(proven, refuted)
		s.wantReport(ReportDiffers, 1)
		s.drop(CloseConn)
		s.wantForget(1, span(128*kB, 192*kB), 64*kB)
		s.wantFree(span(128*kB, spotSize))
		s.complete(a)
		if st := s.state(); st.Ready != 128*kB {
			t.Errorf("%+v", st)
		}
	})
}

// Bytes requested before the first response are checked as well.
func TestSpotCheckAhead(t *testing.T) {
	begin := func(t *testing.T, initial, hint int64) *script {
		up := LinkConfig{State: health.Up}
		s := prepare(t, Config{
			Initial: initial, Warm: true, Ahead: span(64*kB, 128*kB), AheadEach: 64 * kB, Hint: hint, Links: []LinkConfig{up, up}, Reorder: 2 * spotSize,
		}, 2)
		s.unproven()
		s.tick()
		return s
	}
	// wantAhead takes the request ahead, whose first k bytes are compared.
	wantAhead := func(s *script, k int64) *asked {
		s.t.Helper()
		b := s.find(s.want("FetchAhead", func(a Action) bool {
			return a.Kind == FetchAhead && a.Link == 1 && a.Range == span(64*kB-k, 128*kB) && a.Prefix == k
		}))
		s.opened(b.conn, 20*ms)
		return b
	}
	for _, c := range []struct{ hint, want int64 }{{spotSize, 4 * kB}, {1e6, 250}, {0, 1000}} {
		for _, initial := range []int64{64 * kB, 0} {
			s := begin(t, initial, c.hint)
			s.drop(Open, Fetch, FetchAll)
			wantAhead(s, c.want)
			s.quiet()
		}
	}
	t.Run("no more than the client wants", func(t *testing.T) {
		up := LinkConfig{State: health.Up}
		s := prepare(t, Config{
			Requested: span(8000, Unknown), Initial: 2000, Warm: true, Ahead: span(10_000, 128*kB), AheadEach: 128*kB - 10_000, Hint: spotSize,
			Links: []LinkConfig{up, up}, Reorder: 2 * spotSize,
		}, 2)
		s.unproven()
		s.tick()
		a := s.find(s.want("FetchAhead", func(a Action) bool { return a.Kind == FetchAhead }))
		if a.r != span(8000, 128*kB) || a.want != 10_000 {
			t.Errorf("asks for %v, of which the bytes from %d on are wanted", a.r, a.want)
		}
	})
	t.Run("R210 over three links", func(t *testing.T) {
		up := LinkConfig{State: health.Up}
		s := prepare(t, Config{
			Initial: 64 * kB, Warm: true, Ahead: span(64*kB, spotSize), AheadEach: 64 * kB, Hint: spotSize, Links: []LinkConfig{up, up, up},
			Reorder: 2 * spotSize,
		}, 3)
		s.unproven()
		s.tick()
		a := s.wantFetch(0, 0, 64*kB)
		s.opened(s.wantOpen(0), 20*ms)
		b := wantAhead(s, 4*kB)
		c := s.find(s.want("FetchAhead", func(a Action) bool {
			return a.Kind == FetchAhead && a.Link == 2 && a.Range == span(124*kB, 192*kB) && a.Prefix == 4*kB
		}))
		s.opened(c.conn, 20*ms)
		for _, q := range []*asked{a, b, c} {
			s.headReceived(q, spotSize)
			s.complete(q)
		}
		s.compared(c, false, 0) // with link 1
		s.trusts(proven, unknown, unknown)
		s.compared(b, true, 0) // with link 0
		s.trusts(proven, refuted, refuted)
	})
	t.Run("R210 they differ", func(t *testing.T) {
		s := begin(t, 64*kB, spotSize)
		a := s.wantFetch(0, 0, 64*kB)
		s.opened(s.wantOpen(0), 20*ms)
		b := wantAhead(s, 4*kB)
		s.wantOpen(1)
		s.headReceived(a, spotSize)
		s.headReceived(b, spotSize)
		s.complete(b)
		s.complete(a)
		s.trusts(proven, unknown)
		s.quiet()
		s.compared(b, true, 64*kB)
		s.trusts(proven, refuted)
		s.wantReport(ReportDiffers, 1)
		s.drop(CloseConn)
		s.wantForget(1, span(64*kB, 128*kB), 64*kB)
		s.wantFree(span(64*kB, spotSize))
	})
	t.Run("R210 it is dropped before the first response: a later range is checked", func(t *testing.T) {
		s := begin(t, 64*kB, 8e6)
		a := s.wantFetch(0, 0, 64*kB)
		s.opened(s.wantOpen(0), 20*ms)
		b := wantAhead(s, 2000)
		s.wantOpen(1)
		s.headReceived(a, 8e6)
		s.ended(b, fault.Changed)
		s.ask(1, 64*kB, 128*kB)
		s.drop(CloseConn, Open)
		s.wantCheck(1, 64*kB, 128*kB, 2000)
	})
	t.Run("a wrong hint costs no check later", func(t *testing.T) {
		s := begin(t, 64*kB, spotSize)
		a := s.wantFetch(0, 0, 64*kB)
		s.opened(s.wantOpen(0), 20*ms)
		b := wantAhead(s, 4*kB)
		s.wantOpen(1)
		s.headReceived(a, 200*kB)
		s.headReceived(b, 200*kB)
		s.read(b, 5*kB)
		s.m.uncheck(&s.m.links[1].spot, 0) // it was inconclusive
		s.checked(1, 128*kB, 200*kB, 0)
	})
}

// With more than two links one may be compared with another that is not proven itself.
func TestSpotCheckGroups(t *testing.T) {
	// three is a transfer in which link 1 is compared with link 0, the reference, and link 2 with link 1.
	three := func(t *testing.T) (s *script, b, c *asked) {
		s, a := spotted(t, Config{}, 3, spotSize)
		s.read(a, 1*kB)
		b = s.checked(1, 64*kB, 128*kB, 4*kB)
		c = s.checked(2, 128*kB, 192*kB, 4*kB)
		s.complete(b)
		s.complete(c)
		s.complete(a)
		return s, b, c
	}
	const client = 64 * kB // the client has this much
	all := []segment.Range{span(64*kB, 128*kB), span(128*kB, 192*kB)}
	t.Run("equal to one that proves right", func(t *testing.T) {
		s, b, c := three(t)
		s.compared(c, false, client)
		s.trusts(proven, unknown, unknown)
		s.compared(b, false, client)
		s.trusts(proven, proven, proven)
		s.checked(2, 192*kB, 256*kB, 0)
	})
	t.Run("equal to one that proves wrong", func(t *testing.T) {
		s, b, c := three(t)
		s.compared(c, false, client)
		s.compared(b, true, client)
		s.trusts(proven, refuted, refuted)
		for i, r := range all {
			s.wantReport(ReportDiffers, int8(i+1))
			s.wantForget(int8(i+1), r, 64*kB)
		}
		s.wantFree(span(64*kB, spotSize))
	})
	t.Run("equal to one that has proved wrong", func(t *testing.T) {
		s, b, c := three(t)
		s.compared(b, true, client)
		s.trusts(proven, refuted, unknown)
		s.compared(c, false, client)
		s.trusts(proven, refuted, refuted)
	})
	t.Run("different from one that proves right", func(t *testing.T) {
		s, b, c := three(t)
		s.compared(c, true, client)
		s.trusts(proven, unknown, unknown)
		s.compared(b, false, client)
		s.trusts(proven, proven, refuted)
		s.wantReport(ReportDiffers, 2)
		s.wantForget(2, all[1], 64*kB)
		s.wantFree(span(128*kB, spotSize))
	})
	t.Run("different from one that proves wrong: that says nothing", func(t *testing.T) {
		s, b, c := three(t)
		s.compared(c, true, client)
		s.compared(b, true, client)
		s.trusts(proven, refuted, unknown)
		s.drop(ReportDiffers, CloseConn, Forget)
		s.checked(0, 64*kB, 128*kB, 0)
		s.checked(2, 192*kB, 256*kB, 0) // its own bytes come before these
		s.checked(0, 256*kB, 320*kB, 0)
		s.checked(2, 320*kB, 384*kB, 4*kB)
	})
	t.Run("R210 the reference is preferred", func(t *testing.T) {
		s, a := spotted(t, Config{}, 3, spotSize)
		s.read(a, 20*kB)
		s.checked(1, 64*kB, 128*kB, 4*kB)
		c := s.checked(2, 128*kB, 192*kB, 4*kB) // with link 1
		s.link(0, health.Down)
		s.wantClose(a.conn)
		s.ask(2, 20*kB, 64*kB)
		f := s.want("a check with link 0", func(a Action) bool { return a.Kind == Fetch && a.Prefix == 4*kB && a.Tail == 0 })
		s.complete(c)
		s.checked(2, 192*kB, 256*kB, 0)
		s.compared(s.find(f), false, 0)
		s.trusts(proven, unknown, proven)
	})
	t.Run("links that differ are not compared again", func(t *testing.T) {
		s, _, c := three(t)
		s.compared(c, true, client)
		s.checked(1, 192*kB, 256*kB, 0)
		s.checked(2, 256*kB, 320*kB, 0)
	})
	t.Run("one that shares the bytes of a group cannot vouch for it", func(t *testing.T) {
		s, _, c := three(t)
		s.compared(c, false, client)
		s.checked(2, 192*kB, 256*kB, 0)
		s.checked(1, 256*kB, 320*kB, 0)
	})
	t.Run("the client has bytes of one of them", func(t *testing.T) {
		s, b, c := three(t)
		s.compared(c, false, client)
		s.compared(b, true, 130*kB)
		if f := s.want("Fail", func(a Action) bool { return a.Kind == Fail }); f.Outcome != fault.Differs || f.UpTo != 64*kB {
			t.Errorf("%+v", f)
		}
	})
}
