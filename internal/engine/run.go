package engine

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/estimate"
	"github.com/tributary-http/tributary/internal/health"
	"github.com/tributary-http/tributary/internal/schedule"
	"github.com/tributary-http/tributary/internal/transfer"
)

const (
	batchBytes  = 256 << 10 // handed to the writer at a time
	reportEvery = 250 * time.Millisecond
)

var errAllRefused = errors.New("no link is left that serves this version of the object")

// run is one GET: from its first request to the end of its transfer, or until its answer is handed on as it comes.
type run struct {
	e      *Engine
	id     uint64
	req    *Request
	target Target
	origin estimate.Origin
	plan   plan
	parent context.Context // the client's
	ctx    context.Context
	cancel context.CancelFunc

	started chan start    // capacity 1: what came of the first request
	events  chan event    // from lanes and writer
	out     chan []piece  // capacity 1: to the writer, in order; closed by the loop
	left    chan struct{} // closed when the loop takes no more events
	done    chan struct{} // closed when everything has ended

	mailMu sync.Mutex
	mail   []transfer.Event
	posted chan struct{}

	status atomic.Pointer[TransferStatus]

	// Owned by the loop.
	m        *transfer.Machine
	share    *Share
	shrink   bool // the share may have to give something back
	links    int
	slots    []*slot
	interim  gate
	lanes    map[uint32]*lane
	fetches  map[uint32]*fetch
	store    store
	version  *Identity // nil until a head has told
	given    int64     // offset up to which bytes were handed to the writer
	writing  bool
	began    time.Time
	reported time.Time
	news     bool // something happened since the last report
	lastErr  error
	over     bool
	failed   error
	kept     []*lane
}

// start is what came of the first request.
type start struct {
	resp  *Response
	again bool // ask again without a range of our own
	err   error
}

func newRun(ctx context.Context, e *Engine, req *Request, ranged bool) (*run, error) {
	r := &run{
		e: e, id: e.lastID.Add(1), req: req, target: req.Target, origin: estimate.Origin(req.Target.Scheme + "://" + req.Target.Addr),
		started: make(chan start, 1), events: make(chan event, 64), out: make(chan []piece, 1),
		left: make(chan struct{}), done: make(chan struct{}), posted: make(chan struct{}, 1),
		lanes: map[uint32]*lane{}, fetches: map[uint32]*fetch{}, began: time.Now(),
	}
	r.plan = newPlan(req, ranged, e.cfg.Threshold)
	r.given = r.plan.window.Start
	sched, err := schedule.New(e.cfg.Scheduler)
	if err != nil {
		return nil, err
	}
	states := e.fleet.join(r)
	links, _ := e.fleet.snapshot()
	cfg := transfer.Config{
		Window: r.plan.window, First: r.plan.first, Scheduler: sched, Warm: e.warm(r.origin) && r.plan.warm, Restart: e.cfg.Restart,
		Patience: e.cfg.Patience, Reorder: max(minGrant, r.plan.first),
	}
	usable := false
	for i := range states {
		l := links[i]
		cfg.Links = append(cfg.Links, transfer.LinkConfig{
			State: states[i].State, Metered: l.Metered, Book: e.lookUp(l.Name, r.origin),
		})
		if r.allowed(l.Name) {
			cfg.Order = append(cfg.Order, int8(i))
			usable = usable || states[i].State != health.Down
		}
	}
	if !usable {
		e.fleet.leave(r)
		return nil, ErrNoLink
	}
	slices.SortStableFunc(cfg.Order, func(a, b int8) int {
		if req.Links != nil {
			return slices.Index(req.Links, links[a].Name) - slices.Index(req.Links, links[b].Name)
		}
		return links[a].Metric - links[b].Metric
	})
	r.links = len(states)
	r.m = transfer.New(cfg)
	r.parent = ctx
	r.ctx, r.cancel = context.WithCancel(ctx)
	// Joined before the states were read: what changes in between is posted and comes after them.
	r.mailMu.Lock()
	r.mail = append(states, r.mail...)
	r.mailMu.Unlock()
	select {
	case r.posted <- struct{}{}:
	default:
	}
	return r, nil
}

