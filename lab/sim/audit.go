package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/tributary-http/tributary/internal/health"
	"github.com/tributary-http/tributary/internal/schedule"
	"github.com/tributary-http/tributary/internal/segment"
	"github.com/tributary-http/tributary/internal/transfer"
)

const (
	// idleMost is how long a usable link may be without work while bytes that it could fetch are free: it is asked in the
	// same event, or when the hedge of other bytes is through.
	idleMost = 100 * time.Millisecond

	// drainMost is how much of an answer may be read and discarded rather than its connection closed, beside one round trip.
	drainMost = 64 << 10

	// spotShare bounds the bytes that are fetched twice for spot checks: one of so many, or spotLeast for each link if that is
	// more, and spotAgain for checks that are repeated.
	spotShare = 2000
	spotLeast = 64
	spotAgain = 4 << 10

	// verifyMost bounds the bytes that are fetched at the end to verify a link that no spot check has proven.
	verifyMost = 8 << 10
)

// errMixed is the worst that can happen where a link lies.
var errMixed = errors.New("the client got bytes of two objects")

// audit keeps an account of its own, so that the machine's is not its own judge.
type audit struct {
	w        *world
	got      segment.Set // wanted bytes that were read
	lies     segment.Set // those of them that came over a link that lies
	sent     [2]int64    // bytes delivered: true ones, and lies
	compared int64       // bytes of prefixes, which are read for spot checks
	verified int64       // bytes of requests that fetch nothing else
	silent   []bool      // links that the machine called silent
	idle     []time.Duration
	copied   int64 // asked for although an attempt still fetched it: the bound of the waste
	drained  int64 // read although nobody wanted it any more
	fastest  []float64
}

func newAudit(w *world) *audit {
	n := len(w.spec.Links)
	a := &audit{w: w, silent: make([]bool, n), idle: make([]time.Duration, n), fastest: make([]float64, n)}
	for i, l := range w.spec.Links {
		a.idle[i], a.fastest[i] = -1, l.peak()
	}
	return a
}

func (a *audit) failf(format string, args ...any) {
	if a.w.err == nil {
		a.w.err = fmt.Errorf("at %v: %s", a.w.now, fmt.Sprintf(format, args...))
	}
}

// running calls f for each request that was made and not answered to its end, with the part that is still wanted.
func (a *audit) running(f func(k *ask, owes segment.Range)) {
	for _, c := range a.w.conns {
		for _, k := range c.asks {
			if k.done {
				continue
			}
			f(k, segment.Range{Start: max(k.cursor, k.want), End: a.w.m.Wanted(k.id)})
		}
	}
}

// asked judges a request before it is made: a byte that another attempt still fetches may be asked for a second time if
// its link is silent, or to move it to another link; never for a third time.
func (a *audit) asked(do transfer.Action, want segment.Range) {
	if a.w.spec.Restart || a.w.state().Size == transfer.Unknown {
		return // restart continuation asks again by design; the first request may go out over every link
	}
	a.fits(do)
	var once segment.Set
	a.running(func(k *ask, owes segment.Range) {
		r := owes.Clip(want)
		if r.Empty() || k.id == do.Attempt {
			return
		}
		if once.Overlap(r) > 0 {
			a.failf("%v is asked for a third time", r)
		}
		a.copied += once.Add(r)
		link := k.conn.link
		switch do.Rule {
		case schedule.HedgeCopy:
			if st, _ := a.w.board.State(link); !a.silent[link] && st == health.Up {
				a.failf("%v is asked for a second time, but link %d is not silent", r, link)
			}
		case schedule.Steal, schedule.Oversize:
		default:
			a.failf("%v is asked for a second time (%v), attempt %d still fetches it", r, do.Rule, k.id)
		}
	})
}

// fits judges a request over HTTP/2: all of its answer may have to be held, so it must lie within the grant. Ranges that are
// moved from another link or fetched twice were requested before.
func (a *audit) fits(do transfer.Action) {
	switch do.Rule {
	case schedule.HedgeCopy, schedule.Steal, schedule.Oversize:
		return
	}
	granted := max(a.w.spec.Window, firstGrant(a.w.spec))
	if a.w.spec.Links[do.Link].H2 && a.w.conns[do.Conn].open && do.Range.End > a.w.offset+granted {
		a.failf("%v is asked for, %d beyond what may be held", do.Range, do.Range.End-a.w.offset-granted)
	}
}

// copies accounts for second copies that the start made: attempts at the first request that run side by side.
func (a *audit) copies() {
	var once segment.Set
	a.running(func(_ *ask, owes segment.Range) {
		a.copied += max(0, owes.Len()) - once.Add(owes)
	})
}

