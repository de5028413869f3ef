package page

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/net/engine"
)

const (
	maxEnded   = 50 // downloads that are remembered
	maxReasons = 64
)

// Times and limits of the search for problems of the proxy.
const (
	looksFresh = 10 * time.Minute // how long a search is not repeated
	lookTime   = 15 * time.Second
	maxFound   = 32
)

// Finding is a problem of the proxy or of a link.
type Finding struct {
	Name  string `json:"name"`
	Fails bool   `json:"fails"` // it does not work until this is fixed
	Found string `json:"found"`
	Fix   string `json:"fix,omitempty"` // command or setting
}

// Page is the live page. Run must be running while the page is served.
type Page struct {
	wake   chan struct{} // capacity 1: something has started to run
	join   chan viewer
	leave  chan viewer
	closed chan struct{}

	look func(context.Context) []Finding

	mu     sync.Mutex
	ended  []Ended // the latest first
	passed map[string]int64
}

// Ended is a finished download with its name.
type Ended struct {
	Host string `json:"host"`
	Name string `json:"name"`
	control.Finished
}

// viewer receives updates, encoded as JSON. It has a capacity of 1: while a slow browser has not taken an update, later
// ones are dropped.
type viewer chan []byte

// update is sent to viewers.
type update struct {
	History []sample         `json:"history,omitempty"` // in the first update
	Sample  *sample          `json:"sample,omitempty"`  // in later updates
	Status  control.Status   `json:"status"`
	Names   map[uint64]name  `json:"names"` // names of the downloads in Status, by ID
	Ended   []Ended          `json:"ended"`
	Passed  map[string]int64 `json:"passed"` // GETs that were not divided, by reason in words
	// Found are the findings of the last search; null = there was none yet.
	Found []Finding `json:"found"`
}

// name contains the parts of a download that only the page shows.
type name struct {
	Host string `json:"host"`
	Name string `json:"name"`
}

// New returns the page of a proxy. look finds problems and may be slow; nil = none. It is called only while there are
// viewers, at most once in ten minutes, and may take up to 15 s.
func New(look func(context.Context) []Finding) *Page {
	return &Page{
		look:   look,
		wake:   make(chan struct{}, 1),
		join:   make(chan viewer),
		leave:  make(chan viewer),
		closed: make(chan struct{}),
		passed: map[string]int64{},
	}
}

// Wake reports that something has started to run. It never blocks.
func (p *Page) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Observe implements engine.Observer.
func (p *Page) Observe(e engine.Event) {
	switch e.Kind {
	case engine.EventTransferStarted:
		p.Wake()
	case engine.EventTransferEnded:
		if e.Ended == nil {
			return // its first answer never arrived
		}
		d := Ended{Host: e.Ended.Host, Name: e.Ended.Name, Finished: control.Finished{
			Result:  e.Reason,
			At:      e.At,
			Seconds: e.Took.Seconds(),
			Bytes:   e.Ended.Offset,
			Links:   e.Ended.Links,
		}}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended = slices.Insert(p.ended, 0, d)
		p.ended = p.ended[:min(len(p.ended), maxEnded)]
	case engine.EventPassedThrough:
		p.mu.Lock()
		defer p.mu.Unlock()
		if _, known := p.passed[e.Reason]; known || len(p.passed) < maxReasons {
			p.passed[e.Reason]++
		}
	}
}

// Latest returns up to n downloads that ended last, without their names.
func (p *Page) Latest(n int) []control.Finished {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]control.Finished, min(n, len(p.ended)))
	for i := range all {
		all[i] = p.ended[i].Finished
	}
	return all
}

// Run serves viewers until ctx ends; then it ends their streams. status returns the state of the proxy.
func (p *Page) Run(ctx context.Context, status func() control.Status) {
	defer close(p.closed)
	var h history
	var found []Finding
	var looked time.Time // start of the last search
	looks := make(chan []Finding, 1)
	var looking sync.WaitGroup
	defer looking.Wait()
	viewers := map[viewer]bool{}
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	ticks := ticker.C
	h.add(time.Now(), status().Links)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case found = <-looks:
			continue
		case v := <-p.join:
			viewers[v] = true
			now := time.Now()
			u := p.update(status(), found)
			u.History = h.since(now)
			v <- encode(u)
		case v := <-p.leave:
			delete(viewers, v)
			continue
		case now := <-ticks:
			s := status()
			one := h.add(now, s.Links)
			if len(viewers) > 0 {
				if p.look != nil && now.Sub(looked) >= looksFresh {
					looked = now
					looking.Go(func() { looks <- p.findings(ctx) })
				}
				u := p.update(s, found)
				u.Sample = &one
				b := encode(u)
				for v := range viewers {
					select {
					case v <- b:
					default:
					}
				}
			} else if len(s.Transfers)+s.Undivided == 0 && idle(one) {
				ticker.Stop()
				ticks = nil
			}
			continue
		}
		if ticks == nil {
			ticker.Reset(step)
			ticks = ticker.C
			h.add(time.Now(), status().Links)
		}
	}
}

// idle reports whether no link carried anything.
func idle(s sample) bool {
	for _, r := range s.Rates {
		if r > 0 {
			return false
		}
	}
	return true
}

// findings looks for problems.
func (p *Page) findings(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	found := append([]Finding{}, p.look(ctx)...)
	return found[:min(len(found), maxFound)]
}

func (p *Page) update(s control.Status, found []Finding) update {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := update{
		Status: s,
		Names:  map[uint64]name{},
		Ended:  append([]Ended{}, p.ended...),
		Passed: map[string]int64{},
		Found:  found,
	}
	for _, t := range s.Transfers {
		u.Names[t.ID] = name{t.Host, t.Name}
	}
	for reason, n := range p.passed {
		u.Passed[opening.Reason(reason).Text()] += n
	}
	return u
}

func encode(u update) []byte {
	b, err := json.Marshal(u)
	if err != nil { // impossible for this type
		panic(err)
	}
	return b
}