func (r *run) allowed(name string) bool {
	return r.req.Links == nil || slices.Contains(r.req.Links, name)
}

// slot returns the link with a number; its name never changes.
func (r *run) slot(i int8) *slot {
	for int(i) >= len(r.slots) {
		r.slots = append(r.slots, r.e.fleet.slot(int8(len(r.slots))))
	}
	return r.slots[i]
}

// gate lets interim answers through until the final one is known.
type gate struct {
	mu     sync.Mutex
	closed bool
}

func (g *gate) pass(to func(int, http.Header)) func(int, http.Header) {
	return func(status int, h http.Header) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !g.closed {
			to(status, h)
		}
	}
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// post puts an event into the mailbox; it never blocks.
func (r *run) post(e transfer.Event) {
	r.mailMu.Lock()
	r.mail = append(r.mail, e)
	r.mailMu.Unlock()
	select {
	case r.posted <- struct{}{}:
	default:
	}
}

// tell gives an event to the loop, or drops it when the loop has ended.
func (r *run) tell(e event) {
	select {
	case r.events <- e:
	case <-r.left:
		if e.piece.b != nil {
			e.piece.b.free()
		}
	}
}

// loop owns the transfer.
func (r *run) loop() {
	defer r.clear()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !r.over {
		var next time.Time
		select {
		case e := <-r.events:
			next = r.take(e)
		case <-r.posted:
			r.mailMu.Lock()
			mail := r.mail
			r.mail = nil
			r.mailMu.Unlock()
			for _, e := range mail {
				next = r.takeMail(e)
			}
		case <-timer.C:
			next = r.handle(transfer.Event{Kind: transfer.Tick})
		case <-r.ctx.Done():
			r.hungUp()
		}
		wait := time.Hour
		if !next.IsZero() {
			wait = time.Until(next)
		}
		if r.news { // observers see how a transfer is that has come to a standstill
			wait = min(wait, time.Until(r.reported.Add(reportEvery)))
		}
		wait = max(wait, 200*time.Microsecond)
		timer.Reset(wait)
	}
}

// hungUp ends a transfer whose client is gone. A client that has every byte closes at once, maybe before the loop hears
// that they were delivered: that is success.
func (r *run) hungUp() {
	for len(r.events) > 0 && !r.over {
		r.take(<-r.events)
	}
	if r.version != nil && r.given == r.m.Size() {
		r.finish(nil)
		return
	}
	r.finish(r.ctx.Err())
}

// takeMail takes what fleet and budget posted.
func (r *run) takeMail(e transfer.Event) time.Time {
	switch e.Kind {
	case transfer.LinkState:
		for int(e.Link) >= r.links { // a link that appeared after the transfer began
			l := r.e.fleet.at(int8(r.links))
			r.m.AddLink(transfer.LinkConfig{Metered: l.Metered, Book: r.e.lookUp(l.Name, r.origin)}, r.allowed(l.Name))
			r.links++
		}
	case transfer.Granted:
		r.shrink = true
	}
	return r.handle(e)
}

// take takes one event of a lane or the writer.
func (r *run) take(e event) time.Time {
	if e.err != nil {
		r.lastErr = e.err
	}
	switch {
	case e.reply != nil:
		return r.firstReply(e)
	case e.Kind == transfer.Read:
		r.receive(e)
	case e.Kind == transfer.Ended:
		r.attemptEnded(e)
	case e.Kind == transfer.Delivered && e.Close: // the batch is through
		r.writing = false
	}
	return r.handle(e.Event)
}

// receive stores the bytes of a read as far as they are wanted, and counts them.
func (r *run) receive(e event) {
	p := e.piece
	if wanted := r.m.Wanted(e.Attempt); p.end() > wanted {
		p.hi -= int(min(p.end()-wanted, int64(p.hi-p.lo)))
	}
	r.store.add(p, r.given)
}

