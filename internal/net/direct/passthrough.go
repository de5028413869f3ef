package direct

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/tributary-http/tributary/internal/core/spread"
	"github.com/tributary-http/tributary/internal/net/conn"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
)

// expectContinue is how long a request body waits for the origin's 100 before it is sent anyway (RFC 9110 section
// 10.1.1 forbids waiting forever). It is longer than the second that curl waits.
const expectContinue = 2 * time.Second

// handshakeTime bounds a TLS handshake.
const handshakeTime = 10 * time.Second

// PassThrough is the pass-through client. A request goes over one link, bodies are streamed in both directions, nothing
// is added, redirects are not followed and content codings are not removed. It does not share connections with a Pool.
type PassThrough struct {
	// Idle is as Pool.Idle.
	Idle func(link, addr string)
	// Placer, if not nil, chooses the link that starts first, and counts the bytes carried.
	Placer *Placer
	// Greetings is as Pool.Greetings.
	Greetings *origin.Greetings
	// Detour, if not nil, returns a link to try before the others for a request, if there is one.
	Detour func(r *http.Request) (link.Link, bool)

	tls        *tls.Config
	links      func() []link.Link
	transports transports

	waitForLink time.Duration

	mu     sync.Mutex
	lost   map[string]time.Time // when another link overtook it in a race, by name
	pinned map[*Pinned]struct{}
	under  map[*underway]struct{}
}

// NewPassThrough returns a pass-through client over the links that links returns, best first. roots is as for New.
// waitForLink bounds the wait for a connection to a host that has reached its limit of connections.
func NewPassThrough(links func() []link.Link, roots *x509.CertPool, waitForLink time.Duration) *PassThrough {
	p := &PassThrough{
		waitForLink: waitForLink,
		tls:         &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		links:       links,
		lost:        map[string]time.Time{},
		pinned:      map[*Pinned]struct{}{},
		under:       map[*underway]struct{}{},
	}
	p.transports.passThrough = p
	return p
}

// Do sends r and returns the link that carried it. It uses an idle connection of the best link, otherwise the first
// link to connect (see race). Once anything was sent, no other link is tried. It fails with engine.ErrNoLink, an
// *engine.AttemptError of the best link if none could connect, or net/http's error of the exchange.
//
// The answer's Header is the one that the origin sent: with the Connection field that net/http removes, and without the
// Cache-Control that it adds.
func (p *PassThrough) Do(r *http.Request) (*http.Response, link.Link, error) {
	addr := origin.HostPort(r.URL)
	as, links := p.place(flowTo(r.Context(), addr, r.UserAgent()), addr, p.orderFor(r))
	if p.Detour != nil {
		if l, ok := p.Detour(r); ok {
			links = slices.Insert(slices.Clone(links), 0, l)
		}
	}
	resp, l, err := p.transports.do(r, links, as)
	if err != nil {
		as.end()
		return nil, l, err
	}
	as.response(resp)
	return resp, l, nil
}

// DialTunnel connects to addr over the first link that can (see race). Its errors are those of Do.
func (p *PassThrough) DialTunnel(ctx context.Context, addr string) (origin.Dialed, error) {
	return p.DialAmong(ctx, addr, nil)
}

// place is Placer.place; links that lied about the host come last.
func (p *PassThrough) place(f spread.Flow, addr string, links []link.Link) (*placed, []link.Link) {
	as, links := p.Placer.place(f, addr, links, p.isLost)
	return as, p.Greetings.Order(links, addr)
}

// DialAmong is DialTunnel. It first calls tell, if not nil, with the links in the order in which they may start.
func (p *PassThrough) DialAmong(ctx context.Context, addr string, tell func([]link.Link)) (origin.Dialed, error) {
	return p.dial(ctx, addr, p.order(ctx), tell)
}

// DialOther is DialTunnel over other links than those named.
func (p *PassThrough) DialOther(ctx context.Context, addr string, tried []string) (origin.Dialed, error) {
	links := slices.DeleteFunc(p.order(ctx), func(l link.Link) bool { return slices.Contains(tried, l.Name) })
	return p.dial(ctx, addr, links, nil)
}

