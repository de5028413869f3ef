package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

// Spec describes one run.
type Spec struct {
	Size       int64 // size of the object in bytes
	Links      []Link
	Scheduler  string
	Goal       string             // "" = fastest
	Deadline   *schedule.Deadline // replaces Goal if not nil; links with a Radio are optional
	Background bool               // the transfer gives way to other traffic
	Counted    bool               // the transfer knows the other traffic on the links
	// downloads of other programs meanwhile; those unfinished when the transfer ends are not counted
	Beside []Beside
	Window int64   // reorder window in bytes
	First  int64   // size of the first range, 0 = the client's own GET
	Client float64 // bytes per second that the client reads, 0 = as fast as they arrive
	Hinted bool    // the size is known beforehand, so that all links get requests before the first response
	// with Hinted: bytes for each further link before the first response, 0 = the product's 128 KiB
	Ahead     int64
	Unchecked bool             // no spot checks
	Reserve   bool             // the transfer keeps a response in reserve, as in the product
	Restart   bool             // restart continuation
	Slow      health.SlowCheck // "" = SlowGuarded, the product's default
	Faults    Faults
	Limits    Limits
	Seed      uint64
	Log       func(at time.Duration, what string) // may be nil

	read func(at time.Duration, link int8, n int64) // called when n bytes arrive; may be nil
	with schedule.Scheduler                         // replaces the scheduler named by Scheduler if not nil

	carried []int64 // result of Limit; nil = not computed yet

	began time.Duration // time of the links at the start
	kept  []kept        // connections of an earlier run, by link; nil = none
}

// kept is a connection that a run leaves for the next one; the zero value means none.
type kept struct {
	wnd window
	at  time.Duration // time of its last use
}

// Under returns s with the named scheduler, or, if the name is that of the goal frugal, with the default scheduler and
// that goal.
func (s Spec) Under(scheme string) Spec {
	s.Scheduler, s.Goal = scheme, ""
	if scheme == schedule.FrugalGoal {
		s.Scheduler, s.Goal = schedule.Default, scheme
	}
	return s
}

// Faults are the origin's faults. Each float is a probability per answer.
type Faults struct {
	Reset       float64       // the connection breaks in mid-body
	Short       float64       // the answer has fewer bytes than requested, legally
	CloseAfter  int           // number of answers after which the server closes a connection; 0 = never
	Unannounced bool          // its answers do not say that the connection will be closed
	NoPipeline  bool          // the server drops requests behind an unfinished answer and closes the connection
	MostAsked   int           // number of requests that the origin answers; it refuses later ones. 0 = any number
	Expires     time.Duration // requests after this time are refused; 0 = never
	// link on which every range but the first request is refused; 0 = none (link 0 is never refused)
	RefuseOn int8
}

// Limits are how fast the origin sends, in bytes per second; 0 = as fast as it can. Each is a token bucket.
type Limits struct {
	Conn   float64 // to a connection
	Link   float64 // over a link, as an origin sees it that limits addresses
	Object float64 // of the object
	Burst  float64 // bytes that each bucket holds at first, and at most
}

// bucket limits how fast the origin sends.
type bucket struct {
	used float64 // bytes beyond the burst; negative while some of it is left
	at   time.Duration
}

// wait returns how long nothing may be sent.
func (b *bucket) wait(now time.Duration, rate, burst float64) time.Duration {
	if rate == 0 {
		return 0
	}
	b.used = max(-burst, b.used-rate*(now-b.at).Seconds())
	if b.at == 0 {
		b.used = -burst
	}
	b.at = now
	return time.Duration(max(0, b.used) / rate * float64(time.Second))
}

// Result is the result of a run.
type Result struct {
	Took     time.Duration // time until the last byte was delivered
	Bytes    []int64       // bytes received, by link
	Last     []time.Duration
	Waste    int64
	Compared int64 // part of Waste that was fetched for spot checks
	Verified int64 // part of Compared in requests that fetch nothing else
	MaxHeld  int64
	Pause    time.Duration // longest time without a byte at the client after the first one
	Requests int
	Most     []int // connections at the same time, by link
	Bans     int
	// how often a link was left out because it added nothing, and taken back because it was missed
	LeftOut, TakenBack int
	InOrder            float64 // bytes delivered at half of the time, as a share of those received
	Received           Received
	Joules             []energy.Joules // by link, including its tail
	Beside             []time.Duration // duration of each of Spec.Beside; 0 = not finished

	asked int // requests that the origin has received
	kept  []kept

	progress []progress
}

