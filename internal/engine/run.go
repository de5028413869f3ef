package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/estimate"
	"github.com/tributary-http/tributary/internal/health"
	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/policy"
	"github.com/tributary-http/tributary/internal/schedule/literature"
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
	site   *site // what the fleet knows of the origin
	plan   plan
	parent context.Context // the client's
	ctx    context.Context
	cancel context.CancelFunc

	started chan start    // capacity 1: what came of the first request
	events  chan event    // from lanes and writer
	wrote   chan wrote    // from the writer of a scattered transfer
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
	brought  []int64 // bytes by link
	interim  gate
	lanes    map[uint32]*lane
	fetches  map[uint32]*fetch
	store    store
	scatter  *scatter        // nil = bytes are written in order
	repeat   bool            // a range of our own was not answered as it should be
	whole    bool            // ranges of the object are known not to be had
	ignored  bool            // a range was answered with the whole object
	ranges   bool            // a range was answered as such
	disjoint bool            // it failed in the middle because the answers do not fit together
	refused  []string        // links over which an answer was refused after another link's was good
	barred   map[string]bool // links that stay out
	exposes  bool            // the request shows credentials to whoever runs a link
	version  *Identity       // nil until a head has told
	first    int8            // the link whose answer told it
	head     *Response       // not yet told
	headed   time.Time       // when it came
	given    int64           // offset up to which bytes were handed to the writer
	writing  bool
	began    time.Time
	reported time.Time
	news     bool                   // something happened since the last report
	lastErrs map[transfer.Why]error // of attempts
	over     bool
	changed  bool // it ends because no link serves the version any more
	failed   error
	kept     []*lane
}

// start is what came of the first request.
type start struct {
	resp  *Response
	again bool // ask again without a range of our own
	err   error

	changed bool // with err: no link serves the version any more
}

// headHold bounds how long the head of an answer waits for the first byte of its body. Until then another version is no
// harm: the request can be made again.
const headHold = 200 * time.Millisecond

// newRun begins a GET. repeat says that it was made before with a range of our own, which the answer may have been for.
func newRun(ctx context.Context, e *Engine, req *Request, ranged, repeat bool) (*run, error) {
	r := &run{
		e: e, id: e.lastID.Add(1), req: req, target: req.Target, origin: estimate.Origin(req.Target.Scheme + "://" + req.Target.Addr),
		started: make(chan start, 1), events: make(chan event, 64), wrote: make(chan wrote, 1), out: make(chan []piece, 1),
		left: make(chan struct{}), done: make(chan struct{}), posted: make(chan struct{}, 1),
		lanes: map[uint32]*lane{}, fetches: map[uint32]*fetch{}, lastErrs: map[transfer.Why]error{}, began: time.Now(),
	}
	r.exposes = policy.Exposes(req.Target.Scheme, req.Header)
	r.repeat, r.whole = repeat, e.servedWhole(r.origin, req.Target.Path)
	r.plan = newPlan(req, ranged && !r.whole, e.cfg.Threshold)
	r.plan.warm = r.plan.warm && !r.whole
	r.given = r.plan.window.Start
	sched, err := literature.New(e.cfg.Scheduler)
	if err != nil {
		return nil, err
	}
	states := e.fleet.join(r)
	links := e.fleet.links()
	cfg := transfer.Config{
		Window: r.plan.window, First: r.plan.first, Scheduler: sched, Warm: e.warm(r.origin) && r.plan.warm,
		Patience: e.cfg.Patience, Reorder: max(minGrant, r.plan.first),
	}
	r.bar(links, states)
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
	if r.exposes {
		cfg.Order = entrusted(cfg.Order, links, states)
	}
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
	return (r.req.Links == nil || slices.Contains(r.req.Links, name)) && !r.barred[name]
}

// bar keeps links out over which the origin lately refused its objects, unless no other one is up (R118).
func (r *run) bar(links []link.Link, states []transfer.Event) {
	barred := r.e.refusedBy(r.origin, links)
	for i, l := range links {
		if states[i].State == health.Up && !barred[l.Name] && r.allowed(l.Name) {
			r.barred = barred
			return
		}
	}
}

// entrusted returns the links, best first, that may see what the request shows: the trusted ones, and the best other one
// unless one of those is up (R205).
func entrusted(order []int8, links []link.Link, states []transfer.Event) (out []int8) {
	resort, up := int8(-1), false
	for _, i := range order {
		switch {
		case !links[i].Untrusted:
			out = append(out, i)
			up = up || states[i].State == health.Up
		case resort < 0 && states[i].State != health.Down:
			resort = i
		}
	}
	if !up && resort >= 0 {
		out = append(out, resort)
	}
	return out
}

// slot returns the link with a number; its name never changes.
func (r *run) slot(i int8) *slot {
	for int(i) >= len(r.slots) {
		r.slots = append(r.slots, r.e.fleet.slot(int8(len(r.slots))))
	}
	return r.slots[i]
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
		events, tick := r.events, timer.C
		if r.scatter != nil && r.scatter.full(r) { // the disk is behind: lanes wait, which is not their links' silence
			events, tick = nil, nil
		}
		select {
		case e := <-events:
			next = r.take(e)
		case w := <-r.wrote:
			next = r.scattered(w)
		case <-r.posted:
			r.mailMu.Lock()
			mail := r.mail
			r.mail = nil
			r.mailMu.Unlock()
			for _, e := range mail {
				next = r.takeMail(e)
			}
		case <-tick:
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
		if r.head != nil {
			if time.Since(r.headed) >= headHold {
				r.begin()
			} else {
				wait = min(wait, time.Until(r.headed.Add(headHold)))
			}
		}
		wait = max(wait, 200*time.Microsecond)
		timer.Reset(wait)
	}
}

// begin tells the head of the answer.
func (r *run) begin() {
	if r.head != nil {
		r.started <- start{resp: r.head}
		r.head = nil
	}
}

// takeMail takes what fleet and budget posted.
func (r *run) takeMail(e transfer.Event) time.Time {
	switch e.Kind {
	case transfer.LinkState:
		for int(e.Link) >= r.links { // a link that appeared after the transfer began
			l := r.e.fleet.at(int8(r.links))
			r.m.AddLink(transfer.LinkConfig{Metered: l.Metered, Book: r.e.lookUp(l.Name, r.origin)}, r.allowed(l.Name) && !(r.exposes && l.Untrusted))
			r.links++
		}
	case transfer.Granted:
		r.shrink = true
	}
	return r.handle(e)
}

// begins reports whether the first request waits for the connection.
func (r *run) begins(conn uint32) bool {
	for _, f := range r.fetches {
		if f.conn == conn {
			return r.version == nil
		}
	}
	return false
}

// take takes one event of a lane or the writer.
func (r *run) take(e event) time.Time {
	if a, ok := errors.AsType[*AttemptError](e.err); ok {
		r.lastErrs[a.Why] = e.err
	}
	switch {
	case e.reply != nil:
		return r.firstReply(e)
	case e.Kind == transfer.Headed: // checked against the range that was asked for
		r.ranges = true
	case e.Kind == transfer.Read:
		r.receive(e)
	case e.Kind == transfer.Ended:
		r.attemptEnded(e)
	case e.Kind == transfer.OpenFailed && errors.Is(e.err, link.ErrDenied) && r.begins(e.Conn):
		r.finish(e.err) // on no link: another one might resolve the name to an address that its DNS did not mean to hide
		return time.Time{}
	case e.Kind == transfer.Delivered && e.Close: // the batch is through
		r.writing = false
	}
	return r.handle(e.Event)
}
