package transport

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/core/spread"
	"github.com/tributary-http/tributary/internal/net/direct"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
)

// RoundTrip implements http.RoundTripper. A GET that can be divided gets a response whose content arrives over all
// links; every other request goes over one link as it is. A request is dialed as its URL says, whatever its Host.
//
// It adds no header field and decodes no content coding. Interim responses go to the Got1xxResponse hook of
// net/http/httptrace. The Body of a 101 is an io.ReadWriteCloser. If content breaks off after the head, reading the
// Body fails.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	o := engine.OptionsOf(r.Context())
	reason := opening.Reason(o.Undivided)
	if reason == opening.None {
		reason = opening.Ineligible(opening.Request{
			Method:           r.Method,
			Scheme:           r.URL.Scheme,
			Query:            r.URL.RawQuery,
			Fields:           r.Header,
			ContentLength:    r.ContentLength,
			TransferEncoding: r.TransferEncoding,
		})
	}
	if reason == opening.AuthUnknown && o.Repeatable {
		reason = opening.None
	}
	if reason == opening.None {
		return t.divide(r, o)
	}
	return t.pass(t.passThrough.Do, r, reason)
}

// PlayerStartup is how much of a stream a player is assumed to read before it starts.
const PlayerStartup = 2 * time.Second

// pass sends a request over one link.
func (t *Transport) pass(do func(*http.Request) (*http.Response, link.Link, error), r *http.Request,
	reason opening.Reason,
) (*http.Response, error) {
	usage := engine.OptionsOf(r.Context()).Usage
	usage.SetReason(string(reason))
	if r.Method == http.MethodGet {
		t.engine.Passed(string(reason))
	}
	resp, l, err := do(r)
	if err != nil {
		return nil, onLink(err, l.Name)
	}
	if r.Method == http.MethodHead && resp.StatusCode == http.StatusOK && resp.ContentLength > 0 &&
		resp.Header.Get("Content-Encoding") == "" {
		t.engine.Hint(target(r), resp.ContentLength) // many programs ask for the size before they download
	}
	usage.Add(l.Name, 0, 0)
	if usage != nil && resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body = &countedBody{resp.Body, usage, l.Name, l.Terms.Radio}
	}
	return resp, nil
}

// countedBody is content that arrives over one link.
type countedBody struct {
	io.ReadCloser
	usage *Usage
	link  string
	radio *energy.Radio
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.usage.Add(b.link, int64(n), 0)
	b.usage.Spend(b.link, b.radio, time.Now(), int64(n))
	if err != nil && err != io.EOF {
		err = onLink(err, b.link)
	}
	return n, err
}

// divide gets an object through the engine.
func (t *Transport) divide(r *http.Request, o Options) (*http.Response, error) {
	ctx := r.Context()
	if r.Body != nil {
		r.Body.Close() // it is empty, or the request would not be eligible
	}
	o.Usage.SetReason("") // a previous request with the same context may have set it
	o.Links.Background = opening.Background(r.Header)
	q := &engine.Request{Target: target(r), Header: r.Header, Options: o}
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.Got1xxResponse != nil {
		q.Interim = func(status int, h http.Header) { _ = trace.Got1xxResponse(status, textproto.MIMEHeader(h)) }
	}
	resp, err := t.engine.Get(ctx, q)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status:        strings.TrimSpace(fmt.Sprintf("%d %s", resp.Status, http.StatusText(resp.Status))),
		StatusCode:    resp.Status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        resp.Header,
		ContentLength: resp.ContentLength,
		Body:          &dividedBody{resp.Body, resp.ID},
		Trailer:       resp.Trailer,
		Request:       r,
	}, nil
}

// target returns the target for the engine.
func target(r *http.Request) engine.Target {
	host := r.Host
	if host == "" {
		host = r.URL.Host
	}
	return engine.Target{Scheme: r.URL.Scheme, Host: host, Addr: origin.HostPort(r.URL), Path: path(r.URL, host)}
}

// path returns the path and query, byte for byte. An Opaque may be an absolute URL without its scheme, which is how
// net/http writes paths that begin with two slashes.
func path(u *url.URL, host string) string {
	if rest, ok := strings.CutPrefix(u.Opaque, "//"+host); ok {
		return rest
	}
	return u.RequestURI()
}

// DialTunnel connects to addr ("host:port") over the first link that can, and returns the link's name; if the relay may
// be used and is reachable, it connects through the relay over all links, and returns "".
func (t *Transport) DialTunnel(ctx context.Context, addr string) (net.Conn, string, error) {
	if t.relays(ctx, addr) {
		return t.raceRelay(ctx, addr)
	}
	return t.dialDirect(ctx, addr)
}

// Untrusted reports whether some links must not see credentials.
func (t *Transport) Untrusted() bool { return t.passThrough.Untrusted() }

// Overtaken notes that a tunnel got no answer over a link, but one over another: for a while, the link starts after the
// others.
func (t *Transport) Overtaken(name string) { t.passThrough.Overtaken(name) }

// dialDirect connects over one link.
func (t *Transport) dialDirect(ctx context.Context, addr string) (net.Conn, string, error) {
	d, err := t.passThrough.DialTunnel(ctx, addr)
	return d.Conn, d.Link.Name, err
}