// progress is the progress of a transfer at a time.
type progress struct {
	at                  time.Duration
	delivered, received int64
}

// FailedError reports that the transfer gave up.
type FailedError struct {
	At      time.Duration
	Outcome fault.Outcome
	Link    int8
	Offset  int64
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("failed at %v: %v on link %d, offset %d", e.At, e.Outcome, e.Link, e.Offset)
}

// Delta returns the link delta: the time between the last bytes of the first link and the last link to finish.
func (r *Result) Delta() time.Duration {
	lo, hi := time.Duration(0), time.Duration(0)
	for i, t := range r.Last {
		if r.Bytes[i] == 0 {
			continue
		}
		if lo == 0 || t < lo {
			lo = t
		}
		hi = max(hi, t)
	}
	return hi - lo
}

// maxTime bounds a run in virtual time.
const maxTime = time.Hour

type item struct {
	at  time.Duration
	seq uint64
	do  func()
}

type queue []item

// before reports whether an item comes before another one.
func (x *item) before(y *item) bool { return x.at < y.at || x.at == y.at && x.seq < y.seq }

// push adds an item. The queue is a binary heap; package container/heap would allocate each item.
func (q *queue) push(x item) {
	h := append(*q, x)
	i := len(h) - 1
	for i > 0 && x.before(&h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = x
	*q = h
}

// pop removes and returns the first item.
func (q *queue) pop() item {
	h := *q
	first, last := h[0], h[len(h)-1]
	h[len(h)-1] = item{}
	h = h[:len(h)-1]
	*q = h
	for i := 0; len(h) > 0; {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if child >= len(h) || !h[child].before(&last) {
			h[i] = last
			break
		}
		h[i] = h[child]
		i = child
	}
	return first
}

// world is one run.
type world struct {
	spec       Spec
	rng        *rand.Rand
	now        time.Duration
	seq        uint64
	events     queue
	m          *transfer.Machine
	board      health.Board
	links      []*simLink
	conns      map[uint32]*simConn
	asks       map[uint32]*ask
	ahead      []*ask // requests made before the first response
	res        Result
	offset     int64
	writing    bool
	given      int64 // offset before which all bytes are delivered or on their way to the client
	samples    []*sample
	sent       bucket          // of the object
	tails      []segment.Range // by link: its last bytes that may be compared
	lastOut    time.Duration
	wake       time.Duration // time of the machine's next deadline
	boardAt    time.Duration
	checked    int // events whose state was checked
	reported   time.Duration
	gain       []float64 // gain of each link, as last reported
	traffic    []health.Traffic
	contention health.Contention
	radios     []energy.Meter // by link
	err        error
	over       bool
	audit      *audit
	said       *listener
}

// listener keeps a scheduler's last decision.
type listener struct {
	schedule.Scheduler
	last schedule.Decision
}

// Next implements schedule.Scheduler.
func (l *listener) Next(now time.Time, v *schedule.View) schedule.Decision {
	l.last = l.Scheduler.Next(now, v)
	return l.last
}

var epoch = time.Unix(1_000_000_000, 0)

func (w *world) at(d time.Duration) time.Time { return epoch.Add(d) }

// goal returns what the policy answers about a request over these links, nil for none.
func (s *Spec) goal() schedule.Goal {
	links := make([]policy.Link, len(s.Links))
	for i := range s.Links {
		links[i].Terms = policy.Terms{
			Goal: s.Goal, Metered: s.Links[i].Metered, Radio: s.Links[i].Radio, PerPercent: schedule.DefaultPerPercent,
		}
	}
	return policy.For(policy.Request{Deadline: s.Deadline}, links).Goal
}

// Run runs one transfer.
func Run(s Spec) (Result, error) {
	if knows(s.Scheduler) {
		s.Window = max(s.Window, s.Size+1)
	}
	sched, err := s.scheduler()
	if err != nil {
		return Result{}, err
	}
	said := &listener{Scheduler: sched}
	w := &world{
		said:    said,
		spec:    s,
		rng:     rand.New(rand.NewPCG(s.Seed, 7)),
		conns:   map[uint32]*simConn{},
		asks:    map[uint32]*ask{},
		now:     s.began,
		wake:    -1,
		boardAt: -1,
		lastOut: -1,
	}
	goal := s.goal()
	cfg := transfer.Config{
		KeepWindow:  s.Deadline != nil,
		Background:  s.Background,
		Goal:        goal,
		Requested:   segment.Range{Start: 0, End: transfer.Unknown},
		Initial:     s.First,
		Scheduler:   said,
		Warm:        true,
		Reserve:     s.Reserve && !s.Restart,
		Restart:     s.Restart,
		WaitForLink: 5 * time.Minute,
		Reorder:     firstGrant(s),
		Links:       make([]transfer.LinkConfig, len(s.Links)),
	}
	for i := range s.Links {
		cfg.Links[i].Learned, cfg.Links[i].Proven = s.Links[i].Learned, s.Unchecked || s.Restart
		if !s.Links[i].Absent {
			cfg.Links[i].State = health.Up
		}
		cfg.Links[i].Metered = s.Links[i].Metered
		w.radios = append(w.radios, energy.Meter{})
		if r := s.Links[i].Radio; r != nil {
			cfg.Links[i].Radio, cfg.Links[i].Optional = r, goal != nil
			w.radios[i].Radio = *r
		}
		w.links = append(w.links, newLink(s.Links[i]))
		for _, o := range w.links[:i] {
			if c := s.Links[i].Channel; c != 0 && c == o.spec.Channel {
				w.links[i].air = o.air
			}
		}
	}
	if s.Scheduler == schedule.Default && !s.Background {
		cfg.MostConns = transfer.MostConns
	}
	if s.Hinted {
		start := cmp.Or(s.First, 64<<10)
		cfg.Ahead, cfg.AheadEach, cfg.Hint = segment.Range{Start: start, End: max(start, s.Size)},
			cmp.Or(s.Ahead, 128<<10), s.Size
	}
	cfg.Order = s.order()
	w.audit = newAudit(w)
	w.tails = make([]segment.Range, len(s.Links))
	w.gain = make([]float64, len(s.Links))
	w.res.Bytes, w.res.Last = make([]int64, len(s.Links)), make([]time.Duration, len(s.Links))
	w.res.Most = make([]int, len(s.Links))
	w.res.Received, w.res.kept = make(Received, len(s.Links)), make([]kept, len(s.Links))
	w.m = transfer.New(cfg)
	for i := range s.Links {
		w.board.Present(w.at(0), int8(i), !s.Links[i].Absent)
		for _, e := range s.Links[i].Events {
			w.after(e.At, func() { w.linkEvent(int8(i), e) })
		}
	}
	w.res.Beside = make([]time.Duration, len(s.Beside))
	for i, b := range s.Beside {
		w.begin(b, func(took time.Duration) { w.res.Beside[i] = took })
	}
	if s.Background && s.Counted {
		w.crossTraffic()
	}
	w.changes()
	for len(w.events) > 0 && w.err == nil && !w.over {
		e := w.events.pop()
		w.now = e.at
		if w.now > s.began+maxTime {
			w.err = fmt.Errorf("not over after %v: offset %d of %d", maxTime, w.offset, s.Size)
			break
		}
		e.do()
		w.check()
	}
	if w.err == nil && !w.over {
		w.err = fmt.Errorf("stuck at %v: offset %d of %d", w.now, w.offset, s.Size)
	}
	w.res.Took = w.now - s.began
	w.res.Waste, w.res.Compared, w.res.Verified = w.m.Progress().Waste, w.audit.compared, w.audit.verified
	for i := range s.Links {
		w.res.Bans += w.board.Bans(int8(i))
	}
	w.audit.ended()
	for i := range w.radios {
		w.res.Joules = append(w.res.Joules, w.radios[i].Settled())
	}
	for _, p := range w.res.progress {
		if p.at <= w.res.Took/2 && p.received > 0 {
			w.res.InOrder = float64(p.delivered) / float64(p.received)
		}
	}
	return w.res, w.err
}

// firstGrant returns the reorder window in bytes before the size is known.
func firstGrant(s Spec) int64 { return max(s.First, 512<<10) }

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	w.events.push(item{w.now + max(d, 0), w.seq, do})
}

