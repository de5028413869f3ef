package transfer

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
)

// several begins a transfer that may have several connections: link 0 has its first range, and more are asked for in pieces.
func several(t *testing.T, size int64, links ...LinkConfig) (s *script, a *asked) {
	t.Helper()
	s = prepare(t, Config{Initial: 64 * kB, MostConns: MostConns, Links: links}, len(links))
	s.sched.piece = 256 * kB
	s.tick()
	a = s.wantFetch(0, 0, 64*kB)
	s.wantOpen(0)
	s.opened(a.conn, 20*ms)
	s.headReceived(a, size)
	return s, a
}

// opens counts the connections to be opened, by link.
func (s *script) opens() (n [4]int) {
	for _, a := range s.pending {
		if a.Kind == Open {
			n[a.Link]++
		}
	}
	return n
}

func TestSeveralConnections(t *testing.T) {
	up := LinkConfig{State: health.Up}
	for _, c := range []struct {
		name   string
		size   int64
		second LinkConfig
		opens  [4]int // besides the first one
	}{
		{"a short object", 2 * mB, up, [4]int{0, 1}},
		{"hardly more than the first range", 192 * kB, up, [4]int{}},
		{"a long object", 64 * mB, up, [4]int{0, 1}},
		{"what paid off before, a short object", 2 * mB, LinkConfig{State: health.Up, Learned: estimate.Entry{Conns: 3}}, [4]int{0, 3}},
		{"what paid off before", 64 * mB, LinkConfig{State: health.Up, Learned: estimate.Entry{Conns: 3}}, [4]int{0, 3}},
		{"what paid off before, with too little left", 1*mB - 1, LinkConfig{State: health.Up, Learned: estimate.Entry{Conns: 3}}, [4]int{0, 1}},
		{"what paid off before the link was metered", 64 * mB, LinkConfig{State: health.Up, Metered: true, Learned: estimate.Entry{Conns: 3}}, [4]int{0, 1}},
		{"no more than the origin allowed", 64 * mB, LinkConfig{State: health.Up, Learned: estimate.Entry{Conns: 3, MaxConns: 1}}, [4]int{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := several(t, c.size, up, c.second)
			if got := s.opens(); got != c.opens {
				t.Errorf("opens %v connections, want %v: %s", got, c.opens, s.show())
			}
		})
	}
	for _, c := range []struct {
		name  string
		fails func(s *script, a *asked, extra uint32)
	}{
		{"the origin refuses the second one", func(s *script, _ *asked, extra uint32) { s.openFailed(extra, fault.Unreachable) }},
		{"there is no slot for it", func(s *script, _ *asked, extra uint32) { s.openFailed(extra, fault.NoSlot) }},
		{"429", func(s *script, a *asked, _ uint32) { s.end(a, Event{Outcome: fault.Busy}) }},
		{"a reset", func(s *script, a *asked, _ uint32) { s.ended(a, fault.Reset) }},
		{"each response closes its connection", func(s *script, _ *asked, extra uint32) {
			s.opened(extra, 20*ms)
			s.head(s.queues[extra][0], Event{Size: 2 * mB, Close: true})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, a := several(t, 2*mB, LinkConfig{State: health.Up, Learned: estimate.Entry{Conns: 2}})
			extra := s.wantOpen(0)
			c.fails(s, a, extra)
			for _, p := range s.pending {
				if p.Kind == ReportFailed {
					t.Errorf("blames the link: %s", s.show())
				}
			}
			if n := s.m.links[0].parallel.N; n != 1 {
				t.Errorf("still wants %d connections", n)
			}
		})
	}
}

// TestNoTrial: nothing is tried when the transfer ends soon, nor where several connections replace pipelining.
func TestNoTrial(t *testing.T) {
	for _, c := range []struct {
		name       string
		left       int64 // bytes
		pipelining estimate.Pipelining
		want       int
	}{
		{"a long transfer", 100 * mB, estimate.Untried, 2},
		{"the last seconds", 512 * kB, estimate.Untried, 1},
		{"pipelining does not work", 100 * mB, estimate.Broken, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, a := several(t, c.left, LinkConfig{State: health.Up, Learned: estimate.Entry{Pipelining: c.pipelining}})
			l := &s.m.links[0]
			now, most := s.now, 0
			for i := range 30 { // a megabyte per second at first, then half of it
				n := int64(50e3)
				if i < 8 {
					n = 100e3
				}
				now = now.Add(SampleEvery)
				l.got += n
				l.rate.Add(now, n)
				l.busy = true
				s.m.sampled(now, Event{Conn: a.conn, Path: PathSample{RTT: 20 * ms, Least: 20 * ms, Holes: int64(i + 1)}})
				most = max(most, l.parallel.N)
			}
			if most != c.want {
				t.Errorf("%d connections, want %d", most, c.want)
			}
		})
	}
}

