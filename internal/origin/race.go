package origin

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/fault"
	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/opening"
)

// raceDelay is how long a link may take to connect before the next one joins in (RFC 8305 section 5). Behind a link that loses
// packets a request is late by this delay, not by the time for a dial.
const raceDelay = 250 * time.Millisecond

// settledDelay is the same for the link that a session is on, since changing it may end a login. The kernel repeats a lost SYN
// after a second; that copy may still arrive.
const settledDelay = 1500 * time.Millisecond

// worksDelay is the same if that link has carried something lately: it loses packets, but is not dead. The kernel repeats a SYN that
// was lost twice after three seconds.
const worksDelay = 3500 * time.Millisecond

// lostFor is how long a link that another one overtook is asked after the others.
const lostFor = 10 * time.Second

// contender is one link's part in a race.
type contender struct {
	i    int
	conn net.Conn
	info link.Info
	err  error
}

// Dialed is a connection that was made over the first link that could.
type Dialed struct {
	net.Conn
	Link link.Link
	Info link.Info
}

// race is round, again whenever a connection has closed where a host had as many as it may have, until waitForLink is over.
func (p *PassThrough) race(ctx context.Context, links []link.Link, addr string, first time.Duration) (Dialed, error) {
	var over <-chan time.Time
	for {
		d, full, err := p.round(ctx, links, addr, first)
		if err == nil || len(full) == 0 {
			return d, err
		}
		if over == nil {
			t := time.NewTimer(p.waitForLink)
			defer t.Stop()
			over = t.C
		}
		freed, cancel := anyFreed(ctx, full)
		select {
		case <-over:
			cancel()
			return Dialed{}, &engine.AttemptError{Op: "dial", Link: full[0].Link, Outcome: fault.NoSlot, Err: full[0]}
		case <-freed:
			cancel()
			if ctx.Err() != nil {
				return Dialed{}, ctx.Err()
			}
		}
	}
}

// anyFreed returns a channel that is closed when one of the connections that are waited for has closed, or ctx has ended.
func anyFreed(ctx context.Context, full []*link.NoSlotError) (<-chan struct{}, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	for _, e := range full {
		go func() {
			select {
			case <-e.Freed:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx.Done(), cancel
}

// round connects to addr over the links in turn: the second one starts after the time first, the others after raceDelay, or at
// once when another has failed. The first connection wins; the others are closed before a byte is sent on them, and are gone
// when round returns. An address that is denied ends the race, for it is denied over all links. Otherwise the error is that of
// the best link, or engine.ErrNoLink. full are the links over which the host has reached its limit of connections.
func (p *PassThrough) round(ctx context.Context, links []link.Link, addr string, first time.Duration) (
	d Dialed, full []*link.NoSlotError, err error,
) {
	if len(links) == 0 {
		return Dialed{}, nil, engine.ErrNoLink
	}
	inner, cancel := context.WithCancel(ctx)
	contenders := make(chan contender)
	running, started := 0, 0
	defer func() {
		cancel()
		for ; running > 0; running-- {
			if l := <-contenders; l.err == nil {
				l.conn.Close()
			}
		}
	}()
	timer := time.NewTimer(first)
	defer timer.Stop()
	next := func() {
		if i := started; i < len(links) {
			started++
			running++
			if i > 0 {
				timer.Reset(raceDelay)
			}
			go func() {
				nc, info, err := links[i].Dial(inner, "tcp", addr)
				contenders <- contender{i, nc, info, err}
			}()
		}
	}
	errs := make([]error, len(links))
	for next(); running > 0; {
		select {
		case <-timer.C:
			next()
		case l := <-contenders:
			running--
			switch {
			case l.err == nil:
				p.overtaken(links[:l.i], errs)
				return Dialed{l.conn, links[l.i], l.info}, nil, nil
			case errors.Is(l.err, link.ErrDenied), ctx.Err() != nil:
				return Dialed{}, nil, dialError(links[l.i], l.err)
			}
			if e, ok := errors.AsType[*link.NoSlotError](l.err); ok {
				full = append(full, e)
			}
			errs[l.i] = dialError(links[l.i], l.err)
			next()
		}
	}
	for _, err := range errs {
		if !errors.Is(err, link.ErrOffLink) { // says the most: an address of another link's network never had a chance
			return Dialed{}, full, err
		}
	}
	return Dialed{}, full, errs[0]
}

// overtaken records the links that started earlier than the winner and have not connected yet: their packets may get lost, and
// the next request should not wait for that.
func (p *PassThrough) overtaken(earlier []link.Link, errs []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, l := range earlier {
		if errs[i] == nil {
			p.lost[l.Name] = time.Now()
		}
	}
}

// order returns the links in the order in which they may start unless a Placer decides otherwise: best first, those lately
// overtaken after the others, metered ones last of all.
func (p *PassThrough) order(ctx context.Context) []link.Link {
	links := slices.Clone(p.links())
	if FlowOf(ctx).Unmetered {
		links = slices.DeleteFunc(links, func(l link.Link) bool { return l.Metered })
	}
	place := func(l link.Link) int {
		switch {
		case l.Last():
			return 2
		case p.isLost(l.Name):
			return 1
		}
		return 0
	}
	slices.SortStableFunc(links, func(a, b link.Link) int { return place(a) - place(b) })
	return links
}

// isLost reports whether another link has lately overtaken the named one.
func (p *PassThrough) isLost(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, lost := p.lost[name]
	return lost && time.Since(at) < lostFor
}

// orderFor is order for a request. If it shows credentials, only trusted links see them, or one link if none is trusted.
func (p *PassThrough) orderFor(r *http.Request) []link.Link {
	links := p.order(r.Context())
	if !opening.Exposes(r.URL.Scheme, r.Header) {
		return links
	}
	trusted := slices.DeleteFunc(slices.Clone(links), func(l link.Link) bool { return l.Untrusted })
	if len(trusted) == 0 {
		return links[:min(1, len(links))]
	}
	return trusted
}

// errNoIdle says that no connection is kept that a request could use.
var errNoIdle = errors.New("no idle connection")

// connKey is where the context of a request holds how its transport gets a connection: by *handed, or by idleOnly.
type connKey struct{}

// idleOnly makes the transport use a connection that it keeps, or fail with errNoIdle.
type idleOnly struct{}

// handed is a connection for the transport to use in place of dialing.
type handed struct {
	mu   sync.Mutex
	conn net.Conn // nil = taken
}

func (h *handed) take() net.Conn {
	h.mu.Lock()
	defer h.mu.Unlock()
	nc := h.conn
	h.conn = nil
	return nc
}
