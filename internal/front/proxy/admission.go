package proxy

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/front/admission"
	"github.com/tributary-http/tributary/internal/front/intercept"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// Limits on the connections of clients (R190). Each leaves room for the programs of one busy person, and keeps the
// process well below a limit of 4096 open files.
const (
	// maxClients limits the connections of one user; beyond it the answer is 503. A connection that becomes a tunnel
	// counts as a tunnel.
	maxClients = 512
	// sureClients is the number of places that each user has, whatever the others do.
	sureClients = 64
	// allClients limits the connections of all users together.
	allClients = 1024
	// reservedClients is the number of sure places beyond allClients for all users except root, the proxy's own user
	// and users allowed by name.
	reservedClients = 512
	// refusedClients limits the connections that get only 403 or 503.
	refusedClients = 16
	// maxTunnels limits the tunnels of one user: each browser opens up to 32 to a proxy.
	maxTunnels = 128
	// allTunnels limits the tunnels of all users together; named users may exceed it.
	allTunnels = 768
	// maxUnknownTunnels limits the tunnels of all users that cannot be distinguished; the rest of their connections is
	// for requests.
	maxUnknownTunnels = 3 * maxClients / 4
	// maxTransfers is larger than the 64 of the rule, so that a hundred simultaneous downloads can share the links
	// fairly: a GET beyond it is passed through over one link. So many fit into the engine's budget, each with the
	// least grant.
	maxTransfers = 128
)

// client is one connection of a client.
type client struct {
	local, remote netip.AddrPort // of the connection, as the client sees it
	to            netip.AddrPort // destination before it was redirected; zero = it was not
	// destination ("host:port") of its tunnel, whose requests are in the clear; "" = none
	clear   string
	visit   *intercept.Visit // of its tunnel that was opened; nil = none
	opened  string           // destination ("host:port") of its tunnel that was opened; "" = none
	user    admission.User
	allowed bool
	untold  bool // its user could not be determined this time
	place   admission.Place
	app     func() int64 // see Config.App; it asks once
	consent transport.Consent
	asks    atomic.Bool // some of its requests or tunnels depend on consent

	mu            sync.Mutex      // over HTTP/2, requests are concurrent
	session       Session         // nil = it shares all connections to origins with others
	authenticated map[string]bool // origins whose connections its credentials may have authenticated
}

// name identifies the user; "" stands for all that cannot be distinguished.
func (c *client) name() string {
	switch {
	case c.user.Known():
		return strconv.FormatInt(c.user.UID, 10)
	case c.user.Addr.IsValid():
		return c.user.Addr.String()
	}
	return ""
}

// spreadProgram returns the path of a client's program, if its connections may be spread.
func (p *Proxy) spreadProgram(c *client) string {
	if p.Program == nil || len(p.SpreadPrograms) == 0 {
		return ""
	}
	return p.Program(c.local, c.remote, p.SpreadPrograms)
}

type clientKey struct{}

// accept is the server's ConnContext. A connection without a place is closed; the server finds out at its first read.
func (p *Proxy) accept(ctx context.Context, nc net.Conn) context.Context {
	admission.BoundUnsent(nc, admission.Unsent)
	c, known := p.clients.Load(nc)
	if !known {
		c = p.enter(nc, netip.AddrPort{})
	}
	if c.(*client).place == admission.Dropped {
		_ = nc.Close()
	}
	return context.WithValue(ctx, clientKey{}, c)
}

// ends returns the ends of a redirected connection as its client sees them.
func (p *Proxy) ends(nc net.Conn) (local, remote netip.AddrPort) {
	if c, ok := p.clients.Load(nc); ok && c.(*client).to.IsValid() {
		return c.(*client).local, c.(*client).remote
	}
	return local, remote
}

// connState is the server's ConnState. A hijacked connection is a tunnel, which counts as such, or ends at once.
func (p *Proxy) connState(nc net.Conn, s http.ConnState) {
	switch s {
	case http.StateClosed, http.StateHijacked:
		p.leave(nc)
	case http.StateActive:
		p.admission.Spoke(nc)
	case http.StateIdle:
		if c, ok := p.clients.Load(nc); ok && c.(*client).place == admission.Admitted {
			p.admission.Paused(c.(*client).user, nc)
		}
	case http.StateNew: // it has entered
	}
}