// TestTrialOfConnections: where goodput is flat and nothing queues, a further connection is tried. It sends no request if its
// handshake shows that packets wait in front of the link.
func TestTrialOfConnections(t *testing.T) {
	for _, c := range []struct {
		name  string
		rtt   time.Duration // of the handshake
		tried bool
	}{
		{"nothing waits in front of the link", 21 * ms, true},
		{"packets wait", 80 * ms, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := running(t, Config{MostConns: MostConns, Reorder: 128 * mB}, 1, 100*mB)
			s.ask(0, 64*kB, 60*mB)
			a := s.wantFetch(0, 64*kB, 60*mB)
			s.headReceived(a, 100*mB)
			l := &s.m.links[0]
			for i := 0; l.parallel.N == 1; i++ {
				if i == 20 {
					t.Fatal("no trial")
				}
				s.advance(SampleEvery)
				s.read(a, 100e3)
				s.handle(Event{Kind: Sampled, Conn: a.conn, Path: PathSample{RTT: 20 * ms, Least: 20 * ms, Data: 20 * ms}})
			}
			extra := s.wantOpen(0)
			s.quiet() // no request before the handshake
			s.opened(extra, c.rtt)
			if !c.tried {
				s.wantClose(extra)
				s.quiet()
			}
			s.sched.piece = 8 * mB
			if s.tick(); !c.tried {
				if b := s.last(0); b.conn != a.conn {
					t.Errorf("asks on connection %d, want %d", b.conn, a.conn)
				}
			} else if b := s.last(0); b.conn != extra || b.r.Len() > 1e6 {
				t.Errorf("asks for %v on connection %d, want at most half a second on %d", b.r, b.conn, extra)
			}
			if got := l.parallel.Doubling(); got != c.tried {
				t.Errorf("under trial: %v", got)
			}
		})
	}
}

// TestRefusalBesideOthers: a refusal over HTTP/2 ends one request, and those that follow go one at a time. The link does not
// rest, since the origin serves that much.
func TestRefusalBesideOthers(t *testing.T) {
	s, conns := runningOver(t, Config{}, 1, 8*mB, true)
	s.ask(0, 1*mB, 2*mB)
	a := s.wantFetch(0, 1*mB, 2*mB)
	s.ask(0, 2*mB, 3*mB)
	b := s.wantFetch(0, 2*mB, 3*mB)
	if a.conn != conns[0] || b.conn != conns[0] {
		t.Fatalf("on connections %d and %d, want %d", a.conn, b.conn, conns[0])
	}
	s.headReceived(a, 8*mB)
	s.complete(a)
	s.end(b, Event{Outcome: fault.Busy, Stays: true})
	if s.m.conn(conns[0]) == nil {
		t.Fatal("closes the connection")
	}
	s.sched.piece = 1 * mB
	s.tick()
	next := s.last(0)
	if next.conn != conns[0] || len(s.queues[next.conn]) != 1 {
		t.Errorf("%d requests on connection %d, want one on %d", len(s.queues[next.conn]), next.conn, conns[0])
	}
}

// TestRefusalEndsConnection: if the connection ends with a refusal over HTTP/2, the other requests on it are made again.
func TestRefusalEndsConnection(t *testing.T) {
	s, _ := runningOver(t, Config{}, 1, 8*mB, true)
	s.ask(0, 1*mB, 2*mB)
	a := s.wantFetch(0, 1*mB, 2*mB)
	s.ask(0, 2*mB, 3*mB)
	s.wantFetch(0, 2*mB, 3*mB)
	s.end(a, Event{Outcome: fault.Busy})
	s.wantFree(span(64*kB, 8*mB))
}

// TestLearned: a transfer reports what it has found itself, not what it was told.
func TestLearned(t *testing.T) {
	told := LinkConfig{State: health.Up, Learned: estimate.Entry{Pipelining: estimate.Broken, MaxConns: 2, Conns: 3}}
	check := func(t *testing.T, s *script, want estimate.Entry) {
		t.Helper()
		l := s.state().Links[0].Learned
		if got := (estimate.Entry{Pipelining: l.Pipelining, MaxConns: l.MaxConns, Conns: l.Conns, Each: l.Each}); got != want {
			t.Errorf("learned %+v, want %+v", got, want)
		}
	}
	s, a := several(t, 64*mB, told)
	if l := &s.m.links[0]; l.conns() != 2 {
		t.Fatalf("keeps to %d connections", l.conns())
	}
	check(t, s, estimate.Entry{})
	s.end(a, Event{Outcome: fault.Busy})
	check(t, s, estimate.Entry{MaxConns: 1})
	s.m.links[0].parallel.Paid = 2
	check(t, s, estimate.Entry{MaxConns: 1, Conns: 2})

	limited := LinkConfig{State: health.Up, Learned: estimate.Entry{Conns: 8, Each: 1e6}}
	s, _ = several(t, 64*mB, limited)
	if l := &s.m.links[0]; l.conns() != 8 || l.parallel.Each() != 1e6 {
		t.Errorf("begins with %d connections of %.0f bytes per second each", l.conns(), l.parallel.Each())
	}
	check(t, s, estimate.Entry{Each: 1e6})
}
