package transfer

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

const (
	kB = 1 << 10
	mB = 1 << 20
	ms = time.Millisecond
)

// script drives a Machine in virtual time. The want functions take the machine's actions out of pending, in any order of kinds;
// quiet checks that nothing but credits is left. After each event the invariants are checked:
//
//	s := start(t, Config{Initial: 64 * kB}, 2) // two links, up; link 0 opens a connection and asks
//	a := s.wantFetch(0, 0, 64*kB)
//	s.opened(s.wantOpen(0), 20*ms)
//	s.headReceived(a, 1*mB)
//	s.read(a, 10*kB)
//	s.advance(time.Second)                     // ticks as the machine asked for them
//	s.wantReport(ReportSilent, 0)
type script struct {
	t       *testing.T
	m       *Machine
	sched   *steps
	now     time.Time
	next    time.Time // deadline of the machine
	again   bool      // it asked the policy again
	pending []Action
	h2      bool    // connections speak HTTP/2
	told    []int64 // needs
	asked   map[uint32]*asked
	queues  map[uint32][]*asked // by connection: its requests without the end of their answers
}

// asked is a request as the origin and the reader see it.
type asked struct {
	id, conn uint32
	link     int8
	want     int64         // where its wanted part begins, behind the prefix of a spot check
	r        segment.Range // of the answer once headed
	cursor   int64
	credit   int64
	hasHead  bool
	reason   schedule.Rule
}

// steps is a scheduler controlled by the test: first the decisions of todo, each as soon as its link can ask; then, if piece is
// not zero, any link that can ask gets the first free piece.
type steps struct {
	todo  []schedule.Decision
	piece int64
}

func (s *steps) Next(_ time.Time, v *schedule.View) schedule.Decision {
	if len(s.todo) > 0 {
		d := s.todo[0]
		if l := v.Links[d.Link]; !l.Usable || !l.CanAsk {
			return schedule.Decision{}
		}
		s.todo = s.todo[1:]
		return d
	}
	for i, l := range v.Links {
		if s.piece > 0 && l.Usable && l.CanAsk && len(v.Free) > 0 && v.Free[0].Start < v.Limit {
			f := v.Free[0]
			return schedule.Decision{Do: schedule.Fetch, Link: int8(i), Range: span(f.Start, min(f.End, f.Start+s.piece))}
		}
	}
	return schedule.Decision{}
}

func span(start, end int64) segment.Range { return segment.Range{Start: start, End: end} }

// start makes a machine with n links, all up.
func start(t *testing.T, cfg Config, n int) *script {
	t.Helper()
	s := prepare(t, cfg, n)
	for i := range n {
		s.link(int8(i), health.Up)
	}
	return s
}

// prepare makes a machine with n links, down unless cfg says otherwise.
func prepare(t *testing.T, cfg Config, n int) *script {
	t.Helper()
	s := &script{t: t, sched: &steps{}, now: time.Unix(1_000_000, 0), asked: map[uint32]*asked{}, queues: map[uint32][]*asked{}}
	if cfg.Requested == (segment.Range{}) {
		cfg.Requested.End = Unknown
	}
	if cfg.Scheduler == nil {
		cfg.Scheduler = s.sched
	}
	if cfg.WaitForLink == 0 {
		cfg.WaitForLink = 10 * time.Second
	}
	if cfg.Reorder == 0 {
		cfg.Reorder = 16 * mB
	}
	for i := range n {
		if i >= len(cfg.Links) {
			cfg.Links = append(cfg.Links, LinkConfig{})
		}
		cfg.Order = append(cfg.Order, int8(i))
	}
	s.m = New(cfg)
	s.trust(proven) // but see unproven
	return s
}

// trust sets what checks have shown about every link.
func (s *script) trust(t trust) {
	for i := range s.m.links {
		s.m.links[i].spot.trust = t
	}
}

// unproven makes the machine check every link.
func (s *script) unproven() { s.trust(unknown) }

// handle gives one event to the machine, records its actions, and checks the invariants.
func (s *script) handle(e Event) {
	s.t.Helper()
	before := s.state()
	r := s.m.Handle(s.now, e)
	s.next, s.again = r.Next, r.Ask
	if !s.m.ended && !s.m.Check() {
		s.t.Fatalf("after %+v: ranges do not partition the object, or credit beyond the window", e)
	}
	forgets := slices.ContainsFunc(r.Do, func(a Action) bool { return a.Kind == Forget })
	if after := s.state(); !s.m.ended && !forgets { // the actions explain the difference of the snapshots
		got := Received{Fresh: after.Received - after.Waste - before.Received + before.Waste, Waste: after.Waste - before.Waste}
		if got.Keep, got.Tail = r.Received.Keep, r.Received.Tail; got != r.Received || r.Ready != after.Offset+after.Ready || r.Holds < after.Held || r.Holds < after.Window {
			s.t.Fatalf("after %+v: %+v, but the state was %+v and is %+v", e, r, before, after)
		}
	}
	for _, a := range r.Do {
		if a.Kind == Need {
			s.told = append(s.told, a.N)
			continue
		}
		s.note(a)
		s.pending = append(s.pending, a)
	}
	if !s.m.ended && !s.m.Check() {
		s.t.Fatalf("after %+v: the ledger or a credit is broken", e)
	}
}

