package relay

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/core/lanes"
	"github.com/tributary-http/tributary/internal/core/parallel"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/link"
)

const (
	dialTime = 10 * time.Second // limit for making a lane, handshakes included
	// A link over which no lane could be made is tried again after firstRetry; the pause doubles each time, up to
	// lastRetry.
	firstRetry, lastRetry = time.Second, time.Minute
	// mostLanes is the largest number of lanes on a link.
	mostLanes = parallel.Most
	// keepSession is how long a session without lanes is kept.
	keepSession = 90 * time.Second
)

// ErrAway means that no lane to the relay works.
var ErrAway = errors.New("the relay is not connected")

// Client keeps lanes to one relay. Create it with NewClient; Run must be running.
type Client struct {
	address string
	tls     *tls.Config
	log     *slog.Logger
	budget  int64
	wake    chan struct{}
	refused atomic.Pointer[refusal] // nil = none

	mu      sync.Mutex
	links   []link.Link
	current *visit
	at      map[string]*place        // by link name
	conns   *lanes.Connections       // how many lanes each link gets
	carried map[string]*atomic.Int64 // by link name: bytes of its lanes since the start, both directions
	over    bool
	failed  int64 // tunnels that the relay did not carry
	failure error // reason of the last of them
}

// visit is a session with the data that the server must be told.
type visit struct {
	*session
	id     [idSize]byte
	secret [secretSize]byte
	joined bool    // the server knows the session
	epoch  [8]byte // epoch of the server that knows the session
	lanes  uint32  // numbers assigned so far
	alone  time.Time
}

// place is the state of a link.
type place struct {
	link    link.Link
	lanes   []uint32 // oldest first
	dialing bool     // a lane is being made; one at a time
	retry   time.Time
	pause   time.Duration
	failure error // error of the last attempt to make a lane; nil = it succeeded
}

// drop forgets a lane.
func (p *place) drop(id uint32) {
	if i := slices.Index(p.lanes, id); i >= 0 {
		p.lanes = slices.Delete(p.lanes, i, i+1)
	}
}

// late returns a lane of the link that is in all, the lanes that have been silent for too long, 0 if there is none.
func (p *place) late(all []uint32) uint32 {
	for _, id := range p.lanes {
		if slices.Contains(all, id) {
			return id
		}
	}
	return 0
}

// ErrRefused means that the relay did not accept an invitation.
var ErrRefused = errors.New("the relay did not accept the invitation: it may have been used or be older than a quarter of an hour")

// Enrol makes this client known to the relay that issued an invitation, and keeps the keys in the state file. Errors
// are those of the connection, [ErrWrongKey], [ErrRefused], and those of the file.
func Enrol(ctx context.Context, path string, i Invitation) error {
	return EnrolOver(ctx, path, i, new(net.Dialer).DialContext)
}

// EnrolOver is like Enrol, over a connection made by dial.
func EnrolOver(ctx context.Context, path string, i Invitation,
	dial func(ctx context.Context, network, addr string) (net.Conn, error),
) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	cfg, err := key.config(pinned(i.Server))
	if err != nil {
		return err
	}
	cfg.NextProtos = []string{enrolProtocol}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	raw, err := dial(ctx, "tcp", i.Address)
	if err != nil {
		return fmt.Errorf("connect to the relay: %w", err)
	}
	defer raw.Close()
	defer context.AfterFunc(ctx, func() { raw.Close() })()
	c := tls.Client(raw, cfg)
	if err := c.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("connect to the relay: %w", err)
	}
	var reply [1]byte
	if _, err = c.Write(i.token); err == nil {
		_, err = io.ReadFull(c, reply[:])
	}
	if err != nil {
		return ErrRefused
	}
	_, err = change(path, func(s *clientState) error {
		if s.Relays == nil {
			s.Relays = map[string]pairing{}
		}
		s.Relays[i.Address] = pairing{Server: i.Server, Key: key}
		return nil
	})
	return err
}

