package gateway

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/front/admission"
	"github.com/tributary-http/tributary/internal/front/inbound"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// Limits on the requests of clients, and on their connections.
const (
	maxHeader  = 64 << 10 // bytes of request line and header section; beyond it net/http answers 431
	maxTarget  = 16 << 10 // bytes of the request target
	headerTime = 10 * time.Second
	idleTime   = 120 * time.Second

	// maxTransfers is the number of requests that may be divided concurrently; others use one link. Each takes a little
	// memory even when the engine's budget is used up.
	maxTransfers = 128
)

// limits suit programs that download and open a few connections each.
var limits = admission.Limits{
	Each:    256,
	Sure:    32,
	All:     512,
	Reserve: 256,
	Refused: 16,
}

// Config configures a Gateway. Transport, Hosts and Log must not be nil.
type Config struct {
	Transport http.RoundTripper // checks what names resolve to before it dials
	Hosts     *Hosts
	Log       *slog.Logger

	// Owner returns the user ID of a client from the two ends of its connection; nil = users are not distinguished.
	Owner admission.Owner
	// Users are the IDs of the users who may use the gateway; nil = all. A client whose owner is unknown is refused.
	Users []uint32
}

// Gateway answers clients. Use NewServer to serve it.
type Gateway struct {
	Config
	token     atomic.Pointer[grant] // nil = none
	transfers atomic.Int64          // running requests
	shelf     shelf                 // index pages that arrive
	pages     chan struct{}         // holds one for each index page that is rewritten
	tokens    tokens
}

// New returns a Gateway.
func New(c Config) *Gateway {
	if c.Transport == nil || c.Hosts == nil || c.Log == nil {
		panic("gateway: Config without Transport, Hosts or Log")
	}
	return &Gateway{Config: c, pages: make(chan struct{}, maxPages)}
}

// minToken is the minimum length of a token in bytes: 128 bits in base64.
const minToken = 22

// grant is a token that expires when valid ends.
type grant struct {
	secret string
	valid  context.Context
	end    context.CancelFunc
}

// SetToken lets clients that know secret request objects from any host of the internet, by a path that begins with it:
// /TOKEN/https/HOST/PATH. It is for systems on which clients cannot be told apart, such as phones. The previous secret
// becomes invalid, and requests that used it end. A secret that is shorter than 22 bytes or has bytes outside base64
// for URLs admits no client.
func (g *Gateway) SetToken(secret string) {
	old := g.token.Load()
	if old != nil && old.secret == secret {
		return
	}
	var now *grant
	if len(secret) >= minToken && !strings.ContainsFunc(secret, func(c rune) bool { return !isTokenByte(c) }) {
		ctx, cancel := context.WithCancel(context.Background())
		now = &grant{secret, ctx, cancel}
	}
	if old = g.token.Swap(now); old != nil {
		old.end()
	}
}

func isTokenByte(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// cutToken returns the path after the token and its grant if the path begins with the token, otherwise the path and
// nil.
func (g *Gateway) cutToken(path string) (rest string, by *grant) {
	now := g.token.Load()
	first, rest, _ := strings.Cut(path, "/")
	if now == nil || subtle.ConstantTimeCompare([]byte(first), []byte(now.secret)) != 1 {
		return path, nil
	}
	return rest, now
}

// NewServer returns the HTTP/1 server for g. It limits slow requests, but not the duration of downloads.
func NewServer(g *Gateway) *inbound.Server {
	s := &http.Server{
		Handler:           g,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(g.Log.Handler(), slog.LevelDebug), // may quote requests
		Protocols:         new(http.Protocols),
	}
	s.Protocols.SetHTTP1(true)
	clients := &admission.Control{Limits: limits, Named: append([]uint32{0, uint32(os.Getuid())}, g.Users...)}
	clients.Guard(s, g.Owner, g.welcome)
	return inbound.NewServer(s)
}

// welcome reports whether a user may use the gateway. Loopback does not authenticate users (R185).
func (g *Gateway) welcome(u admission.User) bool {
	return g.Owner == nil || g.Users == nil || u.Known() && slices.Contains(g.Users, uint32(u.UID))
}

// ServeHTTP serves one request of a client.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	x := &exchange{
		g:      g,
		w:      w,
		rc:     http.NewResponseController(w),
		r:      r.WithContext(ctx),
		cancel: cancel,
	}
	f := x.admit()
	if f == nil {
		defer g.transfers.Add(-1)
		x.crowded = g.transfers.Add(1) > maxTransfers
		f = x.route()
	}
	if f != nil {
		x.refuse(f)
	}
}

