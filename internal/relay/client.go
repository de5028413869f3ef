package relay

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/lanes"
	"github.com/tributary-http/tributary/internal/link"
)

const (
	dialTime = 10 * time.Second // for a lane, handshakes included
	// A link over which no lane could be made is tried again after that, doubled each time.
	firstRetry, lastRetry = time.Second, time.Minute
	// keepSession is how long a session without lanes is kept.
	keepSession = 90 * time.Second
)

// ErrAway says that no lane to the relay works.
var ErrAway = errors.New("the relay is not connected")

// Client keeps lanes to one relay. Make it with NewClient; Run must be running.
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
	at      map[string]*place // by name of the link
	over    bool
}

// visit is a session with what the server must be told of it.
type visit struct {
	*session
	id     [idSize]byte
	secret [secretSize]byte
	joined bool    // the server knows it
	epoch  [8]byte // by which the server knows it
	lanes  uint32  // numbers given
	alone  time.Time
}

// place is what there is on a link.
type place struct {
	link    link.Link
	lane    uint32 // 0 = none
	dialing bool
	retry   time.Time
	pause   time.Duration
	failure error // of the last attempt to make a lane; nil = there is one
}

// ErrRefused says that the relay did not accept an invitation.
var ErrRefused = errors.New("the relay did not accept the invitation: it may have been used or be older than a quarter of an hour")

// Enrol makes this client known to the relay that has sent an invitation, and keeps the keys in the state file. Errors are those of
// the connection, [ErrWrongKey], [ErrRefused], and those of the file.
func Enrol(ctx context.Context, path string, i Invitation) error {
	return EnrolOver(ctx, path, i, new(net.Dialer).DialContext)
}

// EnrolOver is Enrol over a connection that dial makes.
func EnrolOver(ctx context.Context, path string, i Invitation, dial func(ctx context.Context, network, addr string) (net.Conn, error)) error {
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

// NewClient returns a Client of the relay at an address that it was paired with. budget bounds what all its streams may hold,
// in bytes.
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
	return &Client{address: address, tls: cfg, log: log, budget: budget, wake: make(chan struct{}, 1), at: map[string]*place{}}, nil
}