func (p *PassThrough) dial(ctx context.Context, addr string, links []link.Link,
	tell func([]link.Link),
) (origin.Dialed, error) {
	as, links := p.place(flowTo(ctx, addr, ""), addr, links)
	if tell != nil {
		tell(links)
	}
	d, err := p.race(ctx, links, addr, as.headStart())
	if err != nil {
		as.end()
		return origin.Dialed{}, err
	}
	if p.charges(ctx, d.Link.Name) {
		as.end()
		d.Conn.Close()
		return origin.Dialed{}, costs("dial", d.Link.Name)
	}
	c := conn.Of(d.Conn)
	as.tunnel(d.Link.Name, c)
	d.Conn, d.Uncount = c, as.end
	return d, nil
}

// Relayed returns a tunnel's connection to addr that does not use a single link, and counts its bytes.
func (p *PassThrough) Relayed(ctx context.Context, addr string, nc net.Conn) net.Conn {
	if p.Placer == nil {
		return nc
	}
	f := flowTo(ctx, addr, "")
	f.Relayed = true
	as, _ := p.Placer.place(f, addr, nil, p.isLost)
	return as.relayed(nc)
}

// DropLink closes the idle connections of the named link, which are dead, and aborts the requests under way over it,
// before or during their response, with an *engine.AttemptError. Later requests dial again.
func (p *PassThrough) DropLink(name string) {
	p.abort(name)
	p.transports.drop(name)
	p.mu.Lock()
	pinned := slices.Collect(maps.Keys(p.pinned))
	p.mu.Unlock()
	for _, own := range pinned {
		own.transports.drop(name)
	}
}

// DropIdle closes the idle connections of the named link to make room for new ones. Those of a Pinned stay, since
// another connection would not be authenticated.
func (p *PassThrough) DropIdle(name string) {
	p.transports.mu.Lock()
	w := p.transports.of[name]
	p.transports.mu.Unlock()
	if w != nil {
		w.http.CloseIdleConnections()
	}
}

// Close closes the idle connections; requests under way continue.
func (p *PassThrough) Close() { p.transports.close() }

// transports holds the transports of a client, one for each link.
type transports struct {
	passThrough *PassThrough

	mu sync.Mutex
	of map[string]*linkTransport // by name of the link
}

// linkTransport is the transport that one link owns.
type linkTransport struct {
	link atomic.Pointer[link.Link] // as it is now: addresses change, the name does not
	http *http.Transport

	mu   sync.Mutex
	open map[*conn.Conn]string // by connection that may be reused: the address as the transport named it
}

// keep registers a connection until it closes. The transport named addr.
func (w *linkTransport) keep(nc net.Conn, addr string) net.Conn {
	c := conn.Of(nc)
	w.mu.Lock()
	if w.open == nil {
		w.open = map[*conn.Conn]string{}
	}
	w.open[c] = addr
	w.mu.Unlock()
	c.BeforeClose(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.open, c)
	})
	return c
}

// linkConn returns the connection over a link that a transport uses, nil if it is not known.
func linkConn(nc net.Conn) *conn.Conn {
	for {
		switch c := nc.(type) {
		case *conn.Conn:
			return c
		case interface{ NetConn() net.Conn }: // as of TLS
			nc = c.NetConn()
		default:
			return nil
		}
	}
}

// kept is a connection that a link's transport may reuse.
type kept struct {
	*conn.Conn
	addr string // as the transport named it
}

// to returns the open connections to addr, one for each remote address.
func (w *linkTransport) to(addr string) map[string]kept {
	// The transport converts other names to ASCII. They are rare, so all connections count then.
	odd := strings.ContainsFunc(addr, func(r rune) bool { return r >= utf8.RuneSelf })
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]kept{}
	for c, to := range w.open {
		if odd || to == addr {
			all[c.RemoteAddr().String()] = kept{c, to}
		}
	}
	return all
}

