package origin

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
)

// Bounds of the idle connections of a Pool.
const (
	MaxIdlePerKey = 4  // per link and origin, as many as a transfer may use there
	MaxIdle       = 64 // in total
	maxPaces      = 256
	// IdleTimeout is short: most servers close between 5 and 75 s, and a connection that the server is about to close
	// costs the next transfer a round trip.
	IdleTimeout = 15 * time.Second
	// warmTimeout is shorter still: a transfer that waits for such a connection takes it at once.
	warmTimeout = 2 * time.Second
)

// Pool opens connections to origins and keeps those that transfers return. It implements engine.Opener.
type Pool struct {
	// Idle, if not nil, is called when an unused connection to addr over a link is kept. It must be set before use.
	Idle func(link, addr string)

	// Greetings, if not nil, remembers handshakes. It must be set before use.
	Greetings *Greetings

	tls    *tls.Config
	chunks sync.Pool // for HTTP/2

	mu     sync.Mutex
	paces  map[string]*pace // by host
	idle   []*idle          // in order of release
	coming map[key]*prepared
	closed bool
}

var _ engine.Opener = (*Pool)(nil)

// key identifies the requests that may use a connection.
type key struct {
	link, scheme, host, addr string
}

// idle is an unused connection. Its timer removes it from the pool and closes it.
type idle struct {
	*stream
	timer *time.Timer
}

// stream is a connection without the state of its current user.
type stream struct {
	key    key
	link   link.Link // as its current user has it
	socket net.Conn  // as dialed
	conn   net.Conn  // carries HTTP: socket, or TLS on it
	tail   *tail     // of TLS, otherwise nil
	wire   *wire
	br     *bufio.Reader
	h2     *session // HTTP/2 in place of wire and br, otherwise nil
	info   link.Info
}

// New returns a Pool. Certificates of https origins are verified against roots, nil for the system's.
func New(roots *x509.CertPool) *Pool {
	return &Pool{tls: &tls.Config{
		RootCAs:    roots,
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{http2.NextProtoTLS, "http/1.1"},
	}}
}

// Open implements engine.Opener. The TLS handshake, if any, is part of it.
func (p *Pool) Open(ctx context.Context, l link.Link, t engine.Target) (engine.Conn, error) {
	k := keyOf(l, t)
	if link.IsApart(ctx) {
		return p.apart(ctx, l, t)
	}
	if err := p.await(ctx, k); err != nil {
		return nil, DialError(l, err)
	}
	if s := p.take(l, k); s != nil {
		return p.hand(s, true), nil
	}
	if s := p.take(l, bare(l, t.Addr)); s != nil {
		if err := p.begin(ctx, s, k, p.tls); err == nil { // else the origin may have closed it meanwhile
			return p.hand(s, s.tail == nil), nil // the TLS handshake showed that it is open
		}
	}
	s, err := p.connect(ctx, l, t, p.tls)
	if err != nil {
		return nil, DialError(l, err)
	}
	return p.hand(s, false), nil
}

// apart opens a new connection for one response over HTTP/1.1, where the kernel's flow control alone pauses it.
func (p *Pool) apart(ctx context.Context, l link.Link, t engine.Target) (engine.Conn, error) {
	c := p.tls.Clone()
	c.NextProtos = []string{"http/1.1"}
	s, err := p.connect(ctx, l, t, c)
	if err != nil {
		return nil, DialError(l, err)
	}
	return p.hand(s, false), nil
}

// connect makes a connection that carries HTTP.
func (p *Pool) connect(ctx context.Context, l link.Link, t engine.Target, c *tls.Config) (*stream, error) {
	s, err := p.dial(ctx, l, t, c)
	if Mute(err) { // the host may answer a smaller ClientHello
		s, err = p.dial(ctx, l, t, c)
	}
	return s, err
}

func (p *Pool) dial(ctx context.Context, l link.Link, t engine.Target, c *tls.Config) (*stream, error) {
	nc, info, err := l.Dial(ctx, "tcp", t.Addr)
	if err != nil {
		return nil, err
	}
	s := &stream{link: l, socket: nc, conn: nc, info: info}
	if err := p.begin(ctx, s, keyOf(l, t), c); err != nil {
		return nil, err
	}
	return s, nil
}

// begin makes a bare connection carry HTTP, or closes it.
func (p *Pool) begin(ctx context.Context, s *stream, k key, c *tls.Config) error {
	s.key = k
	if k.scheme == "https" {
		err := s.secure(ctx, p.Greetings, c)
		if err == nil {
			err = s.negotiate(p)
		}
		if err != nil {
			s.socket.Close()
			return err
		}
	}
	if s.h2 == nil {
		s.wire = &wire{conn: s.conn}
		s.br = bufio.NewReaderSize(s.wire, bufferSize)
	}
	return nil
}

// paceOf returns the pace of a host, which records whether it tolerates HTTP/2 control frames.
func (p *Pool) paceOf(host string) *pace {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.paces[host]
	if known == nil {
		if known = new(pace); len(p.paces) >= maxPaces || p.paces == nil {
			p.paces = map[string]*pace{}
		}
		p.paces[host] = known
	}
	return known
}

func keyOf(l link.Link, t engine.Target) key { return key{l.Name, t.Scheme, t.Host, t.Addr} }

// bare is the key of a connection that carries nothing yet, not even TLS.
func bare(l link.Link, addr string) key { return key{link: l.Name, addr: addr} }

