package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/net/link"
)

// Config configures an Engine. Opener, Log and Scheduler are required.
type Config struct {
	Opener    Opener
	Log       *slog.Logger
	Observers []Observer

	Scheduler   func() schedule.Scheduler // makes that of one transfer; required
	MostConns   int                       // connections of a transfer over one link; 0 = 1
	Budget      int64                     // bytes for reordering, all transfers
	Window      int64                     // maximum bytes for reordering, one transfer
	Threshold   int64                     // objects of at most this many bytes are fetched with one request on one link
	WaitForLink time.Duration
	SlowLinks   health.SlowCheck

	// Heard, if not nil, reports whether anything arrived over a link within the last d, on any connection.
	Heard func(link string, d time.Duration) bool

	// Received, if not nil, returns the counters of what a link's interface received, false if they are unknown:
	// background transfers give way to other traffic. It must not block.
	Received func(link.Link) (link.Counters, bool)

	// Behind, if not nil, returns the IPv4 address that an address of a link's NAT64 stands for, and other addresses
	// unchanged. It must not block.
	Behind func(link.Link, netip.Addr) netip.Addr

	// Goodput, if not nil, is called with the total goodput of all transfers over a link that they keep busy, in bytes
	// per second. It must not block.
	Goodput func(link string, perSecond float64)

	// Lied, if not nil, reports whether a link recently showed a false certificate for the host at addr. It must not
	// block.
	Lied func(link, addr string) bool

	// Running, if not nil, is called with the number of running transfers whenever it changes, and with the number of
	// those that further links, including metered ones, could help. It must not block.
	Running func(transfers, further int)

	// LinkDown, if not nil, is called with the name of a link that went down or was banned for everybody: connections
	// over it are dead.
	LinkDown func(name string)
}

// Engine serves GETs over all links.
type Engine struct {
	cfg    Config
	fleet  *fleet
	cross  *crossTraffic
	budget *Budget
	blocks *blocks
	lastID atomic.Uint64

	mu       sync.Mutex
	history  *estimate.History
	record   *estimate.Record
	findings []Finding // not yet taken

	runsMu  sync.Mutex // held while Config.Running is called, so that the numbers stay in order
	running int
	further int // of these, those that may use metered links
}

// New returns an engine without links. Run must be running so that banned links can return.
func New(cfg Config) *Engine {
	if cfg.Opener == nil || cfg.Log == nil || cfg.Scheduler == nil {
		panic("engine: Config without Opener, Log or Scheduler")
	}
	e := &Engine{
		cfg:     cfg,
		budget:  NewBudget(cfg.Budget-min(ofProcess, cfg.Budget/8), cfg.Window),
		blocks:  &blocks{},
		history: estimate.NewHistory(),
		record:  estimate.NewRecord(estimate.Salt{}),
	}
	e.fleet = &fleet{
		began:  time.Now().Add(-time.Hour),
		slow:   cfg.SlowLinks,
		onDown: cfg.LinkDown,
		tell:   e.observe,
		heard:  cfg.Heard,
		behind: cfg.Behind,
		warm:   cfg.Opener.Warm,
		stream: map[*streamBody]bool{},
		wake:   make(chan struct{}, 1),
	}
	e.cross = &crossTraffic{
		conns: map[*connLoop]bool{}, wake: make(chan struct{}, 1),
		received: func(i int8) (link.Counters, bool) {
			if cfg.Received == nil {
				return link.Counters{}, false
			}
			return cfg.Received(e.fleet.at(i))
		},
	}
	return e
}

// Run manages the links until ctx ends. Afterwards the memory for reordering is freed as soon as no transfer uses it.
func (e *Engine) Run(ctx context.Context) {
	var beside sync.WaitGroup
	beside.Go(func() { e.cross.serve(ctx) })
	e.fleet.serve(ctx)
	beside.Wait()
	e.blocks.close()
}

// SetLinks sets the links that exist now, also for running transfers.
func (e *Engine) SetLinks(links []link.Link) { e.fleet.setLinks(links) }

// Connected records that a connection to addr ("host:port") was made over a link, and the address that it uses. If an
// origin later finds the link dead, other servers that were reached over it are tested.
func (e *Engine) Connected(l link.Link, addr string, to netip.Addr) { e.fleet.reach(l, addr, to) }

