package proxy

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/front/admission"
	"github.com/tributary-http/tributary/internal/front/cutoff"
	"github.com/tributary-http/tributary/internal/front/inbound"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// speakTime is how long a client may be silent before the proxy assumes that its server speaks first (R162).
const speakTime = 300 * time.Millisecond

// Transparent serves connections that firewall rules redirect here, whatever their destination (R153 to R166). Those
// that begin with an HTTP request in origin-form are served like the requests to the proxy; all others become tunnels
// over one link, with their first bytes untouched. Whatever Host a request names, the proxy dials the address that the
// program dialed: the client does not choose here what a name means (R158). The rules decide whose connections arrive,
// so users are distinguished but not refused.
type Transparent struct {
	p        *Proxy
	original func(*net.TCPConn) (netip.AddrPort, error)
	server   *inbound.Server
	requests handoff
	ctx      context.Context // of dials for tunnels
	end      context.CancelFunc
}

// NewTransparent returns the server for p. Original returns the destination of a connection before it was redirected;
// an error means that it was not.
func NewTransparent(p *Proxy, original func(*net.TCPConn) (netip.AddrPort, error)) *Transparent {
	t := &Transparent{p: p, original: original, requests: handoff{
		conns:  make(chan net.Conn),
		closed: make(chan struct{}),
	}}
	t.ctx, t.end = context.WithCancel(context.Background())
	t.server = NewServer(p)
	return t
}

// Serve accepts connections of all listeners until Shutdown or a failure, closes the listeners and returns when the
// accepted connections have ended, or are handed to the server. The error is http.ErrServerClosed after Shutdown.
func (t *Transparent) Serve(listeners ...net.Listener) error {
	failed := make(chan error, len(listeners)+1)
	var parts sync.WaitGroup
	parts.Go(func() { failed <- t.server.Serve(&t.requests) })
	for _, ln := range listeners {
		t.requests.add(ln)
		parts.Go(func() {
			var conns sync.WaitGroup
			defer conns.Wait()
			failed <- t.accept(ln, &conns)
		})
	}
	err := <-failed
	t.requests.Close()
	parts.Wait()
	return err
}

func (t *Transparent) accept(ln net.Listener, conns *sync.WaitGroup) error {
	return t.p.acceptAll(t.ctx, ln, func(c *net.TCPConn) {
		to, err := t.original(c)
		if err != nil || t.p.Self != nil && t.p.Self(to) { // it was not redirected: someone connects to the port (R155)
			t.p.Log.Debug("closed a connection that was not redirected", "error", err)
			_ = c.Close()
			return
		}
		if of := t.p.enter(c, to); of.place != admission.Admitted {
			t.p.leave(c)
			cutoff.Reset(c)
		} else {
			conns.Go(func() { t.serve(c, of) })
		}
	})
}

// serve classifies a connection.
func (t *Transparent) serve(c *net.TCPConn, of *client) {
	name := ""
	v := sniff(c, nil, speakTime)
	switch v {
	case isHTTP:
		if !t.requests.give(c) {
			t.p.leave(c)
		}
		return
	case isTLS:
		name = serverName(c, speakTime)
	}
	t.p.admission.Spoke(c)
	tun, ok := t.dial(of, name, v != isTLS)
	t.p.leave(c) // a tunnel counts as such
	if !ok {
		cutoff.Reset(c)
		return
	}
	defer t.p.tunnels.remove(tun)
	setKeepAlive(c)
	t.p.runTunnel(tun, c, nil)
}

// dial starts the tunnel of a connection to its original destination. name is the server that the client names, "" if
// it names none: it shows which connections belong together, never where they lead (R163). exposed says that networks
// can read along.
func (t *Transparent) dial(client *client, name string, exposed bool) (*tunnel, bool) {
	if f := t.p.tunnels.room(client.user); f != nil {
		return nil, false
	}
	flow := transport.Flow{User: client.name(), Program: t.p.spreadProgram(client), Host: name, Redirected: true}
	ctx := transport.With(t.ctx, func(o *transport.Options) { o.Flow, o.Links.Exposes = flow, exposed })
	origin, l, err := t.p.Transport.DialTunnel(t.p.paying(ctx, client), client.to.String())
	if err != nil {
		t.p.Log.Debug("cannot connect a redirected connection", "error", err)
		return nil, false
	}
	setKeepAlive(origin)
	tun, f := t.p.tunnels.add(origin, l, client)
	if f != nil {
		_ = origin.Close()
		return nil, false
	}
	tun.again = t.p.again(ctx, client.to.String())
	return tun, true
}