// admit refuses clients that may not use the gateway, browsers, and requests that are not downloads.
func (x *exchange) admit() *failure {
	switch place, welcome := admission.PlaceOf(x.r.Context()); {
	case !welcome:
		return forbidden("This gateway serves only the user who started it, and root. To allow others, set " +
			`allow_users = ["NAME"] in the configuration, or ["all"] for every user of this machine.`)
	case place != admission.Admitted:
		return &failure{
			http.StatusServiceUnavailable, "connection_limit_reached",
			"Too many connections to the gateway are open. Try again later.",
		}
	case !admission.OwnName(x.r):
		return forbidden("The Host field does not name this gateway. Use http://127.0.0.1 with its port.")
	case fromBrowser(x.r.Header):
		return forbidden("This gateway is for programs that download. It does not serve browsers.")
	case x.r.Method != http.MethodGet && x.r.Method != http.MethodHead:
		x.w.Header().Set("Allow", "GET, HEAD")
		return &failure{http.StatusMethodNotAllowed, "http_request_denied", "This gateway only serves GET and HEAD."}
	case x.r.ContentLength != 0:
		return badRequest("The request has content, which downloads must not have. Remove it.")
	case len(x.r.RequestURI) > maxTarget:
		return &failure{
			http.StatusRequestURITooLong, "http_request_error",
			"The URL is longer than 16 KiB. Use a shorter one.",
		}
	case transport.NeedsSession(x.r.Header):
		return badRequest("These credentials (NTLM, Negotiate) authenticate a connection, and connections are shared here. " +
			"Use a token or a password.")
	}
	return nil
}

// fromBrowser reports whether a request comes from a page, or from a user who opens a URL in a browser. Pages here
// would share an origin with each other and with any other service on this machine at that port.
func fromBrowser(h http.Header) bool {
	for name := range h {
		switch {
		case strings.HasPrefix(name, "Sec-"), strings.HasPrefix(name, "Access-Control-"), name == "Origin",
			name == "Service-Worker",
			name == "Upgrade-Insecure-Requests":
			return true
		}
	}
	return false
}

// route calls the handler of a path.
func (x *exchange) route() *failure {
	rest, ok := strings.CutPrefix(x.r.RequestURI, "/")
	if !ok {
		return badRequest("This is a gateway, not a proxy: use /https/HOST/PATH. The proxy has another port.")
	}
	if err := checkPath(rest); err != nil {
		return badRequest(sentence(err))
	}
	rest, by := x.g.cutToken(rest)
	if x.knows = by != nil; x.knows {
		defer context.AfterFunc(by.valid, x.cancel)()
		if rest, ok = strings.CutPrefix(rest, "https/"); !ok {
			return &failure{http.StatusNotFound, "http_request_error", "Not found. Use /TOKEN/https/HOST/PATH."}
		}
		return x.at(rest, x.plain)
	}
	name, rest, _ := strings.Cut(rest, "/")
	switch name {
	case "https":
		return x.at(rest, x.plain)
	case "https:": // a whole URL
		if rest, ok = strings.CutPrefix(rest, "/"); ok {
			return x.at(rest, x.plain)
		}
	case "simple":
		return x.at(rest, x.simple)
	case "hf":
		return x.at(rest, x.huggingFace)
	case "brew":
		return x.at(rest, x.homebrew)
	case "v2":
		return x.registry(rest)
	}
	return &failure{
		http.StatusNotFound, "http_request_error",
		"Not found. Use /https/HOST/PATH; docs/GATEWAY.md lists the other paths.",
	}
}

// at calls a handler with the target in the rest of a path.
func (x *exchange) at(rest string, handle func(target) *failure) *failure {
	t, err := cutTarget(rest)
	if err != nil {
		return badRequest(sentence(err))
	}
	if f := x.mayAsk(t.host); f != nil {
		return f
	}
	return handle(t)
}

// mayAsk refuses hosts that the user did not list, except for hosts on the internet if the client knows the token.
func (x *exchange) mayAsk(host string) *failure {
	if x.knows {
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			name = strings.Trim(host, "[]")
		}
		if transport.Public(name) {
			return nil
		}
	}
	if x.g.Hosts.allowed(host) {
		return nil
	}
	return forbidden("This gateway does not fetch from this host. Add it to gateway_hosts in the configuration, or let " +
		`"tributary use" record it.`)
}

// plain serves an object unchanged.
func (x *exchange) plain(t target) *failure {
	a, f := x.follow(t, requestHeader(x.r.Header), nil)
	if f != nil {
		return f
	}
	x.reply(a)
	return nil
}