func (r *run) attemptEnded(e event) {
	if f := e.fetch; f != nil {
		name := r.slot(f.link).name
		r.e.observe(Event{Kind: EventAttemptEnded, At: time.Now(), Transfer: r.id, Link: name, Reason: e.Why.String(),
			Took: time.Since(f.asked)})
		if e.Why != transfer.Complete && e.Why != transfer.Canceled {
			r.e.cfg.Log.Debug("attempt failed", "transfer", r.id, "link", name, "why", e.Why.String(), "error", e.err)
		}
	}
	delete(r.fetches, e.Attempt)
}

// handle gives an event to the machine and carries out what it answers.
func (r *run) handle(e transfer.Event) time.Time {
	if r.over {
		return time.Time{}
	}
	now := time.Now()
	total, waste := r.m.Received()
	do, next := r.m.Handle(now, e)
	if e.Kind == transfer.Read {
		r.count(now, e, total, waste)
	}
	for _, a := range do {
		r.carryOut(now, a)
	}
	if r.over {
		return time.Time{}
	}
	if r.shrink {
		r.shrink = r.share.Holds(max(r.m.Committed(), r.m.Reorder()))
	}
	r.news = r.news || e.Kind != transfer.Tick
	if now.Sub(r.reported) >= reportEvery {
		r.report(now)
	}
	r.pump()
	return next
}

// count tells observers and the fleet what a read brought.
func (r *run) count(now time.Time, e transfer.Event, total, waste int64) {
	f := r.fetches[e.Attempt]
	if f == nil {
		return
	}
	total2, waste2 := r.m.Received()
	s := r.slot(f.link)
	s.lastByte.Store(now.UnixNano())
	s.bytes.Add(total2 - total)
	s.waste.Add(waste2 - waste)
	r.e.observe(Event{Kind: EventReceived, At: now, Transfer: r.id, Link: s.name, Bytes: total2 - total, Waste: waste2 - waste})
}

func (r *run) carryOut(now time.Time, a transfer.Action) {
	switch a.Kind {
	case transfer.Open:
		r.lanes[a.Conn] = newLane(r, a.Conn, a.Link)
	case transfer.Fetch, transfer.FetchAll:
		f := &fetch{id: a.Attempt, link: a.Link, ask: r.ask(a), more: make(chan struct{}, 1), verdict: make(chan verdict, 1), asked: now}
		f.credit.Store(a.UpTo)
		r.fetches[a.Attempt] = f
		if r.version != nil {
			r.e.observe(Event{Kind: EventDecision, At: now, Transfer: r.id, Link: r.slot(a.Link).name, Reason: a.Reason.String()})
		}
		r.lanes[a.Conn].asks <- f
	case transfer.Credit:
		if f := r.fetches[a.Attempt]; f != nil {
			f.extend(a.UpTo)
		}
	case transfer.CloseConn:
		r.lanes[a.Conn].close()
		r.retire(a.Conn)
	case transfer.Keep:
		r.lanes[a.Conn].release()
		r.retire(a.Conn)
	case transfer.Want:
		r.share = r.e.budget.Join(a.N, func(n int64) { r.post(transfer.Event{Kind: transfer.Granted, N: n}) })
	case transfer.ReportSilent:
		r.e.fleet.silent(a.Link)
	case transfer.ReportAlive:
		r.e.fleet.alive(a.Link)
	case transfer.ReportFailed:
		r.e.fleet.failed(a.Link, a.Cause)
	case transfer.TakenOver:
		r.e.observe(Event{Kind: EventFailover, At: now, Transfer: r.id, Link: r.slot(a.Link).name, Reason: "silent"})
	case transfer.Done:
		r.finish(nil)
	case transfer.Fail:
		err := r.lastErr
		if r.version != nil && a.Why.Blame() == transfer.Origin {
			err = errors.Join(errAllRefused, err)
		}
		r.finish(failure(err, a.Why, r.slot(a.Link).name))
	}
}

