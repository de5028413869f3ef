package engine

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/net/link"
)

const (
	maxLinks = 100 // names seen since the start; int8 indices

	// A link that recently failed is probed every probeSoon at first, or once a round trip if that is longer, and every
	// probeEvery later, by each of up to probers origins. A metered one is probed once in probeMetered in all.
	probeSoon    = 50 * time.Millisecond
	probeEvery   = 250 * time.Millisecond
	probeMetered = time.Second
	probers      = 4

	// rateFresh is the maximum age of a transfer's report of a link's rate.
	rateFresh = time.Second
)

// fleetLink is one link since the process began; its index is the link's number in package transfer.
type fleetLink struct {
	name     string
	link     link.Link
	lastByte atomic.Int64        // time of the last byte, by fleet.clock
	lastRun  atomic.Pointer[run] // transfer that received it, nil if none
	bytes    atomic.Int64
	waste    atomic.Int64
	rtt      atomic.Int64 // nanoseconds
	meter    meter
	radio    radioMeter
	rates    map[*run]rated
	silent   []*run    // transfers that find it silent although it recently delivered bytes to others
	reached  []reached // hosts that connections over it recently reached, newest last
	overdue  []Overdue // connections outside of transfers
	accused  bool      // an origin has banned it, or connections outside of transfers are overdue: a trial is due
	onTrial  bool      // other hosts are being asked about it
	tried    time.Time // when the last trial ended
	dialed   bool      // it is metered, and the last trial connected to other hosts over it
}

type rated struct {
	perSecond float64
	at        time.Time
}

// fleet holds the links, their state, and the transfers to notify.
//
// Its lock guards the boards, the origins and the list of transfers; it is held for arithmetic and for posting to
// mailboxes, never across I/O. One goroutine (serve) waits for deadlines and runs probes.
type fleet struct {
	began  time.Time
	slow   health.SlowCheck
	onDown func(name string) // may be nil; called without the lock
	tell   func(Event)
	heard  func(name string, within time.Duration) bool // may be nil
	behind func(l link.Link, a netip.Addr) netip.Addr   // may be nil
	warm   func(l link.Link, addr string, c net.Conn, i link.Info)

	mu     sync.Mutex
	boards health.Boards
	all    []*fleetLink
	sites  []*site
	runs   []*run
	stream map[*streamBody]bool // answers that arrive over one connection
	others int                  // running connections that no transfer uses
	wake   chan struct{}
}

