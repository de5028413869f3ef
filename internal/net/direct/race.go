package direct

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
)

// raceDelay is how long a link may take to connect before the next one starts (RFC 8305 section 5). If the first link
// loses packets, a request is late by this delay, not by a dial timeout.
const raceDelay = 250 * time.Millisecond

// settledDelay replaces raceDelay for the link of a session, since changing it may end a login. The kernel repeats a
// lost SYN after a second; that copy may still arrive.
const settledDelay = 1500 * time.Millisecond

// worksDelay replaces settledDelay if the link carried something recently: it loses packets, but is not dead. The
// kernel repeats a SYN that was lost twice after three seconds.
const worksDelay = 3500 * time.Millisecond

// lostFor is how long a link starts after the others once another one overtook it.
const lostFor = 10 * time.Second

// contender is one link's part in a race.
type contender struct {
	i    int
	conn net.Conn
	info link.Info
	err  error
}

// race runs round. If the host has reached its limit of connections, race runs it again whenever one of them closes,
// until waitForLink has passed.
func (p *PassThrough) race(ctx context.Context, links []link.Link, addr string,
	first time.Duration,
) (origin.Dialed, error) {
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
			return origin.Dialed{}, &engine.AttemptError{
				Op: "dial", Link: full[0].Link, Outcome: fault.NoSlot, Err: full[0],
			}
		case <-freed:
			cancel()
			if ctx.Err() != nil {
				return origin.Dialed{}, ctx.Err()
			}
		}
	}
}

// anyFreed returns a channel that is closed when one of the awaited connections closes or ctx ends.
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

// round connects to addr over the links in turn: the second one starts after the time first, the others after
// raceDelay, or at once when another one fails. The first connection wins; the others are closed before a byte is sent
// on them, and are gone when round returns. A denied address ends the race, because it is denied over all links.
// Otherwise the error is that of the best link, or engine.ErrNoLink. full lists the links over which the host has
// reached its limit of connections.
func (p *PassThrough) round(ctx context.Context, links []link.Link, addr string, first time.Duration) (
	d origin.Dialed, full []*link.NoSlotError, err error,
) {
	if len(links) == 0 {
		return origin.Dialed{}, nil, engine.ErrNoLink
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
				return origin.Dialed{Conn: l.conn, Link: links[l.i], Info: l.info}, nil, nil
			case errors.Is(l.err, link.ErrDenied), ctx.Err() != nil:
				return origin.Dialed{}, nil, origin.DialError(links[l.i], l.err)
			}
			if e, ok := errors.AsType[*link.NoSlotError](l.err); ok {
				full = append(full, e)
			}
			errs[l.i] = origin.DialError(links[l.i], l.err)
			next()
		}
	}
	for _, err := range errs {
		if !errors.Is(err, link.ErrOffLink) { // says the most: a link cannot reach an address in another link's network
			return origin.Dialed{}, full, err
		}
	}
	return origin.Dialed{}, full, errs[0]
}

// overtaken records the links that started before the winner and are still connecting: they may be losing packets, and
// the next request should not wait for them.
func (p *PassThrough) overtaken(earlier []link.Link, errs []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, l := range earlier {
		if errs[i] == nil {
			p.lost[l.Name] = time.Now()
		}
	}
}

// order returns the links that ctx permits, in the order in which they start unless a Placer decides otherwise.
func (p *PassThrough) order(ctx context.Context) []link.Link {
	o := engine.OptionsOf(ctx)
	return link.Permitted(o.Request(), p.links(), p.isLost)
}

// Overtaken notes that the named link was overtaken.
func (p *PassThrough) Overtaken(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost[name] = time.Now()
}

// isLost reports whether another link recently overtook the named one.
func (p *PassThrough) isLost(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, lost := p.lost[name]
	return lost && time.Since(at) < lostFor
}

// orderFor is order for a request, which may expose credentials.
func (p *PassThrough) orderFor(r *http.Request) []link.Link {
	o := engine.OptionsOf(r.Context())
	may := o.Request()
	may.Exposes = may.Exposes || opening.Exposes(r.URL.Scheme, r.Header)
	return link.Permitted(may, p.links(), p.isLost)
}

// Untrusted reports whether some links must not see credentials.
func (p *PassThrough) Untrusted() bool {
	return slices.ContainsFunc(p.links(), func(l link.Link) bool { return l.Terms.Untrusted })
}

// errNoIdle means that no idle connection can carry a request.
var errNoIdle = errors.New("no idle connection")

// connKey is the context key for how the transport of a request gets a connection: by *handed or by idleOnly.
type connKey struct{}

// idleOnly makes the transport use an idle connection, or fail with errNoIdle.
type idleOnly struct{}

// handed is a connection that the transport uses instead of dialing.
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
