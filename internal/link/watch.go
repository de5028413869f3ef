package link

import (
	"context"
	"time"
)

// How long a gain is left to settle, counted from the first event, and how often to look when no event can come.
const (
	settle = 100 * time.Millisecond
	poll   = time.Second
)

// hints are reasons to look again, derived from kernel events.
type hints struct {
	lost   chan struct{} // something may be gone: look now
	gained chan struct{} // something may be new: look when it has settled
	set    chan struct{} // the settings have changed: look now, and take the result as it is
	dead   chan struct{} // closed when no event can come any more
}

func newHints() hints {
	return hints{make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})}
}

// give notes a hint without waiting: one that was not taken yet says the same.
func give(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// watch sends first and then the results of look, as [Source.Watch] promises, until ctx ends. A look that fails is repeated
// after the settling time; until then the last result holds.
func watch(ctx context.Context, h hints, first []Link, look func() ([]Link, error), out chan<- []Link) {
	shown := first
	var sent []Link
	timer := time.NewTimer(settle)
	timer.Stop()
	armed := false
	arm := func(d time.Duration) {
		if !armed {
			timer.Reset(d)
			armed = true
		}
	}
	dead := h.dead
	for fresh := true; ; {
		send := out
		if !fresh && equalLinks(shown, sent) {
			send = nil
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case send <- shown:
			sent, fresh = shown, false
		case <-h.lost:
			if now, err := look(); err == nil {
				shown = losses(shown, now)
			}
			arm(settle)
		case <-h.gained:
			arm(settle)
		case <-h.set:
			if now, err := look(); err == nil {
				shown = now
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
			} else {
				arm(settle)
			}
			if dead == nil {
				arm(poll)
			}
		}
	}
}