// note keeps account of requests and credits.
func (s *script) note(a Action) {
	s.t.Helper()
	switch a.Kind {
	case Fetch, FetchAll, FetchAhead:
		if a.Range.Empty() || a.Range.Start < 0 {
			s.t.Fatalf("asks for %v", a.Range)
		}
		if s.m.known && a.Rule != schedule.Reserve { // the first request may go out over every link
			s.twice(a)
		}
		q := &asked{id: a.Attempt, conn: a.Conn, link: a.Link, want: a.Range.Start + a.Prefix, r: a.Range, cursor: a.Range.Start, credit: a.UpTo, reason: a.Rule}
		s.asked[a.Attempt] = q
		s.queues[a.Conn] = append(s.queues[a.Conn], q)
	case Credit:
		q := s.asked[a.Attempt]
		if q == nil {
			s.t.Fatalf("credit for attempt %d, which has ended", a.Attempt)
		}
		if a.UpTo <= q.credit {
			s.t.Fatalf("credit of attempt %d goes from %d to %d", a.Attempt, q.credit, a.UpTo)
		}
		if q.credit = a.UpTo; q.credit > q.r.End {
			s.t.Fatalf("credit %d beyond the answer %v", q.credit, q.r)
		}
	case Cut:
		q := s.asked[a.Attempt]
		if q == nil || a.UpTo >= q.r.End || a.UpTo < q.cursor {
			s.t.Fatalf("attempt %d is cut at %d: %+v", a.Attempt, a.UpTo, q)
		}
		q.r.End = a.UpTo
		q.credit = min(q.credit, a.UpTo)
	case CloseConn, Keep:
		s.forget(a.Conn)
	}
}

// twice fails the test if a byte is asked for a third time while two attempts still fetch it.
func (s *script) twice(a Action) {
	s.t.Helper()
	var once segment.Set
	for _, q := range s.asked {
		if s.m.attempt(q.id) == nil || q.id == a.Attempt {
			continue
		}
		r := span(max(q.cursor, q.want), s.m.Wanted(q.id)).Clip(span(a.Range.Start+a.Prefix, a.Range.End))
		if r.Empty() {
			continue
		}
		if once.Overlap(r) > 0 {
			s.t.Fatalf("%v is asked for a third time (%v)", r, a.Rule)
		}
		once.Add(r)
	}
}

func (s *script) forget(conn uint32) {
	for _, q := range s.queues[conn] {
		delete(s.asked, q.id)
	}
	delete(s.queues, conn)
}

// advance lets time pass: the machine gets a Tick whenever it asked for one.
func (s *script) advance(d time.Duration) {
	s.t.Helper()
	end := s.now.Add(d)
	for n := 0; !s.next.IsZero() && !s.next.After(end); n++ {
		if n > 100 {
			s.t.Fatalf("spins: after 100 ticks the next one is due at %v, now is %v", s.next, s.now)
		}
		if s.next.After(s.now) {
			s.now = s.next
		}
		s.handle(Event{Kind: Tick})
	}
	s.now = end
}

func (s *script) tick() { s.t.Helper(); s.handle(Event{Kind: Tick}) }

// state returns the current state of the machine.
func (s *script) state() State { return s.m.State(s.now) }

// appears adds a link, which is down.
func (s *script) appears(i int8, allowed bool) {
	s.t.Helper()
	s.handle(Event{Kind: LinkState, Link: i, State: health.Down, New: &LinkConfig{Proven: true}, Allowed: allowed})
}

func (s *script) link(i int8, st health.State) {
	s.t.Helper()
	s.handle(Event{Kind: LinkState, Link: i, State: st})
}

func (s *script) opened(conn uint32, rtt time.Duration) {
	s.t.Helper()
	s.handle(Event{Kind: Opened, Conn: conn, RTT: rtt, Multiplexed: s.h2})
}

func (s *script) openFailed(conn uint32, outcome fault.Outcome) {
	s.t.Helper()
	s.forget(conn)
	s.handle(Event{Kind: OpenFailed, Conn: conn, Outcome: outcome})
}