// acceptAll calls serve with each connection that ln accepts, until ln is closed or ctx ends. Serve must not block. The
// error is http.ErrServerClosed.
func (p *Proxy) acceptAll(ctx context.Context, ln net.Listener, serve func(*net.TCPConn)) error {
	for {
		c, err := ln.Accept()
		switch {
		case err == nil:
			serve(c.(*net.TCPConn))
		case errors.Is(err, net.ErrClosed):
			return http.ErrServerClosed
		default:
			p.Log.Warn("cannot accept a connection", "error", err)
			select {
			case <-time.After(10 * time.Millisecond): // out of descriptors: some will be free soon
			case <-ctx.Done():
				return http.ErrServerClosed
			}
		}
	}
}

// enter determines whose connection nc is, and gives it a place.
func (p *Proxy) enter(nc net.Conn, to netip.AddrPort) *client {
	c := &client{to: to}
	if a, ok := nc.LocalAddr().(*net.TCPAddr); ok {
		c.local = a.AddrPort()
	}
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		c.remote = a.AddrPort()
	}
	if to.IsValid() {
		c.local = to
	}
	p.identify(c)
	c.app = sync.OnceValue(func() int64 { return p.App(c.local, c.remote) })
	if c.place = p.admission.Enter(c.user, c.allowed, nc); c.place != admission.Dropped {
		p.clients.Store(nc, c)
	}
	return c
}

// leave gives up a connection's place.
func (p *Proxy) leave(nc net.Conn) {
	if v, ok := p.clients.LoadAndDelete(nc); ok {
		c := v.(*client)
		c.mu.Lock()
		session := c.session
		c.mu.Unlock()
		if session != nil {
			session.Close()
		}
		if c.visit != nil {
			c.visit.Ended()
			p.opened.visits.Done()
		}
		p.admission.Leave(c.user, c.place, nc)
	}
}

// carrier returns the transport for a request of c: its own connections if its credentials may have authenticated
// connections to the origin, or do so now (R83), or if the request must not be repeated. Over HTTP/2 a client has many
// requests at a time, and shares.
func (c *client) carrier(p *Proxy, t target, r *http.Request) http.RoundTripper {
	origin := t.scheme + "://" + t.addr
	c.mu.Lock()
	defer c.mu.Unlock()
	needs := transport.NeedsSession(r.Header)
	once := !repeatable(r.Method) && r.ProtoMajor == 1
	if !c.authenticated[origin] && !needs && !once {
		return p.Transport
	}
	if c.session == nil {
		c.session, c.authenticated = p.Session(), map[string]bool{}
	}
	c.authenticated[origin] = c.authenticated[origin] || needs
	return c.session
}

// repeatable reports whether requests with a method may be sent twice (RFC 9110 section 9.2.2).
func repeatable(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}

// admit refuses clients that may not use the proxy, and those beyond the limits.
func (x *exchange) admit() *failure {
	c, ok := x.r.Context().Value(clientKey{}).(*client)
	if !ok { // not one of NewServer's
		panic("proxy: a request without a client: serve it by NewServer")
	}
	x.client = c
	return c.refusal()
}

// refusal returns why a client is not served, nil if it is.
func (c *client) refusal() *failure {
	switch {
	case c.untold:
		return full("Tributary could not find the user of this connection. Try again.")
	case !c.allowed:
		return forbidden("This proxy serves the user who started it, and root. The configuration can admit others: " +
			`allow_users = ["NAME"], or ["all"] for everybody on this machine.`)
	case c.place != admission.Admitted:
		return full("Too many connections to the proxy are open. Try again later.")
	}
	return nil
}

func full(text string) *failure {
	return &failure{http.StatusServiceUnavailable, "connection_limit_reached", retryAfter, text}
}

// identify determines who the client is and whether it may use the proxy. Loopback does not authenticate anybody: each
// user of the machine can connect to it (R185). Clients on other machines are admitted by the choice of the listen
// address.
func (p *Proxy) identify(c *client) {
	redirected := c.to.IsValid() // a client on this machine, chosen by the rules
	if addr := c.remote.Addr().Unmap(); !redirected && !addr.IsLoopback() {
		c.user, c.allowed = admission.User{UID: -1, Addr: addr}, true
		return
	}
	var err error
	c.user, err = admission.Local(c.local, c.remote, p.Owner)
	c.allowed = redirected || p.Owner == nil || p.Users == nil ||
		c.user.Known() && slices.Contains(p.Users, uint32(c.user.UID))
	if !c.allowed {
		c.untold = err != nil && !errors.Is(err, admission.ErrUnknown)
		p.Log.Debug("client refused", "uid", c.user.UID, "error", err)
	}
}