// do sends r over one of the links. as, if not nil, records which link it is and counts the content.
func (ws *transports) do(r *http.Request, links []link.Link, as *placed) (*http.Response, link.Link, error) {
	out := r.Clone(r.Context())
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header.Set("User-Agent", "") // net/http then sends none
	}
	// After a final answer in place of the 100, the body must not be sent (RFC 9110 section 10.1.1); net/http withholds
	// it only on a connection that is not reused.
	if out.Header.Get("Expect") != "" {
		out.Close = true
	}
	body := as.request(r.Body)
	if len(links) > 0 {
		resp, err := ws.over(out, body, links[0], idleOnly{}, as)
		switch {
		case errors.Is(err, errForgotten):
			ws.drop(links[0].Name) // the others are as old
		case !errors.Is(err, errNoIdle):
			return resp, links[0], err
		}
	}
	resp, l, err := ws.overFirst(out, body, links, as)
	if origin.Mute(err) { // the host may answer a smaller ClientHello
		resp, l, err = ws.overFirst(out, body, links, as)
	}
	for origin.Misled(err) {
		left := slices.DeleteFunc(slices.Clone(links), func(o link.Link) bool { return o.Name == l.Name })
		if links = left; len(links) == 0 {
			break
		}
		again, other, e := ws.overFirst(out, body, links, as)
		if other.Name == "" {
			break // no other link connects
		}
		l = other
		if !origin.Misled(e) {
			resp, err = again, e
		}
	}
	if unsent(err) && r.Body != nil {
		r.Body.Close()
	}
	return resp, l, err
}

// unsent reports whether a request was not sent, so that it may be sent over another connection.
func unsent(err error) bool {
	return errors.Is(err, errNoIdle) || origin.Mute(err) || origin.Misled(err)
}

// overFirst sends r over the first link that connects. If none does, it returns no link.
func (ws *transports) overFirst(r *http.Request, body io.ReadCloser, links []link.Link,
	as *placed,
) (*http.Response, link.Link, error) {
	d, err := ws.passThrough.race(r.Context(), links, origin.HostPort(r.URL), as.headStart())
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, link.Link{}, err
	}
	h := &handed{conn: d.Conn}
	resp, err := ws.over(r, body, d.Link, h, as)
	if nc := h.take(); nc != nil { // another connection had become idle
		nc.Close()
	}
	return resp, d.Link, err
}

// over sends r with body on a connection of l that how selects. If the link dies, the exchange ends with errLinkLost.
func (ws *transports) over(r *http.Request, body io.ReadCloser, l link.Link, how any,
	as *placed,
) (*http.Response, error) {
	var w origin.HeadWatch
	x := ws.passThrough.begin(r.Context(), l.Name)
	if ws.passThrough.charges(r.Context(), l.Name) {
		x.cancel(engine.ErrCosts) // nothing is sent
	}
	ctx := context.WithValue(w.Context(x.ctx), connKey{}, how)
	addr := origin.HostPort(r.URL)
	answered := func() {}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			nc := linkConn(got.Conn)
			as.over(l.Name, nc)
			if got.Reused && replays(r) {
				answered = x.expectAck(nc)
			}
		},
		PutIdleConn: func(err error) {
			if idle := ws.passThrough.Idle; idle != nil && err == nil {
				idle(l.Name, addr)
			}
		},
	})
	r = r.WithContext(ctx)
	lent := &lentBody{of: body}
	if body != nil && body != http.NoBody {
		r.Body = lent
	}
	ws.refresh(l, addr)
	resp, err := ws.transport(l).http.RoundTrip(r)
	answered()
	if body != nil && !unsent(err) {
		lent.settle()
	}
	if err == nil {
		if err = w.Judge(resp); err != nil {
			resp.Body.Close()
		}
	}
	if err != nil {
		err = x.explain(err)
		x.end()
		return nil, err
	}
	x.response(resp)
	return resp, nil
}

