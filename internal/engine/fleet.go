package engine

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/health"
	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/transfer"
)

const (
	probeTimeout = 2 * time.Second
	maxLinks     = 100 // names seen since the start; int8 indices

	// hearsay is how long ago another transfer may have had a byte of a link for one transfer's silence not to count.
	hearsay = 300 * time.Millisecond

	// rateFresh is how old a transfer's report of a link's rate may be.
	rateFresh = time.Second
)

// slot is one link since the process began; its index is the link's number in package transfer.
type slot struct {
	name     string
	link     link.Link
	lastByte atomic.Int64 // when, by fleet.clock
	bytes    atomic.Int64
	waste    atomic.Int64
	rtt      atomic.Int64 // nanoseconds
	meter    meter
	rates    map[*run]rated
}

type rated struct {
	perSecond float64
	at        time.Time
}

// fleet holds the links: what they are, how they are, and who has to be told.
//
// Its lock guards the board and the list of transfers; it is held for arithmetic and for posting to mailboxes, never
// across I/O. One goroutine (serve) waits for deadlines and runs probes.
type fleet struct {
	began  time.Time
	dial   func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error)
	limits health.Limits
	onDown func(name string) // may be nil; called without the lock
	tell   func(Event)

	mu    sync.Mutex
	board health.Board
	slots []*slot
	runs  []*run
	wake  chan struct{}
}

// serve does what is due until ctx ends and waits for its probes.
func (f *fleet) serve(ctx context.Context) {
	var probes sync.WaitGroup
	defer probes.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		f.mu.Lock()
		due, next := f.board.Tick(time.Now(), len(f.runs) > 0)
		for _, i := range due {
			l := f.slots[i].link
			addr := f.runs[len(f.runs)-1].target.Addr
			probes.Go(func() {
				ok := f.probe(ctx, l, addr)
				f.change(func(now time.Time) { f.board.Probed(now, i, ok) })
			})
		}
		down := f.flush()
		f.mu.Unlock()
		f.downed(down)
		wait := time.Hour
		if !next.IsZero() {
			wait = max(time.Until(next), time.Millisecond)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		case <-timer.C:
		}
	}
}

// probe connects to an origin of a running transfer and sends nothing.
func (f *fleet) probe(ctx context.Context, l link.Link, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	c, err := f.dial(ctx, l, "tcp", addr)
	if err != nil {
		return refusedByOrigin(err) // an answer, if not a welcome one
	}
	c.Close()
	return true
}

// change lets do change the board and tells everybody what came of it.
func (f *fleet) change(do func(now time.Time)) {
	f.mu.Lock()
	do(time.Now())
	down := f.flush()
	f.mu.Unlock()
	f.downed(down)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// flush posts the board's changes to every transfer; it returns the links that went down. The lock is held.
func (f *fleet) flush() (down []string) {
	for _, c := range f.board.Changes() {
		name := f.slots[c.Link].name
		f.tell(Event{Kind: EventLinkState, At: time.Now(), Link: name, State: c.State.String(), Reason: c.Cause.String()})
		if c.State == health.Down {
			down = append(down, name)
		}
		for _, r := range f.runs {
			r.post(transfer.Event{Kind: transfer.LinkState, Link: c.Link, State: c.State})
		}
	}
	return down
}

func (f *fleet) downed(names []string) {
	for _, n := range names {
		if f.onDown != nil {
			f.onDown(n)
		}
	}
}

// setLinks takes a new snapshot of the links that may be used.
func (f *fleet) setLinks(links []link.Link) {
	f.change(func(now time.Time) {
		seen := make([]bool, len(f.slots))
		for _, l := range links {
			i := slices.IndexFunc(f.slots, func(s *slot) bool { return s.name == l.Name })
			if i < 0 {
				if len(f.slots) == maxLinks {
					continue
				}
				i = len(f.slots)
				f.slots = append(f.slots, &slot{name: l.Name, rates: map[*run]rated{}})
				seen = append(seen, true)
				for _, r := range f.runs {
					r.post(transfer.Event{Kind: transfer.LinkState, Link: int8(i), State: health.Down}) // makes room
				}
			}
			seen[i] = true
			if moved(f.slots[i].link, l) { // connections from an address that is gone are dead
				f.board.Present(now, int8(i), false)
			}
			f.slots[i].link = l
			f.board.Present(now, int8(i), true)
		}
		for i, s := range seen {
			if !s {
				f.board.Present(now, int8(i), false)
			}
		}
	})
}

// moved reports whether a link lost an address that it had, or is another interface of the same name.
func moved(before, now link.Link) bool {
	if before.Name == "" {
		return false
	}
	for _, a := range before.Addrs {
		if !slices.Contains(now.Addrs, a) {
			return true
		}
	}
	return before.Index != now.Index || before.Handle != now.Handle
}

// join adds a transfer and returns the state of every link, in the order of their numbers.
func (f *fleet) join(r *run) []transfer.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs = append(f.runs, r)
	var e []transfer.Event
	for i := range f.slots {
		s, _ := f.board.State(int8(i))
		e = append(e, transfer.Event{Kind: transfer.LinkState, Link: int8(i), State: s})
	}
	select { // a ban whose time is over is probed now that there is an origin to probe
	case f.wake <- struct{}{}:
	default:
	}
	return e
}

