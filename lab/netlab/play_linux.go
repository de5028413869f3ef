package netlab

import (
	"context"
	"errors"
	"time"
)

// Played is one download through a Tributary while the scenario's events happened.
type Played struct {
	Download
	Links  []PlayedLink  // in the scenario's order
	Events []PlayedEvent // those that happened before the download's end
	// longest time without a body byte over any link, not counting times when none was up; see sampleEvery
	Idle time.Duration
}

// PlayedLink is the part of the download over one link.
type PlayedLink struct {
	Name     string
	Received int64 // body bytes, according to the program's metrics
	Waste    int64 // second copies and unwanted bytes among them
	// bytes that entered the link towards the client, counted by the emulator: heads and lost packets included
	Carried int64
}

// PlayedEvent is an event with its consequences.
type PlayedEvent struct {
	Event
	Began       time.Duration // when the event happened, counted from the request
	ClientAfter time.Duration // from then until the client's next byte, -1 if none arrived
	LinkAfter   time.Duration // from then until the link's next body byte, -1 if none arrived; see sampleEvery
}

// Returns reports whether the event brings a link back.
func (e Event) Returns() bool {
	return e.What == EventRestore || e.What == EventUp || e.What == EventRestoreAddrs
}

// Takes reports whether the event takes a link away.
func (e Event) Takes() bool {
	return e.What == EventBlackhole || e.What == EventDown || e.What == EventRemoveAddrs
}

// sampleEvery is the resolution of PlayedEvent.LinkAfter.
const sampleEvery = 20 * time.Millisecond

// sample holds the bytes received over each link by a moment.
type sample struct {
	at       time.Duration
	received []int64
}

// Play downloads a URL through t while the scenario's events happen, counted from the request. If a download ends
// early, the part received is returned along with the error.
func (l *Lab) Play(ctx context.Context, t *Tributary, url string) (Played, error) {
	var p Played
	before, err := l.counters(ctx, t)
	if err != nil {
		return p, err
	}
	playing, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	var samples []sample
	events, sampled := make(chan error, 1), make(chan error, 1)
	go func() {
		events <- l.playEvents(playing, began, func(e Event) {
			p.Events = append(p.Events, PlayedEvent{Event: e, Began: time.Since(began)})
		})
	}()
	go func() { sampled <- l.sample(playing, t, began, &samples) }()
	p.Download, err = l.Download(ctx, ProxyAddr, url)
	stop()
	for _, c := range []chan error{events, sampled} {
		if e := <-c; !errors.Is(e, context.Canceled) {
			err = errors.Join(err, e)
		}
	}
	after, e := l.counters(ctx, t)
	if e != nil {
		return p, errors.Join(err, e)
	}
	for i, a := range after {
		b := before[i]
		p.Links = append(p.Links, PlayedLink{a.Name, a.Received - b.Received, a.Waste - b.Waste, a.Carried - b.Carried})
	}
	p.Idle = longestIdle(samples, p.Events, len(l.links))
	for i := range p.Events {
		ev := &p.Events[i]
		ev.ClientAfter, ev.LinkAfter = -1, carriesAfter(samples, l.Link(ev.Link).Index-1, ev.Began)
		if at := p.After(ev.Began); at >= 0 {
			ev.ClientAfter = at - ev.Began
		}
	}
	return p, err
}

// counters returns the bytes of each link since the program's start.
func (l *Lab) counters(ctx context.Context, t *Tributary) ([]PlayedLink, error) {
	m, err := t.Metrics(ctx)
	if err != nil {
		return nil, err
	}
	var all []PlayedLink
	for _, link := range l.links {
		down, _, err := link.Counters()
		if err != nil {
			return nil, err
		}
		all = append(all, PlayedLink{link.Name, m.Received(link.Name), m.Waste(link.Name), down.Bytes})
	}
	return all, nil
}

// sample records the bytes of each link every sampleEvery until ctx ends.
func (l *Lab) sample(ctx context.Context, t *Tributary, began time.Time, samples *[]sample) error {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		at := time.Since(began)
		m, err := t.Metrics(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		s := sample{at: at}
		for _, link := range l.links {
			s.received = append(s.received, m.Received(link.Name))
		}
		*samples = append(*samples, s)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// longestIdle returns the longest time between two samples of n links, after the first byte and before the last one, in
// which no byte arrived. Times when none of the links was up do not count.
func longestIdle(samples []sample, events []PlayedEvent, n int) (longest time.Duration) {
	away := map[string]bool{}
	var idle, last time.Duration
	var before, final int64
	for _, s := range samples {
		final = max(final, sum(s.received))
	}
	for _, s := range samples {
		at := last
		// up to each event, then with the links as the event leaves them
		for len(events) > 0 && events[0].Began <= s.at {
			if len(away) < n {
				idle += max(0, events[0].Began-at)
			}
			at = max(at, events[0].Began)
			switch e := events[0]; {
			case e.Takes():
				away[e.Link] = true
			case e.Returns():
				delete(away, e.Link)
			}
			events = events[1:]
		}
		if len(away) < n {
			idle += s.at - at
		}
		last = s.at
		got := sum(s.received)
		switch {
		case got > before:
			if before > 0 {
				longest = max(longest, idle)
			}
			idle = 0
		case got == final:
			return longest
		}
		before = got
	}
	return longest
}

func sum(all []int64) (s int64) {
	for _, n := range all {
		s += n
	}
	return s
}

// carriesAfter returns how long after a time a link first had more bytes than at that time, -1 if it never had.
func carriesAfter(samples []sample, link int, from time.Duration) time.Duration {
	for i, s := range samples {
		// the previous sample may have been taken before the event, but the error is within sampleEvery
		if s.at >= from && i > 0 && s.received[link] > samples[i-1].received[link] {
			return s.at - from
		}
	}
	return -1
}