func (w *world) logf(format string, args ...any) {
	if w.spec.Log != nil {
		w.spec.Log(w.now, fmt.Sprintf(format, args...))
	}
}

// handle passes one event to the machine and carries out the resulting actions.
func (w *world) handle(e transfer.Event) {
	if w.over || w.err != nil {
		return
	}
	r := w.m.Handle(w.at(w.now), e)
	if k := w.asks[e.Attempt]; e.Kind == transfer.Read {
		w.tails[k.conn.link] = r.Received.Tail
	}
	say := append([]transfer.Action(nil), r.Do...) // the actions are valid only until the next Handle
	if !r.Next.IsZero() {
		at := max(r.Next.Sub(epoch), w.now+time.Microsecond)
		w.wake = at
		w.after(at-w.now, func() {
			if w.wake == at {
				w.wake = -1
				w.handle(transfer.Event{Kind: transfer.Tick})
			}
		})
	} else {
		w.wake = -1
	}
	for _, a := range say {
		w.carryOut(a)
	}
	w.report()
	w.changes()
	w.write()
}

// reportEvery is the interval at which the engine reports the rates of busy links to the board.
const reportEvery = 250 * time.Millisecond

// report reports the rates of busy links to the board, which bans a link that is far slower than the others.
func (w *world) report() {
	if w.over || w.now-w.reported < reportEvery {
		return
	}
	w.reported = w.now
	s := w.m.State(w.at(w.now))
	if s.Size == transfer.Unknown {
		return
	}
	w.contend(s)
	for i, l := range s.Links {
		if l.Busy && l.Rate > 0 {
			w.board.Speed(w.at(w.now), int8(i), health.Speed{Rate: l.Rate, Gain: l.Gain - w.gain[i]},
				cmp.Or(w.spec.Slow, health.SlowGuarded))
			w.gain[i] = l.Gain
		}
	}
}