func pinned(server KeyID) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if peerOf(s) != server {
			return ErrWrongKey
		}
		return nil
	}
}

// NewClient returns a Client of the relay at an address that it was paired with. budget bounds the memory of all its
// streams, in bytes.
func NewClient(path, address string, budget int64, log *slog.Logger) (*Client, error) {
	var s clientState
	if err := load(path, &s); err != nil {
		return nil, err
	}
	p, ok := s.Relays[address]
	if !ok {
		return nil, fmt.Errorf("the relay %s was never paired: run  tributary relay join LINK  with the link that  tributary relay pair  prints on the server", address)
	}
	cfg, err := p.Key.config(pinned(p.Server))
	if err != nil {
		return nil, err
	}
	cfg.NextProtos = []string{laneProtocol}
	return &Client{
		address: address,
		tls:     cfg,
		log:     log,
		budget:  budget,
		wake:    make(chan struct{}, 1),
		at:      map[string]*place{},
		conns:   lanes.NewConnections(mostLanes),
		carried: map[string]*atomic.Int64{},
	}, nil
}

// SetLinks sets the current links. Metered links carry lanes only if there are no others.
func (c *Client) SetLinks(all []link.Link) {
	c.mu.Lock()
	c.links = link.Permitted(policy.Request{Shared: true}, all, nil)
	c.mu.Unlock()
	signal(c.wake)
}

// Run keeps a lane on each link until ctx ends.
func (c *Client) Run(ctx context.Context) {
	var dials sync.WaitGroup
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-c.wake:
		}
		if next := c.reconcile(ctx, &dials); next > 0 {
			timer.Reset(next)
		}
	}
	dials.Wait()
	c.mu.Lock()
	c.over = true
	v := c.current
	c.current = nil
	c.mu.Unlock()
	if v != nil {
		v.end(ErrAway)
		v.wait()
	}
}

// reconcile makes lanes where they are missing, and returns when to look again, 0 if only an event can change anything.
func (c *Client) reconcile(ctx context.Context, dials *sync.WaitGroup) (next time.Duration) {
	now := time.Now()
	soon := func(d time.Duration) {
		if d = max(d, 10*time.Millisecond); next == 0 || d < next {
			next = d
		}
	}
	v := c.visit(now)
	late := v.late()
	idle := v.openStreams() == 0
	c.mu.Lock()
	defer c.mu.Unlock()
	exists := map[string]bool{}
	for _, l := range c.links {
		exists[l.Name] = true
		p := c.at[l.Name]
		if p == nil || !p.link.Equal(l) { // addresses have changed: its connections may be dead
			if p != nil {
				c.leave(v, p, dials)
			}
			p = &place{link: l}
			c.at[l.Name] = p
		}
		old, wanted := p.late(late), min(c.conns.Wanted(l.Name), max(1, maxLanes/2/len(c.links)))
		if n := len(p.lanes); n > wanted && idle && old == 0 { // an extra lane did not pay off
			lane := p.lanes[n-1]
			dials.Go(func() { v.remove(lane) })
		}
		switch {
		case p.dialing, len(p.lanes) >= wanted && old == 0:
			continue
		case now.Before(p.retry):
			soon(p.retry.Sub(now))
			continue
		}
		p.dialing = true
		v.lanes++
		id := v.lanes
		dials.Go(func() { c.lane(ctx, v, p, id, old) })
	}
	for name, p := range c.at {
		if !exists[name] {
			delete(c.at, name)
			c.leave(v, p, dials)
		}
	}
	if len(late) > 0 || v.count() == 0 {
		soon(time.Second)
	}
	return next
}

// leave ends the lanes of a link. The lock is held.
func (c *Client) leave(v *visit, p *place, dials *sync.WaitGroup) {
	c.conns.Forget(p.link.Name)
	for _, lane := range p.lanes { // removed in a goroutine: remove takes the lock
		dials.Go(func() { v.remove(lane) })
	}
}