// serve does all due work until ctx ends and waits for its probes.
func (f *fleet) serve(ctx context.Context) {
	var probes sync.WaitGroup
	defer probes.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		f.mu.Lock()
		next := f.tick(ctx, time.Now(), &probes)
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

// tick starts the probes and trials that are due and returns the next deadline. The lock is held.
func (f *fleet) tick(ctx context.Context, now time.Time, probes *sync.WaitGroup) (next time.Time) {
	for i := range f.all {
		next = schedule.Earlier(next, f.hearSilence(now, int8(i), false))
	}
	missed := make([]int, len(f.all)) // number of origins whose transfers miss the link
	for _, s := range f.sites {
		for i := range f.all {
			if s.board.Failing(int8(i)) {
				if may, _ := s.demand(int8(i)); may {
					missed[i]++
				}
			}
		}
	}
	for _, s := range f.sites {
		due, at := s.board.Tick(now, func(i int8) (least, most time.Duration) { return f.pace(s, i, missed[i]) })
		for _, p := range due {
			probes.Go(func() { f.probe(ctx, s, p) })
		}
		next = schedule.Earlier(next, at)
	}
	due, at := f.boards.Tick(now, f.missed)
	for _, p := range due {
		probes.Go(func() { f.probeForAll(ctx, p) })
	}
	next = schedule.Earlier(next, at)
	for i, s := range f.all {
		switch at := s.trialAt(); {
		case !s.accused || s.onTrial:
		case now.Before(at):
			next = schedule.Earlier(next, at)
		default:
			s.accused, s.onTrial = false, true
			probes.Go(func() { f.try(ctx, int8(i)) })
		}
	}
	return next
}

// pace returns the least and the longest time between two probes of a link that recently failed, by an origin's
// transfers, if it fails the transfers of n origins: together they probe seldom enough. A link that joins last is
// probed seldom unless one of them has used it, since a probe may wake a radio. The lock is held.
func (f *fleet) pace(s *site, i int8, n int) (least, most time.Duration) {
	may, has := s.demand(i)
	switch {
	case !may:
		return 0, 0
	case !f.all[i].link.Terms.Last():
		times := time.Duration((n + probers - 1) / probers)
		return times * min(max(time.Duration(f.all[i].rtt.Load()), probeSoon), probeEvery), times * probeEvery
	case has:
		most = time.Duration(n) * probeMetered
		return most, most
	}
	return health.Seldom, health.Seldom
}

// missed reports whether a running transfer, or a connection outside of transfers, may need a link that is banned for
// everybody. The lock is held.
func (f *fleet) missed(i int8) bool { return f.others > 0 || f.misses(i) != nil }

// misses returns the latest origin with a running transfer that may need a link, nil if there is none. The lock is
// held.
func (f *fleet) misses(i int8) *site {
	for _, s := range slices.Backward(f.sites) {
		if may, _ := s.demand(i); may {
			return s
		}
	}
	return nil
}

// change calls do, which may change the boards, and reports the changes to everybody.
func (f *fleet) change(do func(now time.Time)) {
	f.mu.Lock()
	do(time.Now())
	down := f.flush()
	f.mu.Unlock()
	f.downed(down)
}

// flush posts the changes of the boards to the transfers and, if there are any, makes serve look for new deadlines. It
// returns the links that went down or were banned. The lock is held.
func (f *fleet) flush() (down []string) {
	changed := false
	for _, c := range f.boards.Changes() {
		changed = true
		name := f.all[c.Link].name
		f.tell(Event{
			Kind:   EventLinkState,
			At:     time.Now(),
			Link:   name,
			State:  c.State.String(),
			Reason: c.Cause.String(),
		})
		if c.State == health.Down || c.State == health.Banned {
			down = append(down, name)
		}
	}
	for _, s := range f.sites {
		for _, c := range s.board.Changes() {
			changed = true
			if len(s.runs) == 0 {
				continue
			}
			f.tell(Event{
				Kind:   EventOriginState,
				At:     time.Now(),
				Link:   f.all[c.Link].name,
				State:  c.State.String(),
				Reason: c.Cause.String(),
				Origin: s.addr,
			})
			if c.State == health.Banned && accusing(c.Cause) {
				f.all[c.Link].accused = true
			}
			for _, r := range s.runs {
				r.mailbox.post(transfer.Event{Kind: transfer.LinkState, Link: c.Link, State: c.State, Cause: c.Cause})
			}
		}
	}
	if changed {
		f.nudge()
	}
	return down
}

// nudge makes serve check for due work.
func (f *fleet) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
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
		seen := make([]bool, len(f.all))
		for _, l := range links {
			i := slices.IndexFunc(f.all, func(s *fleetLink) bool { return s.name == l.Name })
			if i < 0 {
				if len(f.all) == maxLinks {
					continue
				}
				i = len(f.all)
				f.all = append(f.all, &fleetLink{name: l.Name, rates: map[*run]rated{}})
				seen = append(seen, true)
				for _, r := range f.runs {
					// makes room
					r.mailbox.post(transfer.Event{Kind: transfer.LinkState, Link: int8(i), State: health.Down})
				}
			}
			seen[i] = true
			if moved(f.all[i].link, l) { // connections from an address that is gone are dead
				f.gone(now, int8(i))
			}
			f.all[i].link = l
			f.all[i].radio.set(l.Terms.Radio)
			f.boards.Present(now, int8(i), true)
		}
		for i, s := range seen {
			if !s {
				f.gone(now, int8(i))
			}
		}
		for _, r := range f.runs {
			r.mailbox.post(transfer.Event{Kind: transfer.Permitted})
		}
		f.abortStreams()
	})
}

// gone records that a link is gone: the next one with its name may lead elsewhere.
func (f *fleet) gone(now time.Time, i int8) {
	f.boards.Present(now, i, false)
	f.all[i].reached, f.all[i].overdue = nil, nil
	for _, s := range f.sites {
		delete(s.last, i)
	}
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
	return !before.Same(now)
}

// silent handles a transfer's report that a link is silent; connected reports whether the transfer has a connection
// over it, rather than still making one. The report does not count while another transfer receives bytes over the link.
func (f *fleet) silent(r *run, i int8, connected bool) {
	f.change(func(now time.Time) {
		s := f.all[i]
		if last, ok := r.site.last[i]; ok && connected {
			r.site.last[i] = address{last.addr, now}
		}
		s.silent = append(s.silent, r)
		f.hearSilence(now, i, s.lastRun.Load() == r)
	})
	f.nudge() // serve learns when to ask again
}

// hearSilence reports to the boards which transfers find a link silent, unless others recently received bytes over it.
// In that case it returns when to ask again. The lock is held.
func (f *fleet) hearSilence(now time.Time, i int8, alone bool) (again time.Time) {
	s := f.all[i]
	if grace := health.SuspectAfter - time.Duration(f.clock(now)-s.lastByte.Load()); len(s.silent) > 0 && grace > 0 &&
		!alone {
		return now.Add(grace)
	}
	for _, r := range s.silent {
		r.site.board.Silent(now, i)
	}
	s.silent = nil
	return time.Time{}
}

