package engine

import (
	"context"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/net/link"
)

// crossEvery is how often the counters of links that background transfers use are read: a page's first packets arrive
// within a round trip.
const crossEvery = 10 * time.Millisecond

// crossTraffic reports to background transfers the other traffic on their links. One goroutine (serve) reads the
// counters of the interfaces and of the connections of all background transfers, which do not count as other traffic
// for each other.
type crossTraffic struct {
	received func(link int8) (link.Counters, bool)

	mu    sync.Mutex
	conns map[*connLoop]bool
	wake  chan struct{} // capacity 1: there is a connection
}

// join adds an open connection of a background transfer.
func (c *crossTraffic) join(l *connLoop) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[l] = true
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// leave removes a connection, if it had joined.
func (c *crossTraffic) leave(l *connLoop) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, l)
}

// crossLink is the state of a link in serve.
type crossLink struct {
	all    estimate.Counters
	conns  map[*connLoop]estimate.Counters
	others estimate.Others
	told   map[*run]int64
}

// serve reads the counters of background transfers' links until ctx ends.
func (c *crossTraffic) serve(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	links := map[int8]*crossLink{}
	for {
		wait := time.Hour
		if conns := c.present(); len(conns) > 0 {
			c.look(time.Now(), links, conns)
			wait = crossEvery
		} else {
			clear(links)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-timer.C:
		}
	}
}

// present returns the connections by link.
func (c *crossTraffic) present() map[int8][]*connLoop {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := map[int8][]*connLoop{}
	for l := range c.conns {
		by[l.link] = append(by[l.link], l)
	}
	return by
}

// look reads all counters and reports changes to the transfers. It reports nothing about a link without counters.
func (c *crossTraffic) look(now time.Time, links map[int8]*crossLink, by map[int8][]*connLoop) {
	for i := range links {
		if by[i] == nil {
			delete(links, i)
		}
	}
	for i, conns := range by {
		all, ok := c.received(i)
		if !ok {
			delete(links, i)
			continue
		}
		l := links[i]
		if l == nil {
			l = &crossLink{told: map[*run]int64{}}
			links[i] = l
		}
		l.look(now, estimate.Counters(all), conns)
		n := l.others.PerSecond(now)
		told := map[*run]int64{}
		for _, conn := range conns {
			if before, ok := l.told[conn.r]; n != before && (ok || n >= 0) {
				conn.r.mailbox.post(transfer.Event{Kind: transfer.CrossTraffic, Link: i, N: n})
			}
			told[conn.r], l.told[conn.r] = n, n
		}
		l.told = told
	}
}

// look handles the counters of a link and its connections. Bytes that arrived while a connection was made or closed are
// not counted as other traffic.
func (l *crossLink) look(now time.Time, all estimate.Counters, conns []*connLoop) {
	sums := make(map[*connLoop]estimate.Counters, len(conns))
	var known estimate.Counters
	same := len(conns) == len(l.conns)
	for _, c := range conns {
		n, ok := c.received()
		if !ok {
			same = false
			continue
		}
		before, ok := l.conns[c]
		same = same && ok
		known = known.Plus(estimate.Counters(n).Minus(before))
		sums[c] = estimate.Counters(n)
	}
	if same {
		l.others.Count(now, all.Minus(l.all), known)
	}
	l.all, l.conns = all, sums
}