// read takes n bytes that came for k.
func (a *audit) read(k *ask, n int64) {
	prefix := min(n, max(0, k.want-k.cursor))
	if a.compared += prefix; k.want == k.r.End {
		a.verified += prefix
	}
	if most := max(a.w.spec.Size/spotShare, int64(spotLeast*len(a.w.spec.Links))) + spotAgain; a.compared-a.verified > most || a.verified > verifyMost*int64(len(a.w.spec.Links)) {
		a.failf("%d of %d bytes were fetched for spot checks, and %d to verify links", a.compared-a.verified, a.w.spec.Size, a.verified)
	}
	n -= prefix
	r := segment.Range{Start: max(k.cursor, k.want)}
	r.End = min(r.Start+n, a.w.m.Wanted(k.id))
	wanted := max(0, r.Len())
	if a.w.spec.Links[k.conn.link].Lies {
		for rest := r; ; {
			gap := a.got.Gap(rest)
			if gap.Empty() {
				break
			}
			a.lies.Add(gap)
			rest.Start = gap.End
		}
	}
	a.got.Add(r)
	a.drained += n - wanted
	k.drained += n - wanted
	l := a.w.spec.Links[k.conn.link]
	if most := max(drainMost, int64(a.fastest[k.conn.link]*(l.RTT+l.queue()).Seconds())) + step; k.drained > most {
		a.failf("attempt %d has read %d bytes for nothing", k.id, k.drained)
	}
}

// forget takes note that bytes must be fetched again.
func (a *audit) forget(r segment.Range) {
	if head := max(a.w.offset, a.w.given); r.Start < head {
		a.failf("%v is to be fetched again, but the client has the bytes before %d", r, head)
	}
	a.copied += a.got.Remove(r)
	a.lies.Remove(r)
}

// delivered takes n bytes that the client got from the next offset on.
func (a *audit) delivered(head, n int64) {
	lies := a.lies.Overlap(segment.Range{Start: head, End: head + n})
	a.sent[0] += n - lies
	a.sent[1] += lies
	if g := a.got.Gap(segment.Range{Start: head, End: head + n}); !g.Empty() {
		a.failf("delivers %v, which never came", g)
	}
}

// event judges the links after an event.
func (a *audit) event() {
	w := a.w
	if w.spec.Scheduler == "single" || w.state().Size == transfer.Unknown || w.spec.Restart || w.spec.Background {
		return
	}
	busy := make([]bool, len(w.links))
	a.running(func(k *ask, _ segment.Range) { busy[k.conn.link] = true })
	room := segment.Range{Start: -1}
	for i := range w.links {
		if busy[i] || !w.m.Usable(w.at(w.now), int8(i)) {
			a.idle[i] = -1
			continue
		}
		if room.Start < 0 {
			room = a.room()
		}
		switch {
		case w.said.last.Do == schedule.Wait && w.said.last.Rule != schedule.NothingToDo:
			a.idle[i] = -1 // for a reason that the scheduler states
		case room.Empty() || room.Len() <= a.full() && room.End < w.spec.Size:
			a.idle[i] = -1 // the window is full or nothing is free
		case a.idle[i] < 0:
			a.idle[i] = w.now
		case w.now-a.idle[i] > idleMost:
			a.failf("link %d has nothing to do since %v, but nobody asks for %d", i, a.idle[i], room.Start)
		}
	}
}

// full returns the room at which a window is full: that of a client that takes its time is filled in one go.
func (a *audit) full() int64 {
	if a.w.spec.Client > 0 {
		return a.w.state().Window / 2
	}
	return a.w.state().Window/4 - 1
}

// room returns the part of the window behind the first byte that nobody fetches; empty if somebody fetches every byte.
func (a *audit) room() segment.Range {
	w := a.w
	have := segment.Set{}
	for _, r := range a.got.Ranges() {
		have.Add(r)
	}
	a.running(func(_ *ask, owes segment.Range) { have.Add(owes) })
	g := have.Gap(segment.Range{Start: w.offset, End: w.spec.Size})
	if g.Empty() {
		return segment.Range{Start: w.spec.Size, End: w.spec.Size}
	}
	return segment.Range{Start: g.Start, End: max(g.Start, min(w.spec.Size, w.offset+w.state().Window))}
}

// ended judges the whole run.
func (a *audit) ended() {
	if a.w.err == nil && a.sent[0] > 0 && a.sent[1] > 0 {
		a.w.err = fmt.Errorf("at %v: %d bytes of one and %d of the other: %w", a.w.now, a.sent[0], a.sent[1], errMixed)
	}
	if !a.w.spec.Restart && a.w.res.Waste > a.copied+a.drained+a.compared {
		a.failf("%d bytes of waste: %d were asked for twice, %d drained, %d compared", a.w.res.Waste, a.copied, a.drained, a.compared)
	}
}
