package intercept

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	handshakeTime = 10 * time.Second
	verdictLife   = 10 * time.Minute // how long an origin's choices remain valid
	maxVerdicts   = 1024
	maxReported   = 256
)

// Config configures an Interceptor. Authority and Pins are required.
type Config struct {
	Authority *Authority
	Pins      *Pins
	Only      []string // hosts to open, with all their subdomains; nil = those that the Authority covers
	Except    []string // hosts not to open, with all their subdomains
	// Distrusts, if not nil, returns why a program is known not to accept certificates of the Authority before it has
	// seen one, "" if it may accept them. It gets the program that was asked for last, and whether that limits the size
	// of records (RFC 8449), as GnuTLS does and OpenSSL does not.
	Distrusts func(program string, limitsRecords bool) Reason
}

// Interceptor decides which tunnels are opened, and opens them.
type Interceptor struct {
	Config
	verdicts *lru.Cache[string, verdict] // verdicts by address
	excluded []string

	mu       sync.Mutex
	reported []Unopened
}

// verdict is what is known about an origin.
type verdict struct {
	tunnel   Reason // reason why its connections are not opened; "" = they are opened
	protocol string // protocol that it chose (ALPN), "" = none
	until    time.Time
}

// Reason is why the connections to a host are not opened.
type Reason string

// The reasons. Connections that are not meant to be opened have none.
const (
	Excluded          Reason = "listed as never decrypted"
	Pinned            Reason = "rejected Tributary's certificate"
	Rejected          Reason = "rejected Tributary's certificate of another host"
	OwnStore          Reason = "verifies with GnuTLS, which reads no variable"
	OwnKey            Reason = "wants the server's own key: --pinnedpubkey"
	OwnFile           Reason = "verifies with the system's file of authorities, and reads no variable"
	Browser           Reason = "has its own list of authorities, as browsers do"
	OwnList           Reason = "verifies with the list of certifi: --compat-options no-certifi ends that"
	Closed            Reason = "left without a request after seeing Tributary's certificate"
	ClientCertificate Reason = "the host asks for a client certificate"
	Unverified        Reason = "the host's certificate is not valid"
	OtherProtocol     Reason = "not HTTP requests for this host"
	NoHandshake       Reason = "the TLS handshake with the host failed"
)

// Unopened is a host whose connections were not opened.
type Unopened struct {
	Host    string
	Reason  Reason
	Program string // path of the program, "" = unknown; for Pinned, Rejected, Closed and the Own ones
}

// NewInterceptor returns an Interceptor.
func NewInterceptor(c Config) (*Interceptor, error) {
	verdicts, err := lru.New[string, verdict](maxVerdicts)
	if err != nil {
		return nil, err
	}
	return &Interceptor{Config: c, verdicts: verdicts, excluded: excluded()}, nil
}

// Wants reports whether a connection to host should be opened, as far as this is known before it is established.
// program returns the name of the program that requests it, and may be nil.
func (i *Interceptor) Wants(program func() string, host, addr string) bool {
	switch {
	case !i.Authority.Covers(host), i.Only != nil && !within(host, i.Only):
		return false
	case within(host, i.Except):
		return false
	case i.Only == nil && within(host, i.excluded): // a user who lists hosts in Only has decided
		i.report(host, Excluded)
		return false
	}
	if i.Pins.knows(host) {
		by := call(program)
		if reason := i.Pins.pinned(by, host); reason != "" {
			u := Unopened{Host: host, Reason: reason}
			if reason != OtherProtocol {
				u.Program = by
			}
			i.note(u)
			return false
		}
	}
	if v, ok := i.known(addr); ok && v.tunnel != "" {
		i.report(host, v.tunnel)
		return false
	}
	return true
}

// Ready reports whether connections to addr can be opened without asking the origin first.
func (i *Interceptor) Ready(addr string) bool {
	v, ok := i.known(addr)
	return ok && v.tunnel == ""
}

func (i *Interceptor) known(addr string) (verdict, bool) {
	v, ok := i.verdicts.Get(addr)
	return v, ok && time.Now().Before(v.until)
}

// Forget makes the next connection to addr ask the origin again, because requests to it have failed.
func (i *Interceptor) Forget(addr string) { i.verdicts.Remove(addr) }

// Tunnel makes later connections to addr tunnels for a while.
func (i *Interceptor) Tunnel(host, addr string, reason Reason) {
	i.verdicts.Add(addr, verdict{tunnel: reason, until: time.Now().Add(verdictLife)})
	i.report(host, reason)
}

// Opened is the result of Open.
type Opened struct {
	Conn  *tls.Conn // connection to the client, on which it sends requests; nil = the connection must become a tunnel
	Early []byte    // bytes read from the client, for a tunnel
	Spent bool      // Greet was called
	Visit *Visit    // of Conn
}

// Client is the connection of a client that has received its 200.
type Client struct {
	Conn    net.Conn
	Early   []byte        // bytes that it already sent
	Program func() string // returns the name of its program; may be nil
}

// Greet establishes a TLS connection to an origin and verifies it. It returns the protocol that the origin chose
// (ALPN), and whether the origin asked for a client certificate.
type Greet func(ctx context.Context) (protocol string, asked bool, err error)

