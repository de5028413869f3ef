package transfer

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
)

// needs takes the needs that the machine reported since the last call.
func (s *script) needs() []int64 {
	all := s.told
	s.told = nil
	return all
}

// full makes a transfer of one link whose window of 4 MiB is full.
func full(t *testing.T) *script {
	s, _ := running(t, Config{Reorder: 4 * mB}, 1, 1024*mB)
	s.handle(Event{Kind: Granted, N: 4 * mB})
	s.sched.piece = 256 * kB
	s.fill()
	s.needs()
	return s
}

// fill delivers all requested bytes, and grants the need, 4 MiB at most.
func (s *script) fill() {
	s.t.Helper()
	for more := true; more; {
		more = false
		s.tick()
		for _, q := range s.queues {
			if len(q) == 0 || q[0].cursor >= min(q[0].credit, q[0].r.End) {
				continue
			}
			more = true
			if !q[0].hasHead {
				s.headReceived(q[0], 1024*mB)
			}
			if q[0].credit >= q[0].r.End {
				s.complete(q[0])
			} else {
				s.read(q[0], q[0].credit-q[0].cursor)
			}
			break
		}
	}
}

// TestR082_SlowClientNeedsLittle: a client that leaves its window full needs a second of its speed; one that takes more needs
// more, at once.
func TestR082_SlowClientNeedsLittle(t *testing.T) {
	s := full(t)
	take := func(n int64, every time.Duration, times int) {
		t.Helper()
		for range times {
			s.advance(every)
			s.handle(Event{Kind: Delivered, N: n})
			s.fill()
		}
	}
	take(100*kB, 100*ms, 20)
	need := s.needs()
	if len(need) == 0 || need[len(need)-1] < 700*kB || need[len(need)-1] > 1200*kB {
		t.Fatalf("needs of a client that takes 1000 kB/s: %v", need)
	}
	s.handle(Event{Kind: Granted, N: 1 * mB})
	take(10*kB, 100*ms, 60)
	if need = s.needs(); len(need) == 0 || need[len(need)-1] > 5*leastNeed/4 {
		t.Fatalf("needs of a client that takes 100 kB/s: %v", need)
	}
	s.handle(Event{Kind: Granted, N: leastNeed})
	take(10*kB, 100*ms, 200)
	if need = s.needs(); len(need) > 0 {
		t.Fatalf("needs of the same client, later: %v", need)
	}
	var last int64
	for range 40 { // now it takes whatever comes
		s.advance(growEvery / 2)
		s.deliver()
		s.fill()
		if need := s.needs(); len(need) > 0 {
			if last = need[len(need)-1]; last == math.MaxInt64 {
				return
			}
			s.handle(Event{Kind: Granted, N: min(last, 4*mB)})
		}
	}
	t.Errorf("a client that takes all still needs %d only", last)
}

// TestStoppedClientNeedsLittle: a client that stops is noticed without an event.
func TestStoppedClientNeedsLittle(t *testing.T) {
	s := full(t)
	for range 10 {
		s.advance(consumptionPeriod)
	}
	if need := s.needs(); len(need) != 1 || need[0] != leastNeed {
		t.Errorf("needs %v", need)
	}
}

// TestSlowClientIsServedInBursts: room is filled when it is half of the window, and at once if the window runs low.
func TestSlowClientIsServedInBursts(t *testing.T) {
	s := full(t)
	for range 10 {
		s.advance(consumptionPeriod)
	}
	s.handle(Event{Kind: Granted, N: leastNeed})
	s.handle(Event{Kind: Delivered, N: s.state().Ready - leastNeed})
	s.needs()
	s.tick()
	if n := len(s.asked); n != 0 {
		t.Fatalf("%d requests while the window is full", n)
	}
	s.advance(10 * ms)
	s.handle(Event{Kind: Delivered, N: leastNeed/2 - 1})
	if n := len(s.asked); n != 0 {
		t.Errorf("%d requests while more than half of the window is full", n)
	}
	s.handle(Event{Kind: Delivered, N: 1})
	if n := len(s.asked); n == 0 {
		t.Error("no request although half of the window is empty")
	}
}

// slowOverTwo makes a transfer over two links to a client that has taken 100 kB/s for a while, so that one link serves it alone. It
// returns the connections.
func slowOverTwo(t *testing.T) (*script, []uint32) {
	known := LinkConfig{Learned: estimate.Entry{Rate: 1e6}}
	s, conns := running(t, Config{Reorder: mB, Links: []LinkConfig{known, known}}, 2, 1024*mB)
	s.handle(Event{Kind: Granted, N: mB})
	s.sched.piece = 64 * kB
	s.fill()
	for range 20 {
		s.sip(10*kB, 100*ms)
	}
	if n := s.needs(); len(n) == 0 {
		t.Fatal("the client is not slow")
	}
	s.handle(Event{Kind: Granted, N: leastNeed})
	for range 60 { // it empties the rest of the larger window
		s.sip(20*kB, 100*ms)
	}
	return s, conns
}