func (f *fleet) leave(r *run) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs = slices.DeleteFunc(f.runs, func(o *run) bool { return o == r })
	for _, s := range f.slots {
		delete(s.rates, r)
	}
}

// silent takes a transfer's report that a link is silent; another transfer's bytes prove it wrong.
func (f *fleet) silent(i int8) {
	f.change(func(now time.Time) {
		if f.clock(now)-f.slots[i].lastByte.Load() >= int64(hearsay) {
			f.board.Silent(now, i)
		}
	})
}

func (f *fleet) alive(i int8) {
	f.change(func(now time.Time) { f.board.Alive(now, i) })
}

func (f *fleet) failed(i int8, c health.Cause) {
	f.change(func(now time.Time) { f.board.Failed(now, i, c) })
}

// rate takes a transfer's goodput on a link that it keeps busy and feeds the slow-link check with the sum of all.
func (f *fleet) rate(r *run, i int8, perSecond float64) {
	f.change(func(now time.Time) {
		s := f.slots[i]
		s.rates[r] = rated{perSecond, now}
		f.board.Rate(now, i, s.goodput(now), f.limits)
	})
}

// goodput sums what the transfers reported lately.
func (s *slot) goodput(now time.Time) (sum float64) {
	for _, r := range s.rates {
		if now.Sub(r.at) <= rateFresh {
			sum += r.perSecond
		}
	}
	return sum
}

// snapshot returns the links and their states, by number.
func (f *fleet) snapshot() (links []link.Link, states []health.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, s := range f.slots {
		st, _ := f.board.State(int8(i))
		links, states = append(links, s.link), append(states, st)
	}
	return links, states
}

// slot returns the link with a number.
func (f *fleet) slot(i int8) *slot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slots[i]
}

// at returns the link with a number as it is now.
func (f *fleet) at(i int8) link.Link {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slots[i].link
}

// status describes the links for observers.
func (f *fleet) status() []LinkStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	out := make([]LinkStatus, 0, len(f.slots))
	for i, s := range f.slots {
		st, cause := f.board.State(int8(i))
		out = append(out, LinkStatus{
			Name: s.name, State: st.String(), Reason: cause.String(), Goodput: s.meter.rate(f.clock(now)),
			RTT: time.Duration(s.rtt.Load()), Bytes: s.bytes.Load(), Waste: s.waste.Load(), Bans: int64(f.board.Bans(int8(i))),
		})
	}
	return out
}

// ranked returns the links that are up, then the suspects, each by the system's own preference.
func (f *fleet) ranked() []link.Link {
	links, states := f.snapshot()
	var out []link.Link
	order := func(a, b link.Link) int { return a.Metric - b.Metric }
	for _, want := range []health.State{health.Up, health.Suspect} {
		from := len(out)
		for i, l := range links {
			if states[i] == want {
				out = append(out, l)
			}
		}
		slices.SortStableFunc(out[from:], order)
	}
	return out
}

// clock returns a time as a number that no change of the wall clock moves; 0 is long ago.
func (f *fleet) clock(t time.Time) int64 { return int64(t.Sub(f.began)) }
