package relay

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"

	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/link"
)

// Pairings is the End of all relays that are currently paired, whatever the settings say. Run must be running.
type Pairings struct {
	path    string
	budget  int64
	log     *slog.Logger
	pays    func() bool
	changed chan struct{} // capacity 1: current has changed

	mu      sync.Mutex
	current End // nil = none is paired
	links   []link.Link
}

// OpenPairings returns the Pairings that the file at path describes. Lanes use metered links beside others while pays
// reports that some client may use them.
func OpenPairings(path string, budget int64, log *slog.Logger, pays func() bool) (*Pairings, error) {
	p := &Pairings{
		path:    path,
		budget:  budget,
		log:     log,
		pays:    pays,
		changed: make(chan struct{}, 1),
	}
	return p, p.load()
}

// Any reports whether a relay is paired.
func (p *Pairings) Any() bool { return p.now() != nil }

// now returns the client; nil = none is paired.
func (p *Pairings) now() End {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

// load reads which relays are paired.
func (p *Pairings) load() error {
	addresses, err := Paired(p.path)
	if err != nil {
		return err
	}
	var next End
	if len(addresses) > 0 {
		if next, err = Open(p.path, addresses, p.budget, p.log); err != nil {
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

// SetLinks implements End.
func (p *Pairings) SetLinks(all []link.Link) {
	all = link.Permitted(policy.Request{Unmetered: !p.pays()}, all, nil)
	for i := range all {
		all[i].Terms.Metered = false // the app asks those who may use them, see pays
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links = all
	if p.current != nil {
		p.current.SetLinks(all)
	}
}

// Dial implements End.
func (p *Pairings) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if c := p.now(); c != nil {
		return c.Dial(ctx, addr)
	}
	return nil, ErrAway
}

// Run implements End. Tunnels through a relay end when it is forgotten.
func (p *Pairings) Run(ctx context.Context) {
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

// Status implements End.
func (p *Pairings) Status() Status {
	if c := p.now(); c != nil {
		return c.Status()
	}
	return Status{Lanes: []LaneStatus{}}
}

// ErrNotSaved means that the record of the known relays could not be read or written.
var ErrNotSaved = errors.New("the file with the keys of relays cannot be read or written")

// Pair adds the relay of an invitation, uses it from now on, and returns its address. It connects by dial. Errors are
// [ErrNotInvitation], those of dial, [ErrWrongKey], [ErrRefused] and [ErrNotSaved]. None of them contains the
// invitation.
func (p *Pairings) Pair(ctx context.Context, invitation string,
	dial func(ctx context.Context, addr string) (net.Conn, error),
) (address string, err error) {
	i, err := ParseInvitation(invitation)
	if err != nil {
		return "", err
	}
	if _, err := Paired(p.path); err != nil { // before the invitation is used up
		return "", errors.Join(ErrNotSaved, err)
	}
	connected := false
	err = EnrolOver(ctx, p.path, i, func(ctx context.Context, _, addr string) (net.Conn, error) {
		c, err := dial(ctx, addr)
		connected = err == nil
		return c, err
	})
	switch {
	case err == nil:
	case !connected, errors.Is(err, ErrWrongKey), errors.Is(err, ErrRefused):
		return "", err
	case isNet(err):
		return "", err
	default:
		return "", errors.Join(ErrNotSaved, err)
	}
	if err := p.load(); err != nil {
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
func (p *Pairings) Forget(address string) error {
	if err := Forget(p.path, address); err != nil {
		return errors.Join(ErrNotSaved, err)
	}
	if err := p.load(); err != nil {
		return errors.Join(ErrNotSaved, err)
	}
	return nil
}
