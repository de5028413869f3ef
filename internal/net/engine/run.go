package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/net/link"
)

const reportEvery = 250 * time.Millisecond

var errAllRefused = errors.New("no remaining link serves this version of the object")

// run is one GET: from its first request to the end of its transfer, or until its answer is handed over as a stream.
type run struct {
	e      *Engine
	id     uint64
	req    *Request
	origin estimate.Origin
	site   *site           // the fleet's record of the origin
	used   map[int8]bool   // by link that it may use: whether it has used it. Guarded by the fleet's lock
	sole   int8            // link that serves it alone while memory is scarce, -1 = none. Guarded by the fleet's lock
	parent context.Context // the client's
	ctx    context.Context // ends when the client leaves
	cancel context.CancelFunc
	// ends with the run: connections that broke because the client left would look like links that fail
	work  context.Context
	stop  context.CancelFunc
	began time.Time

	started chan start    // capacity 1: the outcome of the first request
	events  chan event    // from connection loops and writer
	wrote   chan wrote    // from the writer of a scattered transfer
	out     chan work     // capacity 1: to the writer, in order; closed by the loop
	left    chan struct{} // closed when the loop accepts no more events
	done    chan struct{} // closed when everything has ended
	mailbox mailbox       // of fleet and budget
	shown   shown

	// Owned by the loop.
	m            *transfer.Machine
	contention   health.Contention
	traffic      []health.Traffic // for contention
	behind       time.Duration    // total time that the links waited for the disk
	opening      *opening.Opening
	share        *Share
	sampled      time.Time       // when the paths of the connections were last sampled
	shrink       bool            // the share may have to give something back
	links        []runLink       // by link
	refused      map[string]bool // links over which the origin recently refused its objects, by name
	asks         bool            // the policy is to be asked again
	further      int             // 1 if links that cost money could help it, as reported to Config.Running
	fleetLinks   []*fleetLink
	interim      gate
	conns        map[uint32]*connLoop
	kept         []*connLoop // those that are ending
	attempts     map[uint32]*attempt
	delivery     delivery
	early        []event // responses to requests made ahead, which wait for the first response
	spots        spots
	pending      *Response               // response not yet reported
	pendingSince time.Time               // when it arrived
	lastErrs     map[fault.Outcome]error // of attempts
	over         bool
	failed       error
	sound        int64 // the client's bytes from this offset on are unreliable if the transfer failed
}

// shown is the observers' view of a transfer. The loop owns all of it except the status.
type shown struct {
	status  atomic.Pointer[TransferStatus]
	at      time.Time // of the last report
	news    bool      // something has happened since
	brought []int64   // bytes by link
	gains   []float64 // by link, as last reported to the fleet
}

// start is the outcome of the first request. If it has neither a Response nor an error, the request must be made again.
type start struct {
	resp *Response
	err  error
}

// pendingMost bounds how long the head of an answer waits for the first byte of its body. Until then another version
// does no harm: the request can be made again.
const pendingMost = 200 * time.Millisecond

// waitingEvents is how many events may wait for a loop. They take 200 bytes each.
const waitingEvents = 16

// newRun starts a GET, or starts it again. o belongs to the run until its loop has ended.
func newRun(ctx context.Context, e *Engine, req *Request, o *opening.Opening) (*run, error) {
	r := &run{
		e:        e,
		id:       e.lastID.Add(1),
		req:      req,
		origin:   originOf(req.Target),
		opening:  o,
		started:  make(chan start, 1),
		events:   make(chan event, waitingEvents),
		wrote:    make(chan wrote, 1),
		out:      make(chan work, 1),
		left:     make(chan struct{}),
		done:     make(chan struct{}),
		mailbox:  mailbox{posted: make(chan struct{}, 1)},
		used:     map[int8]bool{},
		conns:    map[uint32]*connLoop{},
		attempts: map[uint32]*attempt{},
		lastErrs: map[fault.Outcome]error{},
		began:    time.Now(),
		sound:    transfer.Unknown,
		sole:     -1,
	}
	states := e.fleet.join(r)
	links := e.fleet.links()[:len(states)]
	known, refused := e.recall(r.origin, req, links)
	r.refused = refused
	for i, l := range links {
		r.links = append(r.links, newRunLink(states[i].State, l))
	}
	answer := r.ask(links)
	known.Dear = answer.Dear
	plan := o.Begin(known)
	r.delivery.given = plan.Requested.Start
	cfg := transfer.Config{
		Requested:   plan.Requested,
		Initial:     plan.Initial,
		Scheduler:   e.cfg.Scheduler(),
		Warm:        plan.Warm,
		Ahead:       plan.Ahead,
		AheadEach:   plan.AheadEach,
		Hint:        known.Size,
		Reserve:     true,
		WaitForLink: e.cfg.WaitForLink,
		Reorder:     max(minGrant, min(plan.Initial, e.cfg.Threshold)),
		Goal:        answer.Goal,
		Order:       answer.Order,
	}
	cfg.KeepWindow = req.Links.Deadline != nil && req.Links.Deadline.Bitrate > 0
	if req.Links.Background {
		cfg.Background, cfg.Ahead.End = true, cfg.Ahead.Start
	} else {
		cfg.MostConns = e.cfg.MostConns
	}
	for i, l := range links {
		r.links[i].take(answer.Verdicts[i])
		cfg.Links = append(cfg.Links, r.linkConfig(int8(i), l))
		if answer.Verdicts[i].Use == policy.Spare {
			cfg.Order = append(cfg.Order, int8(i))
		}
	}
	e.fleet.allow(r, answer.Order...)
	if !slices.ContainsFunc(answer.Order, func(i int8) bool { return states[i].State != health.Down }) {
		e.fleet.leave(r)
		return nil, ErrNoLink
	}
	r.chooseSole(&cfg)
	r.m = transfer.New(cfg)
	r.parent = ctx
	r.ctx, r.cancel = context.WithCancel(ctx)
	r.work, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	// The run joined before the states were read: changes in between are posted and follow these states.
	r.mailbox.prepend(states)
	return r, nil
}