// retire forgets a lane that is ending.
func (r *run) retire(conn uint32) {
	l := r.lanes[conn]
	delete(r.lanes, conn)
	r.kept = append(r.kept, l)
}

// pump hands bytes to the writer when it has nothing to do.
func (r *run) pump() {
	if ready := r.m.Head() + r.m.Ready() - r.given; !r.writing && ready > 0 && r.version != nil {
		batch := r.store.take(nil, r.given, min(ready, batchBytes))
		if len(batch) == 0 {
			return
		}
		r.given = batch[len(batch)-1].end()
		r.writing = true
		r.out <- batch // its one place is free: the writer took the last batch
	}
}

// report tells the fleet how fast each busy link is, and observers how far the transfer is.
func (r *run) report(now time.Time) {
	r.reported, r.news = now, false
	for i := range int8(r.links) {
		rate, rtt, busy := r.m.Link(now, i)
		if busy && rate > 0 && r.version != nil {
			r.e.fleet.rate(r, i, rate)
		}
		if rtt > 0 {
			r.slot(i).rtt.Store(int64(rtt))
		}
	}
	if r.version != nil {
		size := r.m.Size()
		if size == transfer.Unknown {
			size = -1
		}
		r.status.Store(&TransferStatus{ID: r.id, Size: size, Head: r.m.Head(), Window: r.m.Reorder(), Held: r.m.Held(), Started: r.began})
	}
}

// finish ends the loop: nil = everything was delivered.
func (r *run) finish(err error) {
	if r.over {
		return
	}
	r.over, r.failed = true, err
	if r.version == nil {
		if err != nil {
			r.started <- start{err: err}
		}
		return
	}
	r.report(time.Now())
	total, waste := r.m.Received()
	r.e.observe(Event{Kind: EventTransferEnded, At: time.Now(), Transfer: r.id, Reason: r.result(err), Bytes: total, Waste: waste,
		Took: time.Since(r.began)})
	known := map[string]estimate.Entry{}
	for i := range int8(r.links) {
		if entry := r.m.Learned(time.Now(), i); entry.Rate > 0 {
			known[r.slot(i).name] = entry
		}
	}
	r.e.learn(r.origin, estimate.Visit{Large: true}, known)
	r.e.cfg.Log.Info("transfer ended", "transfer", r.id, "result", r.result(err), "bytes", total, "waste", waste,
		"took", time.Since(r.began).Round(time.Millisecond), "links", len(known))
}

// result names the outcome for metrics and logs.
func (r *run) result(err error) string {
	switch a := new(AttemptError); {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "client_gone"
	case errors.As(err, &a):
		return a.Why.Blame().String()
	}
	return "local"
}

// clear ends everything that the run owns and waits for it.
func (r *run) clear() {
	close(r.left)
	close(r.out)
	r.e.fleet.leave(r)
	for _, l := range r.kept {
		if l.keep.Load() { // it is about to give its connection back
			l.alive.Wait()
		}
	}
	r.cancel()
	for _, l := range r.lanes {
		l.close()
		l.alive.Wait()
	}
	for _, l := range r.kept {
		l.alive.Wait()
	}
	for len(r.events) > 0 {
		if e := <-r.events; e.piece.b != nil {
			e.piece.b.free()
		}
	}
	r.store.clear()
	if r.share != nil {
		r.share.Leave()
	}
	close(r.done)
}

// ask makes the request of an attempt.
func (r *run) ask(a transfer.Action) Ask {
	k := Ask{Target: r.target, Range: a.Range, Want: r.version}
	if r.version != nil {
		k.Header, k.IfRange = r.plan.joined, r.version.Validator
		return k
	}
	k.Header, k.IfRange = r.plan.header, r.plan.ifRange
	if r.req.Interim != nil && len(r.fetches) == 0 { // those of a copy are nobody's (R55)
		k.Interim = r.interim.pass(r.req.Interim)
	}
	if a.Kind == transfer.FetchAll {
		k.Range = r.plan.own
	}
	return k
}
