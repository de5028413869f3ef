package discover

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/net/link"
)

// How long a gain is left to settle, counted from the first event, and how often to look when no events can arrive.
const (
	settle = 100 * time.Millisecond
	poll   = time.Second

	// A link that was lost within the last remembered and is back unchanged does not need to settle again: it is looked
	// for a moment after each event.
	rejoin     = 10 * time.Millisecond
	remembered = time.Minute
)

// hints are reasons to look again, derived from kernel events.
type hints struct {
	lost   chan struct{} // something may be gone: look now
	gained chan struct{} // something may be new: look when it has settled
	set    chan struct{} // the settings have changed: look now, and take the result as it is
	dead   chan struct{} // closed when no more events can arrive
}

func newHints() hints {
	return hints{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})}
}

// give sends a hint without waiting: one that is still pending has the same effect.
func give(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// past holds the last settled state of links, by name.
type past map[string]lastSeen

type lastSeen struct {
	link link.Link
	lost time.Time // zero = it is there
}

// settled records a result that has settled.
func (p past) settled(now []link.Link) {
	for name, l := range p {
		_, here := find(now, name)
		switch {
		case here:
		case l.lost.IsZero():
			l.lost = time.Now()
			p[name] = l
		case time.Since(l.lost) > remembered:
			delete(p, name)
		}
	}
	for _, l := range now {
		p[l.Name] = lastSeen{link: l}
	}
}

// recent reports whether the link was there recently.
func (l lastSeen) recent() bool { return l.lost.IsZero() || time.Since(l.lost) <= remembered }

// misses reports whether links that were there recently are not shown as they were.
func (p past) misses(shown []link.Link) bool {
	for name, l := range p {
		if s, ok := find(shown, name); l.recent() && !(ok && s.Equal(l.link)) {
			return true
		}
	}
	return false
}

// returned returns the links in shown and the links in now that are back unchanged, in the order of now.
func (p past) returned(shown, now []link.Link) (all []link.Link) {
	for _, l := range now {
		if was, ok := p[l.Name]; ok && was.recent() && was.link.Equal(l) {
			all = append(all, l)
		} else if s, ok := find(shown, l.Name); ok {
			all = append(all, s)
		}
	}
	return all
}

// watch sends first and then the results of look, as [Source.Watch] promises, until ctx ends. A failed look is repeated
// after the settling time; until then the last result stays in effect.
func watch(ctx context.Context, h hints, first []link.Link, look func() ([]link.Link, error), out chan<- []link.Link) {
	shown := first
	var sent []link.Link
	timer := time.NewTimer(settle)
	timer.Stop()
	armed := false
	arm := func(d time.Duration) {
		if !armed {
			timer.Reset(d)
			armed = true
		}
	}
	was := past{}
	was.settled(first)
	early := time.NewTimer(rejoin)
	early.Stop()
	waits := false // for early
	expect := func() {
		if !waits && was.misses(shown) {
			early.Reset(rejoin)
			waits = true
		}
	}
	dead := h.dead
	for fresh := true; ; {
		send := out
		if !fresh && link.Equal(shown, sent) {
			send = nil
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			early.Stop()
			return
		case send <- shown:
			sent, fresh = shown, false
		case <-h.lost:
			if now, err := look(); err == nil {
				shown = losses(shown, now)
			}
			arm(settle)
			expect()
		case <-h.gained:
			arm(settle)
			expect()
		case <-early.C:
			waits = false
			if now, err := look(); err == nil {
				shown = was.returned(shown, now)
			}
		case <-h.set:
			if now, err := look(); err == nil {
				shown = now
				was.settled(now)
			} else {
				arm(settle)
			}
		case <-dead:
			dead = nil
			arm(settle)
		case <-timer.C:
			armed = false
			now, err := look()
			if err == nil {
				shown = now
				was.settled(now)
			} else {
				arm(settle)
			}
			if dead == nil {
				arm(poll)
			}
		}
	}
}

// losses returns the links in shown without what is missing from now; new links and additions in now do not count yet.
// The result equals shown if nothing was lost.
func losses(shown, now []link.Link) []link.Link {
	left := make([]link.Link, 0, len(shown))
	for _, s := range shown {
		n, ok := find(now, s.Name)
		if !ok || !n.Same(s) {
			continue
		}
		addrs := slices.DeleteFunc(slices.Clone(s.Addrs),
			func(a netip.Addr) bool { return !slices.Contains(n.Addrs, a) })
		if len(addrs) == 0 {
			continue
		}
		s.Addrs = addrs
		left = append(left, s)
	}
	return left
}