// Ranked returns the links that pass-through requests may use, best first.
func (e *Engine) Ranked() []link.Link { return e.fleet.ranked() }

// RTT returns the latest round-trip time that transfers measured over a link, 0 if there is none.
func (e *Engine) RTT(link string) time.Duration { return e.fleet.rtt(link) }

// Others sets the number of running connections outside of transfers, such as tunnels: banned links are probed for
// them.
func (e *Engine) Others(n int) {
	e.fleet.mu.Lock()
	e.fleet.others = n
	e.fleet.mu.Unlock()
	e.fleet.nudge()
}

// Overdue sets the connections outside of transfers that are overdue on the named link. It is called when these change,
// and from time to time while there are any. If nothing else arrived over the link recently and nobody responds over
// it, the link is banned for everybody.
func (e *Engine) Overdue(link string, of []Overdue) { e.fleet.overdue(link, of) }

// Passed reports to observers why a GET is not divided by the engine.
func (e *Engine) Passed(reason string) {
	e.observe(Event{Kind: EventPassedThrough, At: time.Now(), Reason: reason})
}

// Status describes the engine for observers.
func (e *Engine) Status() Status {
	s := Status{
		Links: e.fleet.status(), Transfers: []TransferStatus{},
		Budget: Memory{Total: e.cfg.Budget, Granted: e.budget.Granted(), Held: e.blocks.held()},
	}
	e.fleet.mu.Lock()
	defer e.fleet.mu.Unlock()
	for _, r := range e.fleet.runs {
		if t := r.shown.status.Load(); t != nil {
			x := *t
			x.LeftOut = append(e.fleet.leftOut(r.site), x.LeftOut...)
			x.Seconds = time.Since(x.Started).Seconds()
			s.Transfers = append(s.Transfers, x)
		}
	}
	slices.SortFunc(s.Transfers, func(a, b TransferStatus) int { return cmp.Compare(a.ID, b.ID) })
	return s
}

// Get serves one GET. The client gets the same response as over one link without the proxy; the body arrives over
// several links if that is safe. ctx ends the transfer. Errors are *AttemptError or ErrNoLink.
func (e *Engine) Get(ctx context.Context, req *Request) (*Response, error) {
	o := opening.New(req.Target.Scheme, req.Target.Path, req.Header, e.cfg.Threshold)
	for {
		r, err := newRun(ctx, e, req, o)
		if err != nil {
			return nil, err
		}
		go r.loop()
		select {
		case s := <-r.started:
			if s.resp != nil {
				return s.resp, nil
			}
			<-r.done // until then the loop owns the opening
			switch {
			case ctx.Err() != nil:
				return nil, ctx.Err()
			case !o.Again():
				return nil, s.err
			}
		case <-ctx.Done():
			<-r.done
			for next := range r.out { // nobody takes it anymore
				freeAll(next.pieces)
			}
			return nil, ctx.Err()
		}
	}
}

// failure returns the error of a transfer that gave up with an outcome. last is the error of the last attempt with that
// outcome, nil if there is none.
func failure(last error, outcome fault.Outcome, link string) error {
	if a, ok := errors.AsType[*AttemptError](last); ok && a.Outcome == outcome {
		return last
	}
	if last == nil {
		last = errors.New(outcome.String())
	}
	return &AttemptError{Op: "transfer", Link: link, Outcome: outcome, Err: last}
}

// allRefused adds the final outcome to an error of an attempt, or to nil.
func allRefused(err error) error {
	if err == nil {
		return errAllRefused
	}
	return fmt.Errorf("%w: %w", errAllRefused, err)
}

// runs adds to the numbers of running transfers and of those that further links could help, and reports both to
// Config.Running.
func (e *Engine) runs(transfers, further int) {
	if e.cfg.Running == nil {
		return
	}
	e.runsMu.Lock()
	defer e.runsMu.Unlock()
	e.running += transfers
	e.further += further
	e.cfg.Running(e.running, e.further)
}

func (e *Engine) observe(ev Event) {
	for _, o := range e.cfg.Observers {
		o.Observe(ev)
	}
}

// Hint records the probable size of an object in bytes, for later GETs.
func (e *Engine) Hint(t Target, size int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.history.SetSize(time.Now(), originOf(t), estimate.PathOf(t.Path), size)
}

func originOf(t Target) estimate.Origin { return estimate.Origin(t.Scheme + "://" + t.Addr) }