// sample checks whether links need more lanes.
func (c *Client) sample(v *visit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current != v {
		return
	}
	more := false
	now := time.Now()
	for name, p := range c.at {
		c.conns.Sample(now, name, v.receptions(p.lanes))
		more = more || len(p.lanes) > 0 && c.conns.Wanted(name) > len(p.lanes)
	}
	if more {
		signal(c.wake)
	}
}

// visit returns the session, or a new one if there is none or it has ended.
func (c *Client) visit(now time.Time) *visit {
	c.mu.Lock()
	v := c.current
	c.mu.Unlock()
	if v != nil {
		switch {
		case v.count() > 0:
			v.alone = time.Time{}
		case v.alone.IsZero():
			v.alone = now
		case now.Sub(v.alone) > keepSession:
			v.end(ErrAway)
		}
		select {
		case <-v.done:
			v.wait()
		default:
			return v
		}
	}
	v = &visit{session: newSession(lanes.Config{Client: true, Budget: holdable(c.budget), MaxStreams: maxStreams})}
	rand.Read(v.id[:])
	rand.Read(v.secret[:])
	v.silent = func() { signal(c.wake) }
	v.refused = func(e *ResetError) { c.refused.Store(&refusal{e, time.Now().Add(e.lasts())}) }
	c.refused.Store(nil)
	v.sample = func() { c.sample(v) }
	v.gone = func(id uint32) {
		c.mu.Lock()
		if c.current == v {
			for _, p := range c.at {
				p.drop(id)
			}
		}
		c.mu.Unlock()
		signal(c.wake)
	}
	c.mu.Lock()
	c.current = v
	for _, p := range c.at {
		p.lanes = nil
	}
	c.mu.Unlock()
	return v
}

// refusal is the relay's reason for refusing one stream that applies to others too.
type refusal struct {
	reason *ResetError
	until  time.Time
}

// refusal returns why the relay refuses streams now, nil if it is not known to refuse them.
func (c *Client) refusal(now time.Time) error {
	if r := c.refused.Load(); r != nil && now.Before(r.until) {
		return r.reason
	}
	return nil
}

// Dial connects to "host:port" through the relay. It fails at once with ErrAway if there is no lane, and with a
// [ResetError] if the relay recently reported that it refuses streams.
func (c *Client) Dial(ctx context.Context, addr string) (net.Conn, error) {
	c.mu.Lock()
	v := c.current
	c.mu.Unlock()
	if v == nil || v.count() == 0 {
		return nil, ErrAway
	}
	if r := c.refusal(time.Now()); r != nil {
		return nil, r
	}
	stream, err := v.open(addr)
	if err != nil {
		return nil, err
	}
	for {
		open, err := stream.isOpen()
		switch {
		case err != nil:
			c.note(err)
			return nil, err
		case open:
			signal(stream.readable) // data may have arrived
			return stream, nil
		}
		select {
		case <-ctx.Done():
			stream.Close()
			return nil, ctx.Err()
		case <-stream.readable:
		case <-stream.broken:
		}
	}
}

// note records that the relay did not carry a tunnel.
func (c *Client) note(err error) {
	e, ok := errors.AsType[*ResetError](err)
	if !ok {
		return
	}
	c.mu.Lock()
	last := c.failure
	c.failed, c.failure = c.failed+1, e
	c.mu.Unlock()
	if last == nil || last.Error() != e.Error() {
		c.log.Info("the relay did not carry a tunnel, which uses one link", "reason", e)
	}
}

// works reports whether the client has a lane, and the relay is not about to stop.
func (c *Client) works(now time.Time) bool {
	c.mu.Lock()
	v := c.current
	c.mu.Unlock()
	return v != nil && v.count() > 0 && !c.drains(now)
}

// drains reports whether the relay has announced that it refuses streams because it is about to stop.
func (c *Client) drains(now time.Time) bool {
	r, ok := errors.AsType[*ResetError](c.refusal(now))
	return ok && r.Cause == lanes.CauseDraining
}
