package relay

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/link"
)

const (
	lookEvery = time.Second
	// awayFor is how long a relay may be away before another one is looked for, doubled up to lastRetry while none
	// works.
	awayFor  = 3 * time.Second
	findTime = 3 * time.Second // limit for an answer from a relay
)

// Nearest is a client of several relays, which share nothing. It uses the relay that answers first, until that relay is
// away or about to stop; tunnels then start at another one, and those of the old one continue until they end. Create it
// with NewNearest; Run must be running.
type Nearest struct {
	addresses []string
	client    func(address string) (*Client, error)
	log       *slog.Logger
	wake      chan struct{}

	mu      sync.Mutex
	links   []link.Link
	running []*running // the last one takes new streams
}

// running is a client whose Run is running.
type running struct {
	*Client
	stop context.CancelFunc
}

// NewNearest returns a Nearest for relays that this client was paired with. budget applies to each relay, as in
// [NewClient].
func NewNearest(path string, addresses []string, budget int64, log *slog.Logger) (*Nearest, error) {
	client := func(address string) (*Client, error) { return NewClient(path, address, budget, log) }
	for _, a := range addresses {
		if _, err := client(a); err != nil {
			return nil, err
		}
	}
	return &Nearest{addresses: addresses, client: client, log: log, wake: make(chan struct{}, 1)}, nil
}

// SetLinks sets the current links.
func (n *Nearest) SetLinks(all []link.Link) {
	n.mu.Lock()
	n.links = all
	for _, r := range n.running {
		r.SetLinks(all)
	}
	n.mu.Unlock()
	signal(n.wake)
}

// Run keeps lanes to one relay until ctx ends.
func (n *Nearest) Run(ctx context.Context) {
	var runs sync.WaitGroup
	defer runs.Wait()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var next time.Time // when to look for another relay
	wait := awayFor
	for ctx.Err() == nil {
		now, c := time.Now(), n.current()
		works := c != nil && c.works(now)
		switch {
		case works:
			next, wait = time.Time{}, awayFor
		case next.IsZero() && c != nil && !c.drains(now):
			next = now.Add(wait)
		}
		if !works && !now.Before(next) {
			if address := n.find(ctx, c); address != "" {
				n.use(ctx, address, &runs)
			}
			next = time.Now().Add(wait)
			wait = min(2*wait, lastRetry)
		}
		n.retire()
		select {
		case <-ctx.Done():
		case <-look.C:
		case <-n.wake: // other links may reach a relay that these did not
			next, wait = time.Time{}, awayFor
		}
	}
}

// find returns the relay that first accepts a connection, over any link, "" if none does. not is a relay to leave out.
func (n *Nearest) find(ctx context.Context, not *running) (address string) {
	n.mu.Lock()
	links := link.Permitted(policy.Request{Shared: true}, n.links, nil)
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	answers, over := make(chan string), make(chan struct{})
	var dials sync.WaitGroup
	for _, a := range n.addresses {
		if not != nil && a == not.address {
			continue
		}
		for _, l := range links {
			dials.Go(func() {
				c, _, err := l.Dial(ctx, "tcp", a)
				if err != nil {
					return
				}
				c.Close()
				select {
				case answers <- a:
				case <-ctx.Done():
				}
			})
		}
	}
	go func() { dials.Wait(); close(over) }()
	select {
	case address = <-answers:
	case <-over:
	}
	cancel()
	<-over
	return address
}

// use makes new streams start at a relay.
func (n *Nearest) use(ctx context.Context, address string, runs *sync.WaitGroup) {
	c, err := n.client(address)
	if err != nil { // its keys were removed
		n.log.Warn("a relay cannot be used", "error", err)
		return
	}
	n.log.Info("using a relay", "address", address)
	ctx, stop := context.WithCancel(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	c.SetLinks(n.links)
	n.running = append(n.running, &running{c, stop})
	runs.Go(func() { c.Run(ctx) })
}

// retire ends the clients without streams, except the last one.
func (n *Nearest) retire() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.running) == 0 {
		return
	}
	last := len(n.running) - 1
	var kept []*running
	for _, r := range n.running[:last] {
		if r.Status().Streams > 0 {
			kept = append(kept, r)
		} else {
			r.stop()
		}
	}
	n.running = append(kept, n.running[last])
}

func (n *Nearest) current() *running {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.running) == 0 {
		return nil
	}
	return n.running[len(n.running)-1]
}

// Dial calls [Client.Dial] for the relay in use.
func (n *Nearest) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c := n.current()
	if c == nil {
		return nil, ErrAway
	}
	return c.Dial(ctx, addr)
}

// Status returns the state of the client of the relay in use, with the streams of all relays.
func (n *Nearest) Status() Status {
	n.mu.Lock()
	all := n.running
	n.mu.Unlock()
	if len(all) == 0 {
		return Status{Address: n.addresses[0], Lanes: []LaneStatus{}}
	}
	s := all[len(all)-1].Status()
	for _, r := range all[:len(all)-1] {
		s.Streams += r.Status().Streams
	}
	return s
}