// Shutdown accepts no new connections and waits for requests until ctx ends; then it closes them. Tunnels are left to
// p.Shutdown.
func (t *Transparent) Shutdown(ctx context.Context) error {
	t.requests.Close()
	t.end()
	err := t.server.Shutdown(ctx)
	if err != nil {
		t.server.Close()
	}
	return err
}

// handoff is a listener for connections that others accepted.
type handoff struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	fronts []net.Listener // closed with it
}

func (h *handoff) add(ln net.Listener) {
	h.mu.Lock()
	h.fronts = append(h.fronts, ln)
	h.mu.Unlock()
	select {
	case <-h.closed:
		ln.Close()
	default:
	}
}

// give hands over a connection. It returns false if it closed the connection, since the handoff accepts no more.
func (h *handoff) give(c net.Conn) bool {
	select {
	case h.conns <- c:
		return true
	case <-h.closed:
		c.Close()
		return false
	}
}

// Accept implements net.Listener.
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, http.ErrServerClosed // the error of a server that is shut down, which happens after this
	}
}

// Close implements net.Listener.
func (h *handoff) Close() error {
	h.once.Do(func() { close(h.closed) })
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, ln := range h.fronts {
		errs = append(errs, ln.Close())
	}
	h.fronts = nil
	return errors.Join(errs...)
}

// Addr implements net.Listener.
func (h *handoff) Addr() net.Addr { return &net.TCPAddr{} }

// verdict classifies a connection by its first bytes.
type verdict uint8

const (
	unclear verdict = iota // more bytes are needed
	isHTTP
	isTLS // a TLS handshake, perhaps
	isOther
)

// longestMethod has room for the longest methods of the registry, VERSION-CONTROL and UPDATEREDIRECTREF, and some more,
// in bytes.
const longestMethod = 20

// judge decides whether bytes begin an HTTP/1 request in origin-form or asterisk-form, as clients send to origins.
// Requests to a proxy at the other end (absolute-form, CONNECT) and the preface of HTTP/2 (RFC 9113 section 3.4) do not
// count.
func judge(b []byte) verdict {
	if len(b) > 0 && b[0] == inbound.TLSHandshake {
		return isTLS
	}
	method, rest, whole := bytes.Cut(b, []byte(" "))
	for _, c := range method {
		if (c < 'A' || c > 'Z') && c != '-' {
			return isOther
		}
	}
	switch {
	case len(method) > longestMethod, whole && len(method) == 0, whole && string(method) == "PRI":
		return isOther
	case !whole || len(rest) == 0:
		return unclear
	case rest[0] == '/', rest[0] == '*' && string(method) == http.MethodOptions:
		return isHTTP
	}
	return isOther
}

// redirected serves a request on a redirected connection, or in a tunnel, to an address ("host:port").
func (x *exchange) redirected(to string) {
	if x.r.Method == http.MethodConnect {
		x.refuse(badRequest("This connection leads to a web server, which does not support CONNECT. Send CONNECT to the proxy itself."))
		return
	}
	target, f := redirectedTarget(x.r, to)
	if f != nil {
		x.refuse(f)
		return
	}
	x.fetchOf(target)
}

// fetchOf fetches a target that the connection determines, as if the request had named it in absolute-form.
func (x *exchange) fetchOf(target target) {
	r := *x.r
	u := *x.r.URL
	u.Scheme, u.Host = target.scheme, target.host
	r.URL = &u
	x.r = &r
	x.fetch(target)
}

// redirectedTarget returns the target of a request whose connection was redirected: named as by the client, and dialed
// where the client dialed. Without a Host field the address is the authority (R161).
func redirectedTarget(r *http.Request, to string) (target, *failure) {
	t := target{scheme: "http", host: r.Host, addr: to, path: r.RequestURI}
	if r.URL.IsAbs() { // a server must understand that, too (RFC 9112 section 3.2.2)
		abs, f := parseTarget(r)
		if f == nil && abs.scheme != "http" {
			f = badRequest("This connection is not encrypted, but the URL begins with https:.")
		}
		if f != nil {
			return target{}, f
		}
		t.host, t.path = abs.host, abs.path
	}
	if t.host == "" {
		t.host = strings.TrimSuffix(to, ":80")
	}
	if strings.Contains(t.path, "#") {
		return target{}, badRequest("The path has a fragment (#...), which must not be sent.")
	}
	_, _, f := splitAuthority(t.host)
	return t, f
}
