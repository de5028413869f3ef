package proxy

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"github.com/tributary-http/tributary/internal/policy"
)

// Limits on how much clients may have open (R190). Each has room for what one busy person's programs open, and keeps the
// process well below a limit of 4096 open files.
const (
	// maxClients counts connections, tunnels included. Beyond it the answer is 503, beyond twice as many there is none.
	maxClients = 512
	// maxTunnels counts those of one user: browsers open up to 32 to a proxy each.
	maxTunnels = 128
	// maxTransfers is larger than the 64 of the rule, because a hundred downloads at a time are to share the links fairly:
	// a GET beyond it is passed through over one link. Memory does not depend on it: the engine's budget bounds that, and a
	// transfer that gets no grant keeps to one link, too.
	maxTransfers = 256
)

// crowded is why a GET beyond maxTransfers is passed through.
const crowded policy.Reason = "crowded"

// user is whose connection it is.
type user struct {
	uid  int64      // of a client on this machine; -1 = not known
	addr netip.Addr // of a client on another one
}

// unknown stands for all users of this machine who are not told apart.
var unknown = user{uid: -1}

// client is one connection of a client.
type client struct {
	local, remote netip.AddrPort // of the connection, as the client sees it
	to            netip.AddrPort // where it was going before it was redirected; zero = it was not
	over          bool           // beyond maxClients
	ask           sync.Once
	user          user
	allowed       bool
}

type clientKey struct{}

// accept is the server's ConnContext.
func (p *Proxy) accept(ctx context.Context, nc net.Conn) context.Context {
	boundUnsent(nc)
	c := &client{}
	if a, ok := nc.LocalAddr().(*net.TCPAddr); ok {
		c.local = a.AddrPort()
	}
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		c.remote = a.AddrPort()
	}
	n := int(p.clients.Add(1)) + p.Tunnels()
	c.over = n > maxClients
	if n > 2*maxClients {
		_ = nc.Close() // the server finds out at its first read
	}
	return context.WithValue(ctx, clientKey{}, c)
}

// connState is the server's. A connection that is taken over is a tunnel, which is counted as such, or ends at once.
func (p *Proxy) connState(_ net.Conn, s http.ConnState) {
	if s == http.StateClosed || s == http.StateHijacked {
		p.clients.Add(-1)
	}
}

// admit refuses clients that may not use the proxy, and those beyond the limits.
func (x *exchange) admit() *failure {
	c, ok := x.r.Context().Value(clientKey{}).(*client)
	if !ok { // not one of NewServer's
		return nil
	}
	c.ask.Do(func() { x.p.identify(c) })
	x.user, x.to = c.user, c.to
	switch {
	case !c.allowed:
		return forbidden("This proxy serves the user who started it, and root. The configuration can admit others: " +
			`allow_users = ["NAME"], or ["all"] for everybody on this machine.`)
	case c.over:
		return crowd("Too many connections to the proxy are open. Try again when some are closed.")
	}
	return nil
}

func crowd(text string) *failure { return unavailable("connection_limit_reached", 0, text) }

// identify finds out who the client is and whether it may use the proxy. Loopback is no authentication: each user of the
// machine reaches it (R185). Who comes from another machine is let in by the address that is listened on.
func (p *Proxy) identify(c *client) {
	c.user = unknown
	redirected := c.to.IsValid() // of this machine, and chosen by the rules
	if addr := c.remote.Addr().Unmap(); !redirected && !addr.IsLoopback() {
		c.user.addr, c.allowed = addr, true
		return
	}
	if p.Owner == nil {
		c.allowed = true
		return
	}
	uid, err := p.Owner(c.local, c.remote)
	if err == nil {
		c.user.uid = int64(uid)
	}
	c.allowed = redirected || p.Users == nil || err == nil && slices.Contains(p.Users, uid)
	if !c.allowed {
		p.Log.Debug("client refused", "uid", c.user.uid, "err", err)
	}
}
