package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/tributary-http/tributary/internal/front/admission"
	"github.com/tributary-http/tributary/internal/front/cutoff"
	"github.com/tributary-http/tributary/internal/front/inbound"
	"github.com/tributary-http/tributary/internal/front/intercept"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// openedTunnels serves the requests in opened tunnels, over HTTP/1.1 and HTTP/2.
type openedTunnels struct {
	server   *inbound.Server
	requests handoff
	serving  sync.WaitGroup
	// connections whose visit has not ended: net/http reports the end of a connection after Shutdown
	visits sync.WaitGroup
}

func newOpenedTunnels(p *Proxy) *openedTunnels {
	o := &openedTunnels{server: NewServer(p), requests: handoff{
		conns:  make(chan net.Conn),
		closed: make(chan struct{}),
	}}
	o.server.Protocols.SetHTTP2(true)
	o.serving.Go(func() { _ = o.server.Serve(&o.requests) }) // it ends only when the handoff is closed
	return o
}

// shutdown waits for requests until ctx ends; then it closes their connections.
func (o *openedTunnels) shutdown(ctx context.Context) {
	o.requests.Close()
	if o.server.Shutdown(ctx) != nil {
		o.server.Close()
	}
	o.serving.Wait()
}

// open serves a CONNECT to a host whose connections are to be opened. A connection that turns out to have nothing to
// open becomes a tunnel.
func (x *exchange) open(host, addr string, flow transport.Flow) {
	var origin transport.Dialed // zero if the origin need not be asked
	if !x.p.Intercept.Ready(addr) {
		var err error
		if origin, err = x.p.DialOrigin(x.p.paying(flowing(x.r.Context(), flow), x.client), addr); err != nil {
			x.fail(err)
			return
		}
		setKeepAlive(origin.Conn)
	}
	drop := func() {
		if origin.Conn != nil {
			_ = origin.Conn.Close()
		}
	}
	t, f := x.p.tunnels.add(origin.Conn, origin.Link, x.client) // it counts as one while it is opened
	if f != nil {
		drop()
		x.refuse(f)
		return
	}
	defer x.p.tunnels.remove(t)
	client, early, err := x.hijack()
	if err != nil {
		drop()
		panic(http.ErrAbortHandler)
	}
	stop := context.AfterFunc(t.cut, func() {
		_ = client.Close()
		drop()
	})
	var got intercept.Opened
	if _, err = io.WriteString(client, established); err == nil {
		c := intercept.Client{Conn: client, Early: early, Program: x.client.program(x.p)}
		got, err = x.p.Intercept.Open(t.cut, c, host, addr, origin.Greet)
	}
	if !stop() {
		err = t.cut.Err()
	}
	switch {
	case err != nil:
		x.p.Log.Debug("could not decrypt a tunnel", "error", err)
		_ = client.Close()
		if !got.Spent {
			drop()
		}
	case got.Conn != nil:
		if !got.Spent {
			drop()
		}
		conn, ok := firstRequest(got.Conn)
		if !ok { // the next connection becomes a tunnel
			x.p.Log.Debug("a decrypted tunnel carries no HTTP")
			got.Visit.NotHTTP()
			_ = conn.Close()
			return
		}
		x.p.serveOpened(conn, addr, got.Visit)
	case x.p.sniffs() && judge(got.Early) != isTLS:
		drop()
		x.p.serveSniffed(t.cut, client, got.Early, addr, x.client, flow)
	case got.Spent || origin.Conn == nil:
		x.p.tunnelAfterAll(x.p.paying(flowing(t.cut, flow), x.client), x.client, client, got.Early, addr)
	default:
		t.again = x.p.again(flowing(t.cut, flow), addr)
		x.p.runTunnel(t, client, got.Early)
	}
}

// tunnelAfterAll turns a connection into a tunnel after its client got its success and has sent early.
func (p *Proxy) tunnelAfterAll(ctx context.Context, of *client, client net.Conn, early []byte, addr string) {
	origin, link, err := p.Transport.DialTunnel(ctx, addr)
	if err != nil {
		p.Log.Debug("cannot connect a tunnel", "error", err)
		cutoff.Reset(client)
		return
	}
	setKeepAlive(origin)
	t, f := p.tunnels.add(origin, link, of)
	if f != nil {
		_ = origin.Close()
		cutoff.Reset(client)
		return
	}
	t.again = p.again(ctx, addr)
	defer p.tunnels.remove(t)
	p.runTunnel(t, client, early)
}