// Open does the TLS handshake with a client. Greet connects to the origin at addr; it is nil if Ready. An error means
// that the client cannot be served; Open never closes its connection.
func (i *Interceptor) Open(ctx context.Context, client Client, host, addr string, greet Greet) (Opened, error) {
	h, err := readHello(client.Conn, client.Early)
	if err != nil {
		return Opened{}, err
	}
	if !i.speaksHTTP(h, host, addr) {
		i.report(host, OtherProtocol)
		return Opened{Early: h.bytes}, nil
	}
	// while the client waits: once it has rejected the certificate, its process may be gone
	program := call(client.Program)
	if i.Distrusts != nil && program != "" {
		if reason := i.Distrusts(program, h.limits); reason != "" {
			i.note(Unopened{Host: host, Reason: reason, Program: program})
			return Opened{Early: h.bytes}, nil
		}
	}
	v, ok := i.known(addr)
	if !ok && greet == nil { // the verdict expired a moment ago
		return Opened{Early: h.bytes}, nil
	}
	if !ok {
		v = ask(ctx, greet)
		if v.tunnel == "" || v.tunnel == ClientCertificate {
			i.verdicts.Add(addr, v)
		}
	}
	if v.tunnel != "" {
		i.report(host, v.tunnel)
		return Opened{Early: h.bytes, Spent: !ok}, nil
	}
	c, visit, err := i.answer(ctx, client, program, h, host, v)
	return Opened{Conn: c, Spent: !ok, Visit: visit}, err
}

// speaksHTTP reports whether a client speaks HTTP to this host. Programs that offer only h2 speak gRPC. On ports other
// than that of https, many other protocols run over TLS.
func (i *Interceptor) speaksHTTP(h hello, host, addr string) bool {
	wanted := strings.TrimSuffix(host, ".")
	if net.ParseIP(host) != nil {
		wanted = "" // addresses are not sent as server names (RFC 6066 section 3)
	}
	if !h.isTLS || !strings.EqualFold(h.server, wanted) {
		return false
	}
	if h.offers != nil {
		return slices.Contains(h.offers, http1)
	}
	_, port, _ := net.SplitHostPort(addr)
	return port == "443" || i.Only != nil
}

// ask connects to an origin and returns the verdict.
func ask(ctx context.Context, greet Greet) verdict {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	protocol, asked, err := greet(ctx)
	v := verdict{protocol: protocol, until: time.Now().Add(verdictLife)}
	switch {
	case asked:
		v.tunnel = ClientCertificate
	case errors.As(err, new(*tls.CertificateVerificationError)):
		v.tunnel = Unverified
	case err != nil:
		v.tunnel = NoHandshake
	}
	return v
}

// answer does the handshake with the client.
func (i *Interceptor) answer(ctx context.Context, client Client, program string, h hello, host string,
	v verdict,
) (*tls.Conn, *Visit, error) {
	leaf, err := i.Authority.Leaf(strings.TrimSuffix(host, "."))
	if err != nil {
		return nil, nil, err
	}
	offer := []string{http1}
	if v.protocol == http2 {
		offer = []string{http2, http1}
	}
	nc := replay(client.Conn, h.bytes)
	c, err := nc.serve(ctx, leaf, offer)
	if err == nil {
		return c, &Visit{of: i, program: program, host: host, began: time.Now()}, nil
	}
	switch {
	case refusesCertificate(err) || slices.Contains(certificateAlerts, nc.alert()):
		i.Pins.learn(program, host)
		i.note(Unopened{Host: host, Reason: Pinned, Program: program})
	case leftHandshake(err):
		i.left(program, host, 1)
	}
	return nil, nil, err
}

// Front does the handshake with a client that takes the proxy for one that speaks TLS; early was read from it. The
// connection is nil if the Authority does not cover the proxy's address.
func (i *Interceptor) Front(nc net.Conn, early []byte) (net.Conn, error) {
	host, _, err := net.SplitHostPort(nc.LocalAddr().String())
	if err != nil {
		return nil, err
	}
	leaf, err := i.Authority.Leaf(host)
	if errors.Is(err, errNotCovered) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := replay(nc, early).serve(context.Background(), leaf, []string{http1})
	if err != nil {
		return nil, err // not a nil *tls.Conn
	}
	return c, nil
}

// certificateAlerts are the alerts of clients that do not accept a certificate (RFC 8446 section 6.2).
var certificateAlerts = []tls.AlertError{42, 43, 44, 45, 46, 48}

// refusesCertificate reports whether a handshake failed because the client does not accept the certificate. The type
// that crypto/tls uses for alerts of a peer is not exported; its text is that of AlertError.
func refusesCertificate(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error" &&
		slices.ContainsFunc(certificateAlerts, func(a tls.AlertError) bool { return op.Err.Error() == a.Error() })
}

func call(program func() string) string {
	if program == nil {
		return ""
	}
	return program()
}

func (i *Interceptor) report(host string, reason Reason) {
	i.note(Unopened{Host: host, Reason: reason})
}

func (i *Interceptor) note(u Unopened) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !slices.Contains(i.reported, u) && len(i.reported) < maxReported {
		i.reported = append(i.reported, u)
	}
}

// Unopened returns the hosts whose connections stayed tunnels although they could have been opened, in the order in
// which they appeared.
func (i *Interceptor) Unopened() []Unopened {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.reported)
}
