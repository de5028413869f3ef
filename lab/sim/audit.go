package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

const (
	// idleMost is how long a usable link may be without work while bytes that it could fetch are free: it gets a
	// request in the same event, or when the hedge of other bytes ends.
	idleMost = 100 * time.Millisecond

	// drainMost is how many bytes of an answer may be read and discarded instead of closing its connection, in addition
	// to one round trip.
	drainMost = 64 << 10

	// spotShare bounds the bytes that are fetched twice for spot checks: one in spotShare bytes, or spotLeast for each
	// link if that is more, plus spotAgain for repeated checks.
	spotShare = 2000
	spotLeast = 64
	spotAgain = 4 << 10

	// verifyMost bounds the bytes that are fetched at the end to verify a link that no spot check has verified.
	verifyMost = 8 << 10
)

// errMixed reports the worst result of a lying link.
var errMixed = errors.New("the client got bytes of two objects")

// audit keeps a separate account, so that the machine does not judge itself.
type audit struct {
	w        *world
	got      segment.Set // wanted bytes that were read
	lies     segment.Set // wanted bytes that arrived over a link that lies
	sent     [2]int64    // delivered bytes: true ones, and lies
	compared int64       // bytes of prefixes, which are fetched for spot checks
	verified int64       // compared bytes in requests that fetch nothing else
	silent   []bool      // links that the machine reported as silent
	idle     []time.Duration
	copied   int64  // bytes requested although an attempt was still fetching them: the bound of the waste
	kept     uint32 // the first response, if it was ever read on although others fetch its bytes; 0 = none
	drained  int64  // bytes read although they were no longer wanted
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

// running calls f for each request that has not been answered completely, with the part that is still wanted.
func (a *audit) running(f func(k *ask, owes segment.Range)) {
	for _, c := range a.w.conns {
		for _, k := range c.asks {
			if k.done || c.apart && a.w.m.Wanted(k.id) == 0 { // a reserve that is not read
				continue
			}
			f(k, segment.Range{Start: max(k.cursor, k.want), End: a.w.m.Wanted(k.id)})
		}
	}
}

// asked checks a request before it is made. A byte that another attempt still fetches may be requested a second time if
// its link is silent, or to move it to another link, but never a third time.
func (a *audit) asked(do transfer.Action, want segment.Range) {
	if a.w.spec.Restart || a.w.m.Progress().Size == transfer.Unknown || do.Rule == schedule.Reserve {
		return // restart continuation requests again by design; the first request may be sent over every link
	}
	a.fits(do)
	var once segment.Set
	a.running(func(k *ask, owes segment.Range) {
		r := owes.Clip(want)
		if r.Empty() || k.id == do.Attempt || k.id == a.kept {
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

// fits checks a request over HTTP/2: its whole answer may have to be held, so it must lie within the grant. Ranges that
// are moved from another link or fetched twice were requested before.
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

// copies accounts for second copies made at the start: concurrent attempts at the first request.
func (a *audit) copies() {
	var once segment.Set
	a.running(func(_ *ask, owes segment.Range) {
		a.copied += max(0, owes.Len()) - once.Add(owes)
	})
}

// read accounts for n bytes that arrived for k.
func (a *audit) read(k *ask, n int64) {
	prefix := min(n, max(0, k.want-k.cursor))
	if a.compared += prefix; k.want == k.r.End {
		a.verified += prefix
	}
	if most := max(a.w.spec.Size/spotShare,
		int64(spotLeast*len(a.w.spec.Links))) + spotAgain; a.compared-a.verified > most ||
		a.verified > verifyMost*int64(len(a.w.spec.Links)) {
		a.failf("%d of %d bytes were fetched for spot checks, and %d to verify links", a.compared-a.verified,
			a.w.spec.Size, a.verified)
	}
	n -= prefix
	r := segment.Range{Start: max(k.cursor, k.want)}
	r.End = min(r.Start+n, a.w.m.Wanted(k.id))
	if k.id == a.w.m.Kept() {
		a.kept, r.End = k.id, r.Start+n
	}
	if k.conn.apart { // what it begins with has mostly arrived
		a.copied += n - a.got.Add(r)
		return
	}
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
	if fresh := a.got.Add(r); a.kept != 0 {
		a.copied += wanted - fresh
	}
	a.drained += n - wanted
	k.drained += n - wanted
	l := a.w.spec.Links[k.conn.link]
	if most := max(drainMost, int64(a.fastest[k.conn.link]*(l.RTT+l.queue()).Seconds())) + step; k.drained > most {
		a.failf("attempt %d has read %d bytes for nothing", k.id, k.drained)
	}
}

// forget records that bytes must be fetched again.
func (a *audit) forget(r segment.Range) {
	if head := max(a.w.offset, a.w.given); r.Start < head {
		a.failf("%v is to be fetched again, but the client has the bytes before %d", r, head)
	}
	a.copied += a.got.Remove(r)
	a.lies.Remove(r)
}

// delivered accounts for n bytes that the client got from offset head on.
func (a *audit) delivered(head, n int64) {
	lies := a.lies.Overlap(segment.Range{Start: head, End: head + n})
	a.sent[0] += n - lies
	a.sent[1] += lies
	if g := a.got.Gap(segment.Range{Start: head, End: head + n}); !g.Empty() {
		a.failf("delivers %v, which never came", g)
	}
}

// event checks the links after an event.
func (a *audit) event() {
	w := a.w
	if w.spec.Scheduler == "single" || w.m.Progress().Size == transfer.Unknown || w.spec.Restart || w.spec.Background {
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
			a.idle[i] = -1 // the scheduler states a reason
		case room.Empty() || room.Len() <= a.full() && room.End < w.spec.Size:
			a.idle[i] = -1 // the window is full or nothing is free
		case a.idle[i] < 0:
			a.idle[i] = w.now
		case w.now-a.idle[i] > idleMost:
			a.failf("link %d has nothing to do since %v, but nobody asks for %d", i, a.idle[i], room.Start)
		}
	}
}

// full returns the room in bytes at which a window counts as full: the window of a slow client is filled in one go.
func (a *audit) full() int64 {
	if a.w.spec.Client > 0 {
		return a.w.m.Progress().Window / 2
	}
	return a.w.m.Progress().Window/4 - 1
}

// room returns the part of the window that starts at the first byte that no link fetches; it is empty if every byte is
// fetched.
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
	return segment.Range{Start: g.Start, End: max(g.Start, min(w.spec.Size, w.offset+w.m.Progress().Window))}
}

// ended checks the whole run.
func (a *audit) ended() {
	if a.w.err == nil && a.sent[0] > 0 && a.sent[1] > 0 {
		a.w.err = fmt.Errorf("at %v: %d bytes of one and %d of the other: %w", a.w.now, a.sent[0], a.sent[1], errMixed)
	}
	if !a.w.spec.Restart && a.w.res.Waste > a.copied+a.drained+a.compared {
		a.failf("%d bytes of waste: %d were asked for twice, %d drained, %d compared", a.w.res.Waste, a.copied,
			a.drained, a.compared)
	}
}