// program returns a function that names the client's program, nil if programs are unknown.
func (c *client) program(p *Proxy) func() string {
	if p.Program == nil {
		return nil
	}
	return func() string { return p.Program(c.local, c.remote, nil) }
}

// tlsSpeakTime is how long a client may be silent after the handshake before the proxy assumes that its server speaks
// first.
const tlsSpeakTime = 2 * time.Second

// firstRequest waits for the first bytes on an opened connection if its client did not say that it speaks HTTP (ALPN),
// and reports whether they begin a request. A client that leaves meanwhile may not accept the certificate: Visit tells.
func firstRequest(c *tls.Conn) (net.Conn, bool) {
	if c.ConnectionState().NegotiatedProtocol != "" {
		return c, true
	}
	first := make([]byte, longestMethod+2)
	_ = c.SetReadDeadline(time.Now().Add(tlsSpeakTime))
	n, err := c.Read(first)
	_ = c.SetReadDeadline(time.Time{})
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return &begun{Conn: c, rest: io.MultiReader(bytes.NewReader(first[:n]), c)}, true
	}
	v := judge(first[:n])
	_, target, _ := bytes.Cut(first[:n], []byte(" "))
	// absolute-form, as lftp sends it to servers behind a proxy
	whole := v == isOther && bytes.HasPrefix(target, []byte("https:"))
	return &begun{Conn: c, rest: io.MultiReader(bytes.NewReader(first[:n]), c)},
		n > 0 && (v == isHTTP || v == unclear || whole)
}

// serveOpened serves the requests in an opened tunnel to addr.
func (p *Proxy) serveOpened(conn net.Conn, addr string, visit *intercept.Visit) {
	c := p.enter(conn, netip.AddrPort{})
	c.opened, c.visit = addr, visit
	if c.place == admission.Dropped { // the client may be gone already, so that its user is unknown
		_ = conn.Close()
		visit.Ended()
		return
	}
	p.opened.visits.Add(1)
	if !p.opened.requests.give(conn) {
		p.leave(conn)
	}
}

// inTunnel serves a request in an opened tunnel to addr. The proxy dials addr, whatever Host says: the program chose
// the host with its CONNECT, and that is the host whose certificate was verified.
func (x *exchange) inTunnel(addr string) {
	x.client.visit.Asked()
	host, _, _ := net.SplitHostPort(addr)
	kind := x.r.Header.Get("Content-Type")
	if strings.HasPrefix(kind, "application/grpc") && !strings.HasPrefix(kind, "application/grpc-web") {
		// gRPC needs HTTP/2 from end to end. The connection ends, and the next one becomes a tunnel.
		x.p.Intercept.Tunnel(host, addr, intercept.OtherProtocol)
		panic(http.ErrAbortHandler)
	}
	target, f := tunnelTarget(x.r, addr)
	if f != nil {
		x.refuse(f)
		return
	}
	x.fetchOf(target)
}

// tunnelTarget returns the target of a request in a tunnel to addr. In HTTP/2, a method and a path can have bytes that
// would end them, or start another line, in the HTTP/1.1 request that is made from them (RFC 9113 section 10.3).
func tunnelTarget(r *http.Request, addr string) (target, *failure) {
	t := target{scheme: "https", host: r.Host, addr: addr, path: r.RequestURI}
	switch {
	case r.Method == http.MethodConnect:
		return t,
			badRequest("This connection leads to a web server, which does not support CONNECT. Send CONNECT to the proxy itself.")
	case !httpguts.ValidHeaderFieldName(r.Method): // both are tokens
		return t, badRequest("The method has invalid characters.")
	}
	if r.URL.IsAbs() { // a server must understand that, too (RFC 9112 section 3.2.2)
		abs, f := parseTarget(r)
		if f == nil && abs.scheme != "https" {
			f = badRequest("This connection is encrypted, but the URL begins with http:.")
		}
		if f != nil {
			return t, f
		}
		t.host, t.path = abs.host, abs.path
	}
	if t.host == "" {
		t.host = strings.TrimSuffix(addr, ":443")
	}
	if t.path == "" || t.path[0] != '/' && (t.path != "*" || r.Method != http.MethodOptions) ||
		strings.ContainsFunc(t.path, func(c rune) bool { return c <= ' ' || c == '#' || c == 0x7f }) {
		return t,
			badRequest("The path is empty, or has spaces, control characters or a fragment (#...). Percent-encode them, for example as %20.")
	}
	_, _, f := splitAuthority(t.host)
	return t, f
}
