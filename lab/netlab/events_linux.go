package netlab

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// PlayEvents plays the scenario's events, counted from now, and returns after the last one or when ctx ends.
func (l *Lab) PlayEvents(ctx context.Context) error {
	return l.playEvents(ctx, time.Now(), func(Event) {})
}

// playEvents is PlayEvents counted from began, a moment in the past; it calls tell immediately before each event.
func (l *Lab) playEvents(ctx context.Context, began time.Time, tell func(Event)) error {
	for _, e := range l.Scenario.Events {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(began.Add(e.At))):
		}
		tell(e)
		if err := l.Apply(e); err != nil {
			return fmt.Errorf("event at %s: %w", e.At, err)
		}
	}
	return nil
}

// Apply makes an event happen now.
func (l *Lab) Apply(e Event) error {
	link := l.Link(e.Link)
	switch e.What {
	case EventBlackhole:
		return link.Blackhole(true)
	case EventRestore:
		return link.Blackhole(false)
	case EventDown:
		return link.Down()
	case EventUp:
		return link.Up()
	case EventRemoveAddrs:
		return link.RemoveAddrs()
	case EventRestoreAddrs:
		return link.RestoreAddrs()
	case EventShape:
		return link.Update(func(down, up *Shape) {
			e.ShapeChange.apply(down)
			e.ShapeChange.apply(up)
		})
	}
	return fmt.Errorf("unknown event %q", e.What)
}

// ResetConnections resets every TCP connection of the server namespace, so that nothing is resent over a link that was
// dark once it is back.
func (l *Lab) ResetConnections() error {
	return l.server.enter(func() error { return command("ss", "--kill", "--tcp", "state", "connected") })
}

// Restore undoes all events: every link is up, carries packets and is shaped as the scenario says.
func (l *Lab) Restore() error {
	for i, link := range l.links {
		spec := l.Scenario.Links[i]
		err := link.Update(func(down, up *Shape) { *down, *up = spec.Down, spec.Up })
		if err := errors.Join(err, link.Blackhole(false), link.Up()); err != nil {
			return err
		}
	}
	return nil
}

// settleTime is how long the links must be silent before Settle returns. It is longer than the RTTs of the scenarios
// and the shortest retransmission timeout of broken connections (Linux: 200 ms).
const settleTime = 400 * time.Millisecond

// Settle waits until nothing is on any link and nothing has entered one for a while.
func (l *Lab) Settle(ctx context.Context) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	var last int64
	quiet := time.Now()
	for time.Since(quiet) < settleTime {
		var entered, inFlight int64
		for _, link := range l.links {
			down, up, err := link.Counters()
			if err != nil {
				return err
			}
			entered += down.Packets + up.Packets
			inFlight += down.InFlight + up.InFlight
		}
		if entered != last || inFlight > 0 {
			last, quiet = entered, time.Now()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("links do not fall silent: %w", ctx.Err())
		case <-poll.C:
		}
	}
	return nil
}

// Fresh prepares the lab for a measurement that is independent of the one before: Settle, then ResetRamp on each link.
func (l *Lab) Fresh(ctx context.Context) error {
	if err := l.Settle(ctx); err != nil {
		return err
	}
	for _, link := range l.links {
		if err := link.ResetRamp(); err != nil {
			return err
		}
	}
	return nil
}