// sip lets the client take n bytes after some time, and delivers what is requested then.
func (s *script) sip(n int64, after time.Duration) {
	s.t.Helper()
	s.advance(after)
	s.handle(Event{Kind: Delivered, N: n})
	s.fill()
}

// uses returns the links of the requests since the last call.
func (s *script) uses() (links [2]int) {
	for _, a := range s.pending {
		if a.Kind == Fetch {
			links[a.Link]++
		}
	}
	s.pending = nil
	return links
}

// TestSlowClientHasOneConnection: one link serves a client that leaves its window full, and connections that it does not need are
// given back. When the window runs low or the link falls silent, both links serve it.
func TestSlowClientHasOneConnection(t *testing.T) {
	s, conns := slowOverTwo(t)
	var kept []uint32
	for _, a := range s.pending {
		if a.Kind == Keep {
			kept = append(kept, a.Conn)
		}
		if a.Kind == Open {
			t.Errorf("a connection over link %d", a.Link)
		}
	}
	if len(kept) != 1 || !slices.Contains(conns, kept[0]) {
		t.Fatalf("of %v, %v were given back", conns, kept)
	}
	s.pending = nil
	for range 50 {
		s.sip(20*kB, 100*ms)
	}
	used := s.uses()
	if (used[0] == 0) == (used[1] == 0) {
		t.Fatalf("requests by link: %v", used)
	}
	only := int8(0)
	if used[1] > 0 {
		only = 1
	}
	if l := s.state().Links[1-only]; l.Spared != schedule.NoRoom || l.Usable {
		t.Errorf("the other link is %+v", l)
	}
	s.link(only, health.Suspect)
	s.sip(150*kB, 100*ms)
	if used := s.uses(); used[1-only] == 0 {
		t.Errorf("requests by link when link %d is a suspect: %v", only, used)
	}
	s.link(only, health.Up)

	s, _ = slowOverTwo(t)
	s.pending = nil
	s.advance(10 * ms)
	s.handle(Event{Kind: Delivered, N: s.state().Ready - 10*kB}) // it takes all that there is
	for i, l := range s.state().Links {
		if !l.Usable {
			t.Errorf("link %d is not used although the window runs low", i)
		}
	}
}

// TestScarceMemoryLeavesOneLink: with a grant that is not worth two links one link serves, the one that was chosen for that; both do
// with a larger grant, for an object that needs no more, or when that link falls silent or is much slower.
func TestScarceMemoryLeavesOneLink(t *testing.T) {
	scarce := func(t *testing.T, size int64, learned ...float64) *script {
		cfg := Config{Reorder: leastNeed / 2, Links: []LinkConfig{{}, {Sole: true}}}
		for i, rate := range learned {
			cfg.Links[i].Learned.Rate = rate
		}
		s, _ := running(t, cfg, 2, size)
		s.sched.piece = 64 * kB
		s.handle(Event{Kind: Granted, N: leastNeed / 2})
		return s
	}
	s := scarce(t, 1024*mB)
	if used := take(s); used[0] > 0 || used[1] == 0 {
		t.Errorf("requests by link: %v", used)
	}
	s.handle(Event{Kind: Granted, N: mB})
	if used := take(s); used[0] == 0 || used[1] == 0 {
		t.Errorf("requests by link with a large grant: %v", used)
	}

	s = scarce(t, 1024*mB)
	if l := s.state().Links[0]; l.Usable {
		t.Error("link 0 is used, too")
	}
	s.link(1, health.Suspect)
	if l := s.state().Links[0]; !l.Usable {
		t.Error("link 0 is not used while link 1 is a suspect")
	}

	s = scarce(t, 1024*mB, 1e9, 1e3)
	if used := take(s); used[0] == 0 {
		t.Errorf("requests by link when link 1 is much slower: %v", used)
	}

	const small = leastNeed * 3 / 4
	s = scarce(t, small)
	s.handle(Event{Kind: Granted, N: small})
	if l := s.state().Links[0]; !l.Usable {
		t.Error("a small object is not fetched over all links")
	}
}

// TestScarceMemoryAtTheStart: a transfer that begins while memory is scarce uses one link for a while.
func TestScarceMemoryAtTheStart(t *testing.T) {
	s, _ := running(t, Config{Scarce: true, Reorder: mB, Links: []LinkConfig{{}, {Sole: true}}}, 2, 1024*mB)
	s.sched.piece = 64 * kB
	s.handle(Event{Kind: Granted, N: mB})
	if used := take(s); used[0] > 0 || used[1] == 0 {
		t.Errorf("requests by link: %v", used)
	}
	take(s)
	if used := take(s); used[0] == 0 {
		t.Errorf("requests by link after %v: %v", soleFor, used)
	}
}

// take fetches for two seconds for a client that takes everything, and returns the links of the requests.
func take(s *script) [2]int {
	s.t.Helper()
	s.pending = nil
	for range 20 {
		s.sip(s.state().Ready, 100*ms)
	}
	return s.uses()
}