// SetLinks says which links there are. Metered ones carry lanes only if there are no others.
func (c *Client) SetLinks(all []link.Link) {
	c.mu.Lock()
	c.links = link.Affordable(all)
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

// reconcile makes lanes where there are none, and returns when to look again, 0 if only something new can change anything.
func (c *Client) reconcile(ctx context.Context, dials *sync.WaitGroup) (next time.Duration) {
	now := time.Now()
	soon := func(d time.Duration) {
		if d = max(d, 10*time.Millisecond); next == 0 || d < next {
			next = d
		}
	}
	v := c.visit(now)
	late := map[uint32]bool{}
	for _, id := range v.late() {
		late[id] = true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	exists := map[string]bool{}
	for _, l := range c.links {
		exists[l.Name] = true
		p := c.at[l.Name]
		if p == nil || !p.link.Equal(l) { // addresses have changed: what was dialed may be dead
			if p != nil && p.lane != 0 {
				lane := p.lane // removed beside this: it takes the lock
				dials.Go(func() { v.remove(lane) })
			}
			p = &place{link: l}
			c.at[l.Name] = p
		}
		switch {
		case p.dialing, p.lane != 0 && !late[p.lane]:
			continue
		case now.Before(p.retry):
			soon(p.retry.Sub(now))
			continue
		}
		p.dialing = true
		v.lanes++
		id, old := v.lanes, p.lane
		dials.Go(func() { c.lane(ctx, v, p, id, old) })
	}
	for name, p := range c.at {
		if !exists[name] {
			delete(c.at, name)
			if lane := p.lane; lane != 0 {
				dials.Go(func() { v.remove(lane) })
			}
		}
	}
	if len(late) > 0 || v.count() == 0 {
		soon(time.Second)
	}
	return next
}

// visit returns the session, a new one if there is none or it has ended.
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
	v = &visit{session: newSession(lanes.Config{Client: true, Budget: c.budget, MaxStreams: maxStreams})}
	rand.Read(v.id[:])
	rand.Read(v.secret[:])
	v.silent = func() { signal(c.wake) }
	v.refused = func(e *ResetError) { c.refused.Store(&refusal{e, time.Now().Add(e.lasts())}) }
	c.refused.Store(nil)
	v.gone = func(id uint32) {
		c.mu.Lock()
		for _, p := range c.at {
			if p.lane == id && c.current == v {
				p.lane = 0
			}
		}
		c.mu.Unlock()
		signal(c.wake)
	}
	c.mu.Lock()
	c.current = v
	for _, p := range c.at {
		p.lane = 0
	}
	c.mu.Unlock()
	return v
}

// lane makes a lane over a link, in place of an old one that is silent.
func (c *Client) lane(ctx context.Context, v *visit, p *place, id, old uint32) {
	conn, raw, err := c.dial(ctx, v, p.link, id)
	if err == nil {
		if err = v.add(id, conn, raw); err != nil {
			raw.Close()
		}
	}
	c.mu.Lock()
	p.dialing = false
	if err != nil {
		p.pause = min(max(2*p.pause, firstRetry), lastRetry)
		if old != 0 { // the link carries something that would otherwise wait
			p.pause = firstRetry
		}
		p.retry = time.Now().Add(p.pause)
	} else {
		p.lane, p.pause, p.retry = id, 0, time.Time{}
	}
	p.failure = err
	stale := c.current != v || c.at[p.link.Name] != p
	c.mu.Unlock()
	if err == nil {
		c.log.Debug("relay lane made", "link", p.link.Name)
		if old != 0 {
			v.remove(old)
		}
		if stale {
			v.remove(id)
		}
	} else {
		c.log.Debug("no relay lane over this link", "link", p.link.Name, "error", err)
	}
	signal(c.wake)
}

var (
	errRestarted = errors.New("the relay has forgotten the session")
	errFull      = errors.New("the relay takes no more connections")
)

// dial connects to the relay over a link and says hello. raw is the connection beneath conn.
func (c *Client) dial(ctx context.Context, v *visit, l link.Link, id uint32) (conn, raw net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	dialed, _, err := l.Dial(ctx, "tcp", c.address)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			dialed.Close()
		}
	}()
	defer context.AfterFunc(ctx, func() { dialed.Close() })()
	t := tls.Client(dialed, c.tls)
	if err := t.HandshakeContext(ctx); err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	joined := v.joined
	c.mu.Unlock()
	hello := make([]byte, 0, helloSize)
	if joined {
		hello = append(hello, helloJoin)
	} else {
		hello = append(hello, helloNew)
	}
	hello = append(append(hello, v.id[:]...), v.secret[:]...)
	hello = binary.BigEndian.AppendUint32(hello, id)
	mac, err := proof(t.ConnectionState(), v.secret[:], hello)
	if err != nil {
		return nil, nil, err
	}
	if _, err := t.Write(append(hello, mac...)); err != nil {
		return nil, nil, err
	}
	var reply [replySize]byte
	if _, err := io.ReadFull(t, reply[:]); err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	epoch := [8]byte(reply[1:])
	known := reply[0] == replyOK && (!v.joined || v.epoch == epoch)
	if known {
		v.joined, v.epoch = true, epoch
	}
	c.mu.Unlock()
	switch {
	case known:
		return t, dialed, ctx.Err()
	case reply[0] == full:
		return nil, nil, errFull
	}
	v.end(errRestarted)
	return nil, nil, errRestarted
}

// refusal is what the relay said of one stream that holds for others, too.
type refusal struct {
	reason *ResetError
	until  time.Time
}

// refusal returns why the relay takes no streams now, nil if it does as far as is known.
func (c *Client) refusal(now time.Time) error {
	if r := c.refused.Load(); r != nil && now.Before(r.until) {
		return r.reason
	}
	return nil
}

// Dial connects to "host:port" through the relay. It fails at once with ErrAway if there is no lane, and with a [ResetError] if the relay
// has just said that it takes no streams.
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
			return nil, err
		case open:
			signal(stream.readable) // data may have come
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

// works reports whether it has a lane, and the relay does not end.
func (c *Client) works(now time.Time) bool {
	c.mu.Lock()
	v := c.current
	c.mu.Unlock()
	return v != nil && v.count() > 0 && !c.drains(now)
}

// drains reports whether the relay has said that it takes no streams since it ends.
func (c *Client) drains(now time.Time) bool {
	r, ok := errors.AsType[*ResetError](c.refusal(now))
	return ok && r.Cause == lanes.CauseDraining
}