// Dialed is a connection to an origin that, as far as its client knows, speaks https.
type Dialed struct {
	Conn net.Conn
	Link string // link that carries the connection
	// Greet performs the TLS handshake on Conn, verifies the origin, and keeps the connection for the next request. It
	// returns the protocol that the origin chose (ALPN), and whether the origin asked for a client certificate. Conn
	// then belongs to Greet.
	Greet func(ctx context.Context) (protocol string, asked bool, err error)
}

// DialOrigin connects to addr ("host:port") over the first link that can. Meanwhile it prepares connections over the
// other links with which a GET starts.
func (t *Transport) DialOrigin(ctx context.Context, addr string) (Dialed, error) {
	to := engine.Target{Scheme: "https", Host: strings.TrimSuffix(addr, ":443"), Addr: addr} // as requests name it
	d, err := t.passThrough.DialAmong(ctx, addr, func(links []link.Link) {
		if len(links) > 1 {
			t.prepare(links[1:], to)
		}
	})
	if err != nil {
		return Dialed{}, err
	}
	greet := func(until context.Context) (string, bool, error) {
		ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // with what it says about the client
		defer cancel(nil)
		defer context.AfterFunc(until, func() { cancel(context.Cause(until)) })()
		return t.greet(ctx, d, to)
	}
	return Dialed{d.Conn, d.Link.Name, greet}, nil
}

// greet does the TLS handshake with an origin. If its certificate is not valid over a link, another link may lead to
// the origin itself; the error is that of the first link if none does.
func (t *Transport) greet(ctx context.Context, d origin.Dialed,
	to engine.Target,
) (protocol string, asked bool, err error) {
	var first error
	var tried []string
	for {
		d.Uncount() // its requests are counted from now on
		protocol, asked, err = t.pool.Greet(ctx, d, to)
		if err == nil || asked || ctx.Err() != nil {
			return protocol, asked, err
		}
		if first == nil || origin.Mute(first) {
			first = err
		}
		switch {
		case origin.Mute(err): // the next ClientHello is smaller, over whichever link
		case origin.Misled(first):
			tried = append(tried, d.Link.Name)
		default:
			return "", false, first
		}
		if d, err = t.passThrough.DialOther(ctx, to.Addr, tried); err != nil {
			return "", false, first
		}
	}
}

// Session carries the requests of one client whose credentials authenticate its connections (RFC 4559 section 6), over
// connections that no other client uses. It sends one request at a time and does not divide any.
type Session struct {
	t      *Transport
	pinned *direct.Pinned
}

// Session returns a Session without connections. Close ends it.
func (t *Transport) Session() *Session { return &Session{t, t.passThrough.Pin()} }

// RoundTrip implements http.RoundTripper.
func (s *Session) RoundTrip(r *http.Request) (*http.Response, error) {
	reason := opening.AuthConnection
	if r.Method != http.MethodGet {
		reason = opening.Method
	}
	return s.t.pass(s.pinned.Do, r, reason)
}

// Close closes the connections that no request uses.
func (s *Session) Close() { s.pinned.Close() }

// NeedsSession reports whether credentials may apply to more than their request: to all that follow on the same
// connection.
func NeedsSession(h http.Header) bool { return opening.AuthenticatesConnection(h) }

// Status is a snapshot of links and transfers for observers.
type Status = engine.Status

// Status describes links, transfers and undivided traffic for observers.
func (t *Transport) Status() Status {
	s := t.engine.Status()
	loads, running := t.placer.Loads()
	s.Links = t.data.report(s.Links)
	for i := range s.Links {
		l := &s.Links[i]
		load := loads[l.Name]
		l.Undivided, l.UndividedBytes, l.UndividedRate = load.Open, load.Bytes, load.Rate
		l.Goodput += load.Rate
		l.Bytes += load.Bytes
	}
	s.Undivided = running
	return s
}

// Options are what a context says about its requests and tunnels, see [engine.Options]. Flow says who asks, Links which
// links may carry them.
type (
	Options = engine.Options
	Flow    = spread.Flow
)

// Consent states whether metered links may carry what a client asks for, see [engine.Consent]. After it changes,
// LookAgain must be called.
type Consent = engine.Consent

// With returns a context whose Options change makes from those of ctx.
func With(ctx context.Context, change func(o *Options)) context.Context {
	return engine.With(ctx, change)
}

// OptionsOf returns the Options of a context.
func OptionsOf(ctx context.Context) Options { return engine.OptionsOf(ctx) }

// Unmetered is a change for With: only links that cost nothing may carry the requests and tunnels.
func Unmetered(o *Options) { o.Links.Unmetered = true }

// Crowded is the reason for requests that go over one link because too many run already.
const Crowded = string(opening.Crowded)

// Usage records the links and bytes that a request used, see engine.Usage.
type Usage = engine.Usage

// LinkUse is the traffic of one link for a request, see engine.LinkUse.
type LinkUse = engine.LinkUse

// Harmless reports whether a field of a request is without credentials. The name is in canonical form.
func Harmless(name string) bool { return opening.Harmless(name) }

// ReasonText says to people why a response came over one link. word is that of a Usage.
func ReasonText(word string) string { return opening.Reason(word).Text() }

// RetryAfter returns how long the server of a response asks to wait, 0 if it does not.
func RetryAfter(h http.Header, now time.Time) time.Duration { return origin.RetryAfter(h, now) }

// Public reports whether a host, a name or an address, belongs to the internet: where this is required, no server can
// redirect a request to a host that only this network knows. Where names really lead is checked before each dial.
func Public(host string) bool { return link.Public(host) }