// Warm implements engine.Opener.
func (p *Pool) Warm(l link.Link, addr string, c net.Conn, i link.Info) {
	p.keep(&stream{
		key:    bare(l, addr),
		link:   l,
		socket: c,
		conn:   c,
		info:   i,
	}, warmTimeout)
}

// Dialed is a connection over a link.
type Dialed struct {
	net.Conn
	Link link.Link
	Info link.Info
	// Uncount says that the bytes are counted elsewhere from now on. It is set by package direct.
	Uncount func()
}

// Greet establishes a TLS connection to an origin and keeps it for the next transfer. It returns the protocol that the
// origin chose (ALPN), and whether the origin asked for a client certificate. If it did, the connection is closed, as
// after an error.
func (p *Pool) Greet(ctx context.Context, d Dialed, t engine.Target) (protocol string, asked bool, err error) {
	c := p.tls.Clone()
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		asked = true
		return &tls.Certificate{}, nil
	}
	s := &stream{link: d.Link, socket: d.Conn, conn: d.Conn, info: d.Info}
	if err := p.begin(ctx, s, keyOf(d.Link, t), c); err != nil {
		return "", asked, err
	}
	if asked {
		s.close()
		return "", true, nil
	}
	protocol = s.conn.(*tls.Conn).ConnectionState().NegotiatedProtocol
	p.keep(s, warmTimeout)
	return protocol, false, nil
}

// hand gives s to a new owner.
func (p *Pool) hand(s *stream, reused bool) engine.Conn {
	if s.h2 != nil {
		return newH2Conn(p, s, reused)
	}
	return newConn(p, s, reused)
}

func (s *stream) secure(ctx context.Context, g *Greetings, c *tls.Config) error {
	c = c.Clone()
	c.ServerName = (&url.URL{Host: s.key.host}).Hostname()
	s.tail = &tail{Conn: s.socket}
	tc, err := g.Handshake(ctx, s.tail, c, s.key.link, s.key.addr)
	if err == nil {
		s.conn = tc
	}
	return err
}

// usable reports whether a connection between two transfers may be kept: it is open and nothing has arrived on it. An
// HTTP/2 session reads by itself, so its state decides: it is neither closed nor going away.
func (s *stream) usable() bool {
	if s.h2 != nil {
		return s.h2.usable()
	}
	waits, err := waiting(s.socket)
	return !waits && err == nil
}

// close closes an unused connection. It does not block.
func (s *stream) close() {
	if s.h2 != nil {
		s.h2.close()
	} else {
		s.socket.Close()
	}
}

// DialError turns a failure to connect into an outcome for the link.
func DialError(l link.Link, err error) *engine.AttemptError {
	outcome := fault.Unreachable
	switch {
	case errors.As(err, new(*link.BindError)):
		outcome = fault.Unbound
	case errors.As(err, new(*link.NoSlotError)):
		outcome = fault.NoSlot
	case errors.Is(err, link.ErrDenied), errors.Is(err, link.ErrOffLink), errors.Is(err, link.ErrUpstreamRefused):
		outcome = fault.Denied
	}
	return &engine.AttemptError{Op: "dial", Link: l.Name, Outcome: outcome, Err: err}
}

// take returns the most recently released connection for k over l that is still good, or nil.
func (p *Pool) take(l link.Link, k key) *stream {
	for {
		p.mu.Lock()
		var found *idle
		for i, c := range slices.Backward(p.idle) {
			if c.key == k {
				found = c
				p.idle = slices.Delete(p.idle, i, i+1)
				break
			}
		}
		p.mu.Unlock()
		if found == nil {
			return nil
		}
		found.timer.Stop()
		if found.usable() && l.Revalidate(k.addr, found.socket) == nil {
			found.link = l
			return found.stream
		}
		found.close()
	}
}

// put keeps s for later transfers.
func (p *Pool) put(s *stream) { p.keep(s, IdleTimeout) }

// keep keeps s for at most the given time. If there are too many connections, it drops the one that was released first.
func (p *Pool) keep(s *stream, most time.Duration) {
	if p.Idle != nil {
		defer p.Idle(s.key.link, s.key.addr)
	}
	c := &idle{stream: s}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		s.close()
		return
	}
	same := 0
	for _, o := range p.idle {
		if o.key == s.key {
			same++
		}
	}
	if same >= MaxIdlePerKey {
		p.drop(func(o *idle) bool { return o.key == s.key }, 1)
	} else if len(p.idle) >= MaxIdle {
		p.drop(func(*idle) bool { return true }, 1)
	}
	c.timer = time.AfterFunc(most, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.drop(func(o *idle) bool { return o == c }, 1)
	})
	p.idle = append(p.idle, c)
}

// drop closes the first n connections that match. p.mu is held.
func (p *Pool) drop(match func(*idle) bool, n int) {
	p.idle = slices.DeleteFunc(p.idle, func(c *idle) bool {
		if n == 0 || !match(c) {
			return false
		}
		n--
		c.timer.Stop()
		c.close()
		return true
	})
}

// DropLink closes the idle connections of the named link. Call it when the link goes down or changes its addresses.
func (p *Pool) DropLink(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(func(c *idle) bool { return c.key.link == name }, MaxIdle)
}

// DropHost closes the idle connections to a host over the named link to make room for new ones.
func (p *Pool) DropHost(name, host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(func(c *idle) bool { return c.key.link == name && link.HostOf(c.key.addr) == host }, MaxIdle)
}

// Close closes the idle connections; those released later are closed at once.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.drop(func(*idle) bool { return true }, MaxIdle)
}