// first checks that a is the attempt that its connection answers now.
func (s *script) first(a *asked) {
	s.t.Helper()
	if q := s.queues[a.conn]; len(q) == 0 || q[0] != a {
		s.t.Fatalf("attempt %d is not the one that its connection answers", a.id)
	}
}

// headReceived delivers the head of an answer with the requested range, cut off at the end of the object.
func (s *script) headReceived(a *asked, size int64) {
	s.t.Helper()
	s.head(a, Event{Size: size})
}

// head delivers the head of an answer; a zero Range stands for the requested one.
func (s *script) head(a *asked, e Event) {
	s.t.Helper()
	s.first(a)
	e.Kind, e.Attempt = HeadReceived, a.id
	if e.Range.Empty() {
		e.Range = span(a.r.Start, min(a.r.End, e.Size))
	}
	a.r, a.hasHead = e.Range, true
	a.credit = min(a.credit, a.r.End)
	s.handle(e)
}

// read reads n bytes, for which there must be credit.
func (s *script) read(a *asked, n int64) {
	s.t.Helper()
	s.first(a)
	if !a.hasHead || a.cursor+n > min(a.credit, a.r.End) {
		s.t.Fatalf("attempt %d cannot read %d bytes at %d: credit %d, answer %v", a.id, n, a.cursor, a.credit, a.r)
	}
	a.cursor += n
	s.handle(Event{Kind: Read, Attempt: a.id, N: n})
}

// complete reads the rest of an answer and its end.
func (s *script) complete(a *asked) {
	s.t.Helper()
	if a.cursor < a.r.End {
		s.read(a, a.r.End-a.cursor)
	}
	if s.asked[a.id] == nil { // its connection was closed with the last byte
		return
	}
	s.first(a)
	s.queues[a.conn] = s.queues[a.conn][1:]
	delete(s.asked, a.id)
	s.handle(Event{Kind: Ended, Attempt: a.id, Outcome: fault.Complete})
}

// answer delivers a whole answer.
func (s *script) answer(a *asked, size int64) {
	s.t.Helper()
	s.headReceived(a, size)
	s.complete(a)
}

// ended breaks an attempt and with it its connection.
func (s *script) ended(a *asked, outcome fault.Outcome) {
	s.t.Helper()
	s.end(a, Event{Outcome: outcome})
}

func (s *script) end(a *asked, e Event) {
	s.t.Helper()
	s.forget(a.conn)
	e.Kind, e.Attempt = Ended, a.id
	s.handle(e)
	s.drop(CloseConn)
}

// deliver delivers everything that is ready to the client.
func (s *script) deliver() {
	s.t.Helper()
	s.handle(Event{Kind: Delivered, N: s.state().Ready})
}

// ask lets the scheduler ask link for a range.
func (s *script) ask(link int8, from, to int64) {
	s.t.Helper()
	s.sched.todo = append(s.sched.todo, schedule.Decision{Do: schedule.Fetch, Link: link, Range: span(from, to)})
	s.tick()
}

// take lets the scheduler give a tail of attempt a to another link.
func (s *script) take(link int8, a *asked, from, to int64) {
	s.t.Helper()
	s.sched.todo = append(s.sched.todo, schedule.Decision{
		Do: schedule.Fetch, Link: link, Range: span(from, to), From: a.id,
		Rule: schedule.Steal,
	})
	s.tick()
}

// running makes a transfer of size bytes over n links that has had its first answer, 64 KiB, over link 0; each link has an
// open, idle connection. It returns the connections.
func running(t *testing.T, cfg Config, n int, size int64) (*script, []uint32) {
	t.Helper()
	return runningOver(t, cfg, n, size, false)
}

func runningOver(t *testing.T, cfg Config, n int, size int64, h2 bool) (*script, []uint32) {
	t.Helper()
	cfg.Initial, cfg.Warm = 64*kB, true
	s := start(t, cfg, n)
	s.h2 = h2
	a := s.wantFetch(0, 0, 64*kB)
	conns := []uint32{s.wantOpen(0)}
	s.opened(conns[0], 20*ms)
	for i := 1; i < n; i++ {
		conns = append(conns, 0)
	}
	s.advance(20 * ms)
	s.answer(a, size)
	s.deliver()
	for i := 1; i < n; i++ {
		s.ask(int8(i), 64*kB*int64(i), 64*kB*int64(i+1))
		b := s.wantFetch(int8(i), 64*kB*int64(i), 64*kB*int64(i+1))
		conns[i] = s.wantOpen(int8(i))
		s.opened(conns[i], 20*ms)
		s.advance(20 * ms)
		s.answer(b, size)
		s.deliver()
	}
	s.quiet()
	return s, conns
}
