package transport

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// pairedRelay is the second end for Config.Paired: a client of the relays that are currently paired. Run must be
// running.
type pairedRelay struct {
	t       *Transport
	state   string
	pays    func() bool
	changed chan struct{} // capacity 1: current has changed

	mu      sync.Mutex
	current secondEnd // nil = none is paired
	links   []link.Link
}

// now returns the client; nil = none is paired.
func (p *pairedRelay) now() secondEnd {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// load reads which relays are paired.
func (p *pairedRelay) load() error {
	addresses, err := relay.Paired(p.state)
	if err != nil {
		return err
	}
	var next secondEnd
	if len(addresses) > 0 {
		if next, err = p.t.newRelay(p.state, addresses); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.current = next
	if next != nil {
		next.SetLinks(p.links)
	}
	p.mu.Unlock()
	select {
	case p.changed <- struct{}{}:
	default:
	}
	return nil
}

// SetLinks implements secondEnd.
func (p *pairedRelay) SetLinks(all []link.Link) {
	all = link.Permitted(policy.Request{Unmetered: !p.pays()}, all, nil)
	for i := range all {
		all[i].Terms.Metered = false // see Config.Paired
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links = all
	if p.current != nil {
		p.current.SetLinks(all)
	}
}

// Dial implements secondEnd.
func (p *pairedRelay) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if c := p.now(); c != nil {
		return c.Dial(ctx, addr)
	}
	return nil, relay.ErrAway
}

// Run implements secondEnd. Tunnels through a relay end when it is forgotten.
func (p *pairedRelay) Run(ctx context.Context) {
	for ctx.Err() == nil {
		inner, stop := context.WithCancel(ctx)
		var runs sync.WaitGroup
		now := p.now()
		if now != nil {
			runs.Go(func() { now.Run(inner) })
		}
		for same := true; same; {
			select {
			case <-ctx.Done():
				same = false
			case <-p.changed:
				same = p.now() == now
			}
		}
		stop()
		runs.Wait()
	}
}

// Status implements secondEnd.
func (p *pairedRelay) Status() relay.Status {
	if c := p.now(); c != nil {
		return c.Status()
	}
	return relay.Status{Lanes: []relay.LaneStatus{}}
}

// ErrNotSaved means that the record of the known relays could not be read or written.
var ErrNotSaved = errors.New("the file with the keys of relays cannot be read or written")

// Pair adds the relay of an invitation, uses it from now on, and returns its address; only with Config.Paired. It
// connects over the first link that can. Errors are [relay.ErrNotInvitation], those of a dial, [relay.ErrWrongKey],
// [relay.ErrRefused] and ErrNotSaved. None of them contains the invitation.
func (t *Transport) Pair(ctx context.Context, invitation string) (address string, err error) {
	i, err := relay.ParseInvitation(invitation)
	if err != nil {
		return "", err
	}
	if _, err := relay.Paired(t.paired.state); err != nil { // before the invitation is used up
		return "", errors.Join(ErrNotSaved, err)
	}
	t.Await(ctx) // the program may have started only now
	connected := false
	err = relay.EnrolOver(ctx, t.paired.state, i, func(ctx context.Context, _, addr string) (net.Conn, error) {
		c, _, err := t.dialDirect(ctx, addr)
		connected = err == nil
		return c, err
	})
	switch {
	case err == nil:
	case !connected, errors.Is(err, relay.ErrWrongKey), errors.Is(err, relay.ErrRefused):
		return "", err
	case isNet(err):
		return "", err
	default:
		return "", errors.Join(ErrNotSaved, err)
	}
	if err := t.paired.load(); err != nil {
		return "", errors.Join(ErrNotSaved, err)
	}
	return i.Address, nil
}

// isNet reports whether an error comes from a connection.
func isNet(err error) bool {
	_, op := errors.AsType[*net.OpError](err)
	return op || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Forget ends the use of a relay that Pair added. Its error is ErrNotSaved.
func (t *Transport) Forget(address string) error {
	if err := relay.Forget(t.paired.state, address); err != nil {
		return errors.Join(ErrNotSaved, err)
	}
	if err := t.paired.load(); err != nil {
		return errors.Join(ErrNotSaved, err)
	}
	return nil
}