// contend leaves out a link that adds nothing, and takes back a link that is missed.
func (w *world) contend(s transfer.State) {
	w.traffic = w.traffic[:0]
	for _, l := range s.Links {
		w.traffic = append(w.traffic, health.Traffic{Got: l.Got, Usable: l.Usable, Metered: l.Metered})
	}
	v, ok := w.contention.Observe(w.at(w.now), w.traffic, s.Stood)
	switch {
	case !ok:
	case v.Out:
		w.logf("link %d adds nothing", v.Link)
		w.res.LeftOut++
		w.board.LeaveOut(w.at(w.now), v.Link)
	default:
		w.logf("link %d is missed", v.Link)
		w.res.TakenBack++
		w.board.TakeBack(w.at(w.now), v.Link)
	}
}

func (w *world) carryOut(a transfer.Action) {
	switch a.Kind {
	case transfer.Open, transfer.OpenApart:
		w.packet(a.Link, handshakeBytes, 0)
		w.logf("open %d on %d", a.Conn, a.Link)
		w.open(a.Conn, a.Link, a.Kind == transfer.OpenApart)
	case transfer.Fetch, transfer.FetchAll, transfer.FetchAhead:
		want := segment.Range{Start: a.Range.Start + a.Prefix, End: a.Range.End}
		w.logf("fetch %d %v on conn %d link %d: %v, compares %d", a.Attempt, want, a.Conn, a.Link, a.Rule, a.Prefix)
		w.res.Requests++
		w.packet(a.Link, requestBytes, 0)
		w.audit.asked(a, want)
		w.beginCheck(a)
		w.ask(a)
	case transfer.Compare:
		w.logf("compare %v of link %d", a.Range, a.Link)
		w.compareTwice(a)
	case transfer.Credit:
		if k := w.asks[a.Attempt]; k != nil {
			k.credit = a.UpTo
			if a.UpTo-k.cursor > 2*drainMost { // it is read in earnest
				k.conn.unreadMost = receiveBuf
			}
			w.readOn(k)
		}
	case transfer.Cut:
		w.logf("cut %d at %d", a.Attempt, a.UpTo)
		if k := w.asks[a.Attempt]; k != nil {
			w.cut(k, a.UpTo)
		}
	case transfer.CloseConn, transfer.Keep:
		w.logf("close %d", a.Conn)
		if c := w.conns[a.Conn]; c != nil && a.Kind == transfer.Keep {
			w.res.kept[c.link] = kept{c.wnd, w.now}
		}
		w.close(a.Conn)
	case transfer.Want:
		w.audit.copies()
		for _, k := range w.ahead {
			w.after(0, func() { w.readOn(k) })
		}
		w.after(0, func() { w.handle(transfer.Event{Kind: transfer.Granted, N: w.spec.Window}) })
	case transfer.Need:
		w.after(0, func() { w.handle(transfer.Event{Kind: transfer.Granted, N: min(a.N, w.spec.Window)}) })
	case transfer.ReportSilent:
		w.logf("silent %d", a.Link)
		w.audit.silent[a.Link] = true
		w.board.Silent(w.at(w.now), a.Link)
	case transfer.ReportAlive:
		w.logf("alive %d", a.Link)
		w.audit.silent[a.Link] = false
		w.board.Alive(w.at(w.now), a.Link)
	case transfer.ReportFailed:
		w.board.Failed(w.at(w.now), a.Link, a.Cause)
	case transfer.ReportDiffers:
		w.logf("link %d differs", a.Link)
	case transfer.Forget:
		w.audit.forget(a.Range)
	case transfer.Done:
		w.logf("done")
		w.over = true
		if w.offset != w.spec.Size {
			w.err = fmt.Errorf("done at %d of %d bytes", w.offset, w.spec.Size)
		}
	case transfer.Fail:
		w.err = &FailedError{At: w.now, Outcome: a.Outcome, Link: a.Link, Offset: w.offset}
	}
}

