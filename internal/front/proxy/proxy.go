package proxy

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/tributary-http/tributary/internal/front/admission"
	"github.com/tributary-http/tributary/internal/front/intercept"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// Transport carries requests and tunnels to origins. transport.Transport implements it.
type Transport interface {
	// RoundTrip connects as the URL says and sends the request with its Host and fields unchanged. It returns the final
	// answer, including a 101, whose Body is then an io.ReadWriteCloser. It follows no redirect, adds no field and
	// decodes no content coding. Interim answers go to the Got1xxResponse hook of net/http/httptrace. The body of a
	// request with Expect is held back until the origin's 100 arrives or a short time has passed. The body may be read
	// after RoundTrip returns, until the answer's body is closed. The values of the request's Trailer are set when its
	// body has been read.
	http.RoundTripper
	// DialTunnel connects to addr ("host:port") and returns the link that carries the connection. The context
	// identifies its user, see transport.WithFlow.
	DialTunnel(ctx context.Context, addr string) (c net.Conn, link string, err error)
}

// Session carries the requests of one client over connections that nobody else uses, until Close.
type Session interface {
	http.RoundTripper
	Close()
}

// Config configures a Proxy. Transport, Session and Log must not be nil.
type Config struct {
	Transport Transport
	Session   func() Session
	Self      func(netip.AddrPort) bool // reports the proxy's own listeners; nil = none is known
	Log       *slog.Logger

	// Owner returns the user ID of a client on this machine by the two ends of its connection; nil = users are not
	// distinguished.
	Owner admission.Owner
	// Users are the IDs of the users who may use the proxy; nil = all. A client whose owner is unknown is refused.
	Users []uint32
	// Meters, if not nil, reports whether a client may use metered links. whose returns the result of App for its
	// connection, and may take seconds. App must not be nil then.
	Meters func(whose func() int64) bool
	App    func(local, remote netip.AddrPort) int64
	// Program returns the path of the program at the other end of a connection within this machine, "" if it cannot be
	// determined, or if names is not nil and does not list it. nil = programs are unknown.
	Program func(local, remote netip.AddrPort, names []string) string
	// SpreadPrograms names the programs whose redirected connections may be spread, by the last part of their path.
	SpreadPrograms []string
	// Intercept opens tunnels, so that the requests in them are served like any other; nil = never.
	Intercept *intercept.Interceptor
	// DialOrigin connects to the origin of a tunnel that is to be opened; Intercept needs it. The context is as for
	// DialTunnel.
	DialOrigin func(ctx context.Context, addr string) (transport.Dialed, error)
	// Carried, if not nil, is called with the number of bytes that a link carried for an answer or a tunnel.
	Carried func(link string, bytes int64)
	// Refused, if not nil, is called with the destination ("host:port") of a CONNECT that failed, and why: clients do
	// not show that.
	Refused func(destination, reason string)
	// AutoConfig answers a request to the proxy port itself for /proxy.pac, if not nil.
	AutoConfig http.Handler

	// Untrusted, if not nil, reports whether some links must not see credentials. Tunnels are then not dialed before
	// their first bytes show whether networks can read along.
	Untrusted func() bool

	// Overtaken, if not nil, is called when a tunnel got its first answer over another link than the one that it began
	// on.
	Overtaken func(link string)

	// TunnelPorts are the destination ports of tunnels that are open to clients from other machines.
	TunnelPorts []uint16
}

// Proxy answers clients. It is an http.Handler for NewServer; behind a ServeMux, which cleans paths, it would not work.
type Proxy struct {
	Config
	admission admission.Control
	clients   sync.Map     // net.Conn -> *client: the connections that have a place
	transfers atomic.Int64 // GETs that may be divided
	tunnels   *tunnels
	metered   atomic.Pointer[map[string]bool] // set by Withdraw; nil = not known yet
	opened    *openedTunnels                  // nil without Intercept and Untrusted
	buffers   sync.Pool                       // of *[]byte, copyBuffer long
}

const (
	copyBuffer    = 32 << 10 // bytes
	crowdedBuffer = 8 << 10
)

// New returns a Proxy.
func New(c Config) *Proxy {
	if c.Transport == nil || c.Session == nil || c.Log == nil || c.Intercept != nil && c.DialOrigin == nil {
		panic("proxy: Config without Transport, Session, Log or DialOrigin")
	}
	named := append([]uint32{0, uint32(os.Getuid())}, c.Users...)
	p := &Proxy{
		Config: c, tunnels: newTunnels(named),
		admission: admission.Control{Limits: admission.Limits{
			Each:    maxClients,
			Sure:    sureClients,
			All:     allClients,
			Reserve: reservedClients,
			Refused: refusedClients,
		}, Named: named},
	}
	p.buffers.New = func() any {
		b := make([]byte, copyBuffer)
		return &b
	}
	if p.Intercept != nil || p.Untrusted != nil {
		p.opened = newOpenedTunnels(p)
	}
	return p
}

// ServeHTTP serves one request of a client. For a tunnel it returns when the tunnel has ended.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := newExchange(p, w, r)
	defer func() {
		close(x.over)
		e := recover()
		if e == nil {
			x.linger()
		} else {
			if e != http.ErrAbortHandler {
				p.Log.Error("request handler panicked, its connection is closed", "panic", e,
					"stack", string(debug.Stack()))
			}
			panic(http.ErrAbortHandler)
		}
	}()
	f := x.admit()
	if f == nil {
		f = checkRequest(r, x.client.opened != "")
	}
	if f != nil {
		x.refuse(f)
		return
	}
	switch {
	case x.client.to.IsValid():
		x.redirected(x.client.to.String())
	case x.client.clear != "":
		x.redirected(x.client.clear)
	case x.client.opened != "":
		x.inTunnel(x.client.opened)
	case r.Method == http.MethodConnect:
		x.connect()
	case r.RequestURI == autoConfigPath && p.AutoConfig != nil:
		x.autoConfig()
	case r.RequestURI[0] == '/':
		x.help()
	default:
		x.forward()
	}
}

// CloseLink resets both sides of every tunnel over the named link, so that clients reconnect immediately instead of
// waiting for a dead link (R145).
func (p *Proxy) CloseLink(name string) { p.tunnels.cut(func(t *tunnel) bool { return t.link == name }) }

// Shutdown accepts no new tunnels, waits for the running ones and for requests in opened ones until ctx ends, then
// resets the rest and waits for them to end. It returns ctx's error if it had to reset tunnels. Other requests are left
// to http.Server.Shutdown.
func (p *Proxy) Shutdown(ctx context.Context) error {
	gone := p.tunnels.close()
	var opened sync.WaitGroup
	defer opened.Wait()
	if p.opened != nil {
		defer p.opened.visits.Wait() // after the last tunnel, which may begin one
		opened.Go(func() { p.opened.shutdown(ctx) })
	}
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
	}
	p.tunnels.cut(func(*tunnel) bool { return true })
	<-gone
	return ctx.Err()
}

// Tunnels returns the number of open tunnels.
func (p *Proxy) Tunnels() int { return p.tunnels.count() }