// refresh replaces the transport of l if it keeps a connection to addr that is no longer allowed. Requests under way on
// the old transport end there, and their connections are not reused.
func (ws *transports) refresh(l link.Link, addr string) {
	ws.mu.Lock()
	w := ws.of[l.Name]
	ws.mu.Unlock()
	if w == nil {
		return
	}
	for _, k := range w.to(addr) {
		if l.Revalidate(k.addr, k.Conn) != nil {
			ws.drop(l.Name)
			return
		}
	}
}

// transport returns the transport of l.
func (ws *transports) transport(l link.Link) *linkTransport {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.of[l.Name]
	if w == nil {
		w = &linkTransport{}
		w.http = &http.Transport{
			Proxy: nil, // http_proxy may point at ourselves
			DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
				nc, err := ws.connect(ctx, w, addr)
				if err != nil {
					return nil, err
				}
				return origin.NewHeadConn(nc), nil
			},
			DialTLSContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
				nc, err := ws.connect(ctx, w, addr)
				if err != nil {
					return nil, err
				}
				return ws.passThrough.handshake(ctx, nc, w.link.Load().Name, addr)
			},
			DisableCompression:     true,
			MaxIdleConnsPerHost:    origin.MaxIdlePerKey,
			MaxIdleConns:           origin.MaxIdle,
			IdleConnTimeout:        origin.IdleTimeout,
			ResponseHeaderTimeout:  0, // long polls are legal
			MaxResponseHeaderBytes: origin.MaxHead,
			ExpectContinueTimeout:  expectContinue,
			// Not nil: HTTP/1.1 only.
			TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		}
		if ws.of == nil {
			ws.of = map[string]*linkTransport{}
		}
		ws.of[l.Name] = w
	}
	w.link.Store(&l)
	return w
}

// connect returns the connection in ctx, or dials one if ctx allows that.
func (ws *transports) connect(ctx context.Context, w *linkTransport, addr string) (net.Conn, error) {
	switch how := ctx.Value(connKey{}).(type) {
	case idleOnly:
		return nil, errNoIdle
	case *handed:
		if nc := how.take(); nc != nil {
			return w.keep(nc, addr), nil
		}
	}
	d, err := ws.passThrough.race(ctx, []link.Link{*w.link.Load()}, addr, raceDelay)
	if err != nil {
		return nil, err
	}
	return w.keep(d.Conn, addr), nil
}

// handshake establishes TLS on a connection to addr over a link.
func (p *PassThrough) handshake(ctx context.Context, nc net.Conn, link, addr string) (net.Conn, error) {
	config := p.tls.Clone()
	config.ServerName, _, _ = net.SplitHostPort(addr) // as dialed
	err := nc.SetDeadline(time.Now().Add(handshakeTime))
	var c *tls.Conn
	if err == nil {
		c, err = p.Greetings.Handshake(ctx, nc, config, link, addr)
	}
	if err == nil {
		err = nc.SetDeadline(time.Time{})
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return origin.NewHeadConn(c), nil
}

func (ws *transports) drop(name string) {
	ws.mu.Lock()
	w := ws.of[name]
	delete(ws.of, name)
	ws.mu.Unlock()
	if w != nil {
		w.http.CloseIdleConnections()
	}
}

func (ws *transports) close() {
	ws.mu.Lock()
	of := ws.of
	ws.of = nil
	ws.mu.Unlock()
	for _, w := range of {
		w.http.CloseIdleConnections()
	}
}

// lentBody is a request body lent to one attempt: net/http closes it when a dial fails, but the next link still needs
// it. Once the attempt is known to be the last one, a Close takes effect.
type lentBody struct {
	of io.ReadCloser

	mu              sync.Mutex
	closed, settled bool
}

func (b *lentBody) Read(p []byte) (int, error) { return b.of.Read(p) }

func (b *lentBody) Close() error {
	b.mu.Lock()
	b.closed = true
	settled := b.settled
	b.mu.Unlock()
	if settled {
		return b.of.Close()
	}
	return nil
}

func (b *lentBody) settle() {
	b.mu.Lock()
	b.settled = true
	closed := b.closed
	b.mu.Unlock()
	if closed {
		b.of.Close()
	}
}