// radio returns the radio of a link, nil if it is not known.
func (r *run) radio(i int8) *energy.Radio {
	if int(i) < len(r.links) {
		return r.links[i].verdict.Radio
	}
	return nil
}

// spared returns the links that the policy or the goal does without, and records them for the request.
func (r *run) spared(s transfer.State) (all []LeftOut) {
	for i, l := range s.Links {
		name, reason, text := r.link(int8(i)).name, l.Spared.String(), l.Spared.Text()
		if m := &r.links[i]; m.state != health.Down && !m.verdict.May() {
			reason, text = m.verdict.Reason.String(), m.verdict.Reason.Text()
		}
		r.req.Usage.Spare(name, reason)
		if reason != "" {
			all = append(all, LeftOut{name, reason, text})
		}
	}
	return all
}

// limited returns the links over which the origin limits each connection.
func (r *run) limited(s transfer.State) (all []Limited) {
	for i, l := range s.Links {
		if each := l.Learned.Each; each > 0 && l.Conns > 0 {
			all = append(all, Limited{r.link(int8(i)).name, each, l.Conns})
		}
	}
	return all
}

// link returns the link with the given number; its name never changes.
func (r *run) link(i int8) *fleetLink {
	for int(i) >= len(r.fleetLinks) {
		r.fleetLinks = append(r.fleetLinks, r.e.fleet.linkAt(int8(len(r.fleetLinks))))
	}
	return r.fleetLinks[i]
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
	var next time.Time // of the last event: a wake-up without mail changes nothing
	for !r.over {
		events, tick := r.events, timer.C
		full, since := r.delivery.full(), time.Time{}
		if full { // the disk is behind: connection loops wait, which is not their links' silence
			events, tick, since = nil, nil, time.Now()
		}
		select {
		case e := <-events:
			next = r.take(e)
		case w := <-r.wrote:
			r.paused(since)
			next = r.scattered(w)
		case <-r.mailbox.posted:
			r.paused(since)
			for _, e := range r.mailbox.take() {
				next = r.takeMail(e)
			}
		case <-tick:
			next = r.handle(transfer.Event{Kind: transfer.Tick})
		case <-r.ctx.Done():
			r.hungUp()
		}
		for r.asks && !r.over {
			next = r.permitted()
		}
		if !full {
			next = r.sample(next)
		}
		wait := time.Hour
		if !next.IsZero() {
			wait = time.Until(next)
		}
		if r.shown.news { // observers also see the state of a transfer that stands still
			wait = min(wait, time.Until(r.shown.at.Add(reportEvery)))
		}
		if r.pending != nil {
			if time.Since(r.pendingSince) >= pendingMost {
				r.begin()
			} else {
				wait = min(wait, time.Until(r.pendingSince.Add(pendingMost)))
			}
		}
		wait = max(wait, 200*time.Microsecond)
		timer.Reset(wait)
	}
}

// paused records that nothing was read since the given time; the zero time means that there was no such pause.
func (r *run) paused(since time.Time) {
	if !since.IsZero() {
		r.behind += time.Since(since)
		r.handle(transfer.Event{Kind: transfer.Paused, For: time.Since(since)})
	}
}

// begin reports the head of the answer.
func (r *run) begin() {
	if r.pending != nil {
		r.started <- start{resp: r.pending}
		r.pending = nil
	}
}

// begins reports whether the first request waits for the connection.
func (r *run) begins(conn uint32) bool {
	for _, f := range r.attempts {
		if f.conn == conn {
			return r.opening.Version() == nil
		}
	}
	return false
}

// take handles one event of a connection loop or the writer.
func (r *run) take(e event) time.Time {
	if a, ok := errors.AsType[*AttemptError](e.err); ok {
		r.lastErrs[a.Outcome] = e.err
	}
	switch {
	case e.response != nil:
		return r.firstResponse(e)
	case e.Kind == transfer.HeadReceived: // checked against the requested range
		if f := r.attempts[e.Attempt]; f != nil {
			r.opening.Served(r.link(f.link).name)
		}
	case e.Kind == transfer.Read:
		return r.read(e)
	case e.Kind == transfer.Ended:
		r.attemptEnded(e)
	case e.Kind == transfer.OpenFailed && errors.Is(e.err, link.ErrDenied) && r.begins(e.Conn):
		// do not try another link, which might resolve the name to an address that its DNS did not mean to hide
		r.finish(e.err)
		return time.Time{}
	case e.Kind == transfer.Delivered:
		r.share.Took(e.N)
		if e.Close { // the batch is written
			r.delivery.writing = false
		}
	}
	return r.handle(e.Event)
}
