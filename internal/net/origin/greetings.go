package origin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/net/link"
)

const (
	// falseFor is how long a link that showed a certificate that is not valid for a host comes last for this host.
	falseFor = 5 * time.Minute
	// smallFor is how long a host that answered only a small ClientHello gets small ones.
	smallFor = time.Hour
	// helloAnswer is how long a server may be silent after a large ClientHello.
	helloAnswer  = 3 * time.Second
	maxGreetings = 256
)

// errMute means that a server ended the connection, or said nothing, after a large ClientHello.
var errMute = errors.New("no answer to the TLS handshake")

// Greetings remembers how TLS handshakes with hosts went: over which links somebody else seemed to answer, and which
// hosts get no ClientHello that is larger than a packet. The zero value is ready, and nil remembers nothing. Safe for
// concurrent use.
//
// A captive portal, or a hostile network, answers for a host with a certificate that is not valid for it. That is the
// link's fault only if another link shows a valid one, so the link is not left out but comes last, and only for this
// host.
//
// Whoever can drop packets can cause a small ClientHello. It lacks only the key share against future quantum computers.
type Greetings struct {
	mu    sync.Mutex
	lied  map[face]time.Time
	small map[string]time.Time // until when, by address
}

// face is a host as a link shows it.
type face struct{ link, addr string }

// Lied reports whether a link recently showed a certificate that is not valid for the host at addr.
func (g *Greetings) Lied(link, addr string) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	at, ok := g.lied[face{link, addr}]
	return ok && time.Since(at) < falseFor
}

// Order moves links that lied about the host at addr to the end.
func (g *Greetings) Order(links []link.Link, addr string) []link.Link {
	if !slices.ContainsFunc(links, func(l link.Link) bool { return g.Lied(l.Name, addr) }) {
		return links
	}
	links = slices.Clone(links)
	slices.SortStableFunc(links, func(a, b link.Link) int {
		switch x, y := g.Lied(a.Name, addr), g.Lied(b.Name, addr); {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
	return links
}

// isSmall reports whether the host at addr gets a small ClientHello.
func (g *Greetings) isSmall(addr string) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.small[addr])
}

// note records the end of a handshake.
func (g *Greetings) note(link, addr string, small bool, err error) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lied == nil || len(g.lied) >= maxGreetings {
		g.lied = map[face]time.Time{}
	}
	if g.small == nil || len(g.small) >= maxGreetings {
		g.small = map[string]time.Time{}
	}
	switch {
	case Misled(err):
		g.lied[face{link, addr}] = time.Now()
	case err == nil:
		delete(g.lied, face{link, addr})
	}
	switch {
	case Mute(err):
		g.small[addr] = time.Now().Add(helloAnswer) // for the second try
	case small && err == nil:
		g.small[addr] = time.Now().Add(smallFor)
	case small:
		delete(g.small, addr)
	}
}

// Misled reports whether a handshake failed because the certificate is not valid: another link may lead to the host
// itself.
func Misled(err error) bool { return errors.As(err, new(*tls.CertificateVerificationError)) }

// Mute reports whether a handshake failed because nothing answered a large ClientHello: the next one is smaller.
func Mute(err error) bool { return errors.Is(err, errMute) }

// Handshake does the TLS handshake with the host at addr on a connection over a link. After errMute, a second try on
// another connection may succeed.
func (g *Greetings) Handshake(ctx context.Context, nc net.Conn, config *tls.Config, link,
	addr string,
) (*tls.Conn, error) {
	small := g.isSmall(addr)
	if small {
		config = config.Clone()
		config.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}
	}
	h := &heard{Conn: nc}
	c := tls.Client(h, config)
	settle := func() {}
	if !small && g != nil {
		settle = h.expect(helloAnswer)
	}
	err := c.HandshakeContext(ctx)
	settle()
	if err != nil && !small && g != nil && ctx.Err() == nil && !h.any.Load() {
		err = fmt.Errorf("%w: %w", errMute, err)
	}
	g.note(link, addr, small, err)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// heard is a connection that knows whether anything has arrived on it.
type heard struct {
	net.Conn
	any atomic.Bool
}

// NetConn returns the connection that it reads, as that of a tls.Conn does.
func (h *heard) NetConn() net.Conn { return h.Conn }

// expect ends the connection unless something arrives in time. The caller must call settle before anybody else uses the
// connection.
func (h *heard) expect(in time.Duration) (settle func()) {
	var mu sync.Mutex
	settled := false
	t := time.AfterFunc(in, func() {
		mu.Lock()
		defer mu.Unlock()
		if !settled && !h.any.Load() {
			_ = h.Close()
		}
	})
	return func() {
		t.Stop()
		mu.Lock()
		defer mu.Unlock()
		settled = true
	}
}

// Read implements io.Reader.
func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if n > 0 && !h.any.Load() {
		h.any.Store(true)
	}
	return n, err
}