func (f *fleet) alive(r *run, i int8) {
	f.change(func(now time.Time) {
		f.all[i].forgive(r)
		f.boards.Alive(now, r.site.board, i)
	})
}

// nothingDue handles a transfer's report that it expects nothing more of a link.
func (f *fleet) nothingDue(r *run, i int8) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[i].forgive(r)
}

// forgive forgets that a transfer finds the link silent. The lock is held.
func (s *fleetLink) forgive(r *run) {
	s.silent = slices.DeleteFunc(s.silent, func(o *run) bool { return o == r })
}

func (f *fleet) failed(r *run, i int8, c health.Cause) {
	f.change(func(now time.Time) {
		if c == health.BindFailed { // no origin is involved
			f.boards.Failed(now, i, c)
			return
		}
		r.site.board.Failed(now, i, c)
	})
}

// speed handles a transfer's report on a link that it keeps busy and feeds the slow-link check with the sum of all
// transfers from the same origin: the speed of other origins says nothing about this one. It returns the sum of all
// transfers.
func (f *fleet) speed(r *run, i int8, is health.Speed) (name string, sum float64) {
	f.change(func(now time.Time) {
		s := f.all[i]
		s.rates[r] = rated{is.Rate, now}
		here := s.goodput(now, func(o *run) bool { return o.site == r.site })
		r.site.board.Speed(now, i, health.Speed{Rate: here, Gain: is.Gain}, f.slow)
		name, sum = s.name, s.goodput(now, func(*run) bool { return true })
	})
	return name, sum
}

// alone reports whether there is at most one transfer.
func (f *fleet) alone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.runs) <= 1
}

// judged applies a transfer's verdict on a link that adds nothing, or on one that is missed.
func (f *fleet) judged(r *run, v health.Verdict) {
	f.change(func(now time.Time) {
		if v.Out {
			r.site.board.LeaveOut(now, v.Link)
		} else {
			r.site.board.TakeBack(now, v.Link)
		}
	})
}

// goodput returns the sum of the rates that some transfers reported recently.
func (s *fleetLink) goodput(now time.Time, of func(*run) bool) (sum float64) {
	for r, rate := range s.rates {
		if now.Sub(rate.at) <= rateFresh && of(r) {
			sum += rate.perSecond
		}
	}
	return sum
}

// links returns the links by number.
func (f *fleet) links() (all []link.Link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.all {
		all = append(all, s.link)
	}
	return all
}

// rtt returns the round-trip time over a link that a transfer measured last, 0 if none did.
func (f *fleet) rtt(name string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.all {
		if s.name == name {
			return time.Duration(s.rtt.Load())
		}
	}
	return 0
}

// linkAt returns the link with the given number.
func (f *fleet) linkAt(i int8) *fleetLink {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[i]
}

// at returns the link with the given number as it is now.
func (f *fleet) at(i int8) link.Link {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.all[i].link
}

// status describes the links for observers.
func (f *fleet) status() []LinkStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	out := make([]LinkStatus, 0, len(f.all))
	for i, s := range f.all {
		st, cause := f.boards.State(int8(i))
		joules, radio := s.radio.joules(now)
		out = append(out, LinkStatus{
			Joules:  joules,
			Radio:   radio,
			Name:    s.name,
			State:   st.String(),
			Reason:  cause.String(),
			Goodput: s.meter.rate(f.clock(now)),
			RTT:     time.Duration(s.rtt.Load()).Seconds(),
			Bytes:   s.bytes.Load(),
			Waste:   s.waste.Load(),
			Bans:    int64(f.boards.Bans(int8(i))),
		})
	}
	return out
}

// leftOut returns the links that are banned for an origin and not for everybody. The lock is held.
func (f *fleet) leftOut(s *site) (all []LeftOut) {
	for i, l := range f.all {
		everybody, _ := f.boards.State(int8(i))
		state, cause := s.board.State(int8(i))
		if everybody == health.Up && (state == health.Banned || state == health.Probing) {
			all = append(all, LeftOut{l.name, cause.String(), cause.Text()})
		}
	}
	return all
}

// ranked returns the links that are up for everybody, then the suspects, each group in the system's order of
// preference.
func (f *fleet) ranked() (out []link.Link) {
	f.mu.Lock()
	defer f.mu.Unlock()
	order := func(a, b link.Link) int { return a.Metric - b.Metric }
	for _, want := range []health.State{health.Up, health.Suspect} {
		from := len(out)
		for i, s := range f.all {
			if state, _ := f.boards.State(int8(i)); state == want {
				out = append(out, s.link)
			}
		}
		slices.SortStableFunc(out[from:], order)
	}
	return out
}

// clock returns a time as a number that does not depend on changes of the wall clock; 0 is long ago.
func (f *fleet) clock(t time.Time) int64 { return int64(t.Sub(f.began)) }