// Approximate bytes sent for requests, handshakes and acknowledgments.
const (
	requestBytes   = 400
	handshakeBytes = 120
	ackEvery       = 44 // bytes received per byte of acknowledgments: 66 for two packets
)

// packet accounts for bytes that a link's radio sends (up) and receives (down).
func (w *world) packet(link int8, up, down int64) {
	if w.spec.Links[link].Radio != nil {
		w.radios[link].Add(w.at(w.now), up, down)
	}
}

// Intervals at which the engine probes a link that has recently failed, at first and later.
const (
	probeSoon  = 50 * time.Millisecond
	probeEvery = 250 * time.Millisecond
)

// changes reports the board's changes to the machine and probes the links that are due.
func (w *world) changes() {
	for _, c := range append([]health.Change(nil), w.board.Changes()...) {
		w.logf("link %d %v %v", c.Link, c.State, c.Cause)
		w.handle(transfer.Event{Kind: transfer.LinkState, Link: c.Link, State: c.State, Cause: c.Cause})
	}
	probes, next := w.board.Tick(w.at(w.now), func(int8) (least, most time.Duration) { return probeSoon, probeEvery })
	for _, p := range probes {
		w.probe(p)
	}
	if !next.IsZero() {
		at := max(next.Sub(epoch), w.now+time.Microsecond)
		if w.boardAt != at {
			w.boardAt = at
			w.after(at-w.now, func() {
				if w.boardAt == at {
					w.boardAt = -1
					w.changes()
				}
			})
		}
	}
	if len(probes) > 0 {
		w.changes()
	}
}

// write delivers ready bytes to the client.
func (w *world) write() {
	n := w.m.Progress().Ready
	if w.writing || n == 0 || w.over {
		return
	}
	if c := w.spec.Client; c > 0 {
		n = min(n, 64<<10)
		w.writing, w.given = true, w.offset+n
		w.after(time.Duration(float64(n)/c*float64(time.Second)), func() { w.writing = false; w.delivered(n) })
		return
	}
	w.writing, w.given = true, w.offset+n
	w.after(0, func() { w.writing = false; w.delivered(n) })
}

func (w *world) delivered(n int64) {
	if w.lastOut >= 0 {
		w.res.Pause = max(w.res.Pause, w.now-w.lastOut)
	}
	w.lastOut = w.now
	w.audit.delivered(w.offset, n)
	w.offset += n
	s := w.m.Progress()
	w.res.progress = append(w.res.progress, progress{w.now - w.spec.began, w.offset, s.Received - s.Waste})
	w.handle(transfer.Event{Kind: transfer.Delivered, N: n})
}

// The invariants are checked after each of the first checkAll events, and then after one in checkSome: they take a
// quarter of the time.
const checkAll, checkSome = 512, 16

// check checks the invariants of the run.
func (w *world) check() {
	if w.err != nil || w.over {
		return
	}
	s := w.m.Progress()
	w.res.MaxHeld = max(w.res.MaxHeld, s.Held)
	if w.checked++; w.checked > checkAll && w.checked%checkSome != 0 {
		return
	}
	switch {
	case !w.m.Check():
		w.err = fmt.Errorf("at %v: ranges do not partition the object, or credit beyond the window", w.now)
	case s.Held > max(w.spec.Window, max(w.spec.First, 512<<10)):
		w.err = fmt.Errorf("at %v: %d bytes held, window %d", w.now, s.Held, w.spec.Window)
	case s.Offset != w.offset:
		w.err = fmt.Errorf("at %v: offset %d, delivered %d", w.now, s.Offset, w.offset)
	default:
		w.audit.event()
	}
}
