package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/net/proxy"
)

// ErrUpstreamRefused says that an upstream proxy does not connect to an address: its rules forbid it, or it cannot.
var ErrUpstreamRefused = errors.New("the upstream proxy does not allow the address")

// SOCKS5 is the [Path] of a link whose connections an upstream proxy makes (RFC 1928), which also resolves the names. The
// system chooses the way to the proxy. The user's own machine and networks are still recognized here: see target.
type SOCKS5 struct {
	Link           Link   // that it is the Path of
	Addr           string // of the proxy, "host:port"
	User, Password string // RFC 1929; no User = none are sent
	Binder         Binder // prepares the sockets to the proxy
	// Check says which addresses may be asked for, see [Destinations.Check].
	Check func(l Link, name string, to netip.AddrPort) (Link, error)
	// Buffer returns the SO_RCVBUF of a new socket, 0 to leave it to the kernel.
	Buffer func(Link) int

	hosts func(ctx context.Context, name string) []netip.Addr // instead of /etc/hosts, for tests
}

// Dial implements [Path]. The connection is a *net.TCPConn to the proxy.
func (s *SOCKS5) Dial(ctx context.Context, network, addr string) (net.Conn, Info, error) {
	fail := func(op string, err error) (net.Conn, Info, error) {
		return nil, Info{}, &DialError{Link: s.Link.Name, Op: op, Err: err}
	}
	if network != "tcp" {
		return fail(OpConnect, net.UnknownNetworkError(network))
	}
	to, origin, err := s.target(ctx, addr)
	switch {
	case errors.Is(err, ErrDenied), errors.Is(err, ErrOffLink):
		return fail(OpRefuse, err)
	case err != nil:
		return fail(OpResolve, err)
	}
	ctx, cancel := withTimeout(ctx, 0)
	defer cancel()
	up := &upstream{socks: s}
	var auth *proxy.Auth
	if s.User != "" {
		auth = &proxy.Auth{User: s.User, Password: s.Password}
	}
	d, err := proxy.SOCKS5("tcp", s.Addr, auth, up)
	if err != nil {
		return fail(OpConnect, err)
	}
	if _, err := d.(proxy.ContextDialer).DialContext(ctx, "tcp", to); err != nil {
		if up.conn != nil {
			up.conn.Close()
		}
		if bind, ok := errors.AsType[*BindError](err); ok {
			return fail(OpBind, &BindError{Link: s.Link.Name, Err: bind.Err})
		}
		return fail(OpConnect, up.failure(ctx, err))
	}
	return up.conn, Info{Origin: origin}, nil
}

// Probe implements [Path]: the proxy must accept a connection.
func (s *SOCKS5) Probe(ctx context.Context) error {
	ctx, cancel := withTimeout(ctx, 0)
	defer cancel()
	c, err := s.connect(ctx)
	if err != nil {
		return &DialError{Link: s.Link.Name, Op: OpConnect, Err: unreached(ctx, s.Addr, err)}
	}
	return c.Close()
}

// Revalidate implements [Revalidator]: an address is checked as before a dial. Where a name leads, only the proxy knows.
func (s *SOCKS5) Revalidate(addr string, _ net.Conn) error {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil
	}
	return s.check("", to)
}

// connect connects to the proxy.
func (s *SOCKS5) connect(ctx context.Context) (net.Conn, error) {
	d := sockets(s.Binder, Link{}, "tcp", netip.Addr{})
	d.Resolver = &net.Resolver{PreferGo: true}
	if s.Buffer != nil {
		if n := s.Buffer(s.Link); n > 0 {
			d.Control = withBuffer(d.Control, n)
		}
	}
	return d.DialContext(ctx, "tcp", s.Addr)
}

// target returns the address that the proxy is asked to connect to, and the origin's address if it is known here. The proxy
// resolves names, so the rules for destinations apply only to what is known without a lookup: addresses, names that stand for
// this machine or for a cloud's metadata, and names in /etc/hosts, whose addresses are asked for instead. Only the proxy knows
// where other names lead.
func (s *SOCKS5) target(ctx context.Context, addr string) (to string, origin netip.AddrPort, err error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return "", origin, err
	}
	n, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return "", origin, &net.AddrError{Err: "port is not a number below 65536", Addr: addr}
	}
	port := uint16(n)
	if a, ok := literal(host); ok {
		origin = netip.AddrPortFrom(a, port)
		return origin.String(), origin, s.check("", origin)
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "" || len(name) > maxName {
		return "", origin, notFound(host)
	}
	if numeric(name) {
		return "", origin, ErrDenied
	}
	known := meaning(name)
	if len(known) == 0 {
		known = s.inHosts(ctx, name)
	}
	if len(known) == 0 {
		return net.JoinHostPort(host, portText), origin, nil
	}
	for _, a := range known {
		origin = netip.AddrPortFrom(a, port)
		if err = s.check(name, origin); err == nil {
			return origin.String(), origin, nil
		}
	}
	return "", netip.AddrPort{}, err
}

// check returns an error if an address may not be asked for. Addresses of this machine or next to another link are not reached
// through the proxy.
func (s *SOCKS5) check(name string, to netip.AddrPort) error {
	if s.Check == nil {
		return nil
	}
	over, err := s.Check(s.Link, name, to)
	if err == nil && over.Name != s.Link.Name {
		err = ErrOffLink
	}
	return err
}

func (s *SOCKS5) inHosts(ctx context.Context, name string) []netip.Addr {
	if s.hosts != nil {
		return s.hosts(ctx, name)
	}
	return inHosts(ctx, name)
}

// maxName is the most bytes of a name that a request can hold.
const maxName = 255

// numeric reports whether the last label of a name is a number. No top-level domain is (RFC 3696 section 2), but many
// programs read such a name as an IPv4 address: 127.1, 0x7f000001.
func numeric(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last == "" {
		return false
	}
	hex, isHex := strings.CutPrefix(last, "0x")
	digits := "0123456789"
	if isHex {
		last, digits = hex, "0123456789abcdef"
	}
	return !strings.ContainsFunc(last, func(r rune) bool { return !strings.ContainsRune(digits, r) })
}

// Addresses that some names stand for wherever they are resolved.
var (
	loopbacks = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	metadata  = []netip.Addr{netip.AddrFrom4([4]byte{169, 254, 169, 254})}
)

// meaning returns the addresses of a name that means the same everywhere: whichever machine resolves it (RFC 6761 section 6.3,
// and the entries that distributions write into /etc/hosts), or the metadata of the cloud.
func meaning(name string) []netip.Addr {
	switch name {
	case "localhost", "localhost4", "localhost6", "localhost.localdomain", "localhost4.localdomain4", "localhost6.localdomain6",
		"ip6-localhost", "ip6-loopback":
		return loopbacks
	case "metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal":
		return metadata
	}
	if strings.HasSuffix(name, ".localhost") {
		return loopbacks
	}
	return nil
}

// errNoQuestion keeps a resolver from asking a server.
var errNoQuestion = errors.New("no server is asked")

// inHosts returns the addresses that /etc/hosts has for a name, none if it has none. Nothing is sent.
func inHosts(ctx context.Context, name string) []netip.Addr {
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errNoQuestion }}
	addrs, _ := r.LookupNetIP(ctx, "ip", name) // an error is: not in the file
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs
}

// upstream is one connection to the proxy. The proxy's answer is recorded, since the library keeps only a text of it.
type upstream struct {
	socks *SOCKS5
	conn  net.Conn // nil = not connected
	err   error    // of connecting
	said  []byte
}

// Dial implements proxy.Dialer.
func (u *upstream) Dial(network, addr string) (net.Conn, error) {
	return u.DialContext(context.Background(), network, addr)
}

// DialContext implements proxy.ContextDialer.
func (u *upstream) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	if u.conn, u.err = u.socks.connect(ctx); u.err != nil {
		u.conn = nil
		return nil, u.err
	}
	return &noted{u.conn, u}, nil
}

// noted is a connection that records what it receives.
type noted struct {
	net.Conn
	u *upstream
}

func (n *noted) Read(b []byte) (int, error) {
	k, err := n.Conn.Read(b)
	n.u.said = append(n.u.said, b[:k]...)
	return k, err
}

// Replies and methods of RFC 1928 sections 3 and 6.
const (
	withPassword        = 2
	noMethod            = 0xff
	notAllowed          = 2
	networkUnreachable  = 3
	hostUnreachable     = 4
	connectionRefused   = 5
	commandNotSupported = 7
	addressNotSupported = 8
)

// failure returns the error for a connection to an origin that could not be made.
func (u *upstream) failure(ctx context.Context, err error) error {
	if u.err != nil {
		return unreached(ctx, u.socks.Addr, u.err)
	}
	if cause := ended(ctx, err); cause != nil {
		return fmt.Errorf("the upstream proxy %s does not answer: %w", u.socks.Addr, cause)
	}
	switch u.reply() {
	case connectionRefused:
		return fmt.Errorf("the upstream proxy %s says: %w", u.socks.Addr, syscall.ECONNREFUSED)
	case networkUnreachable:
		return fmt.Errorf("the upstream proxy %s says: %w", u.socks.Addr, syscall.ENETUNREACH)
	case hostUnreachable:
		return fmt.Errorf("the upstream proxy %s says: %w", u.socks.Addr, syscall.EHOSTUNREACH)
	case notAllowed, commandNotSupported, addressNotSupported:
		return fmt.Errorf("%w (%s)", ErrUpstreamRefused, u.socks.Addr)
	}
	switch {
	case len(u.said) > 1 && u.said[1] == noMethod:
		return fmt.Errorf("the upstream proxy %s wants another way to log in: write via = \"socks5://USER:PASSWORD@%s\"", u.socks.Addr, u.socks.Addr)
	case len(u.said) == 4 && u.said[1] == withPassword:
		return fmt.Errorf("the upstream proxy %s does not accept the user and the password of via", u.socks.Addr)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return fmt.Errorf("the upstream proxy %s: %v", u.socks.Addr, err) // its errors are not an origin's
}

// reply returns the code of the proxy's reply to the request, 0 if there is none.
func (u *upstream) reply() byte {
	at := 2
	if len(u.said) > 1 && u.said[1] == withPassword {
		at += 2
	}
	if len(u.said) < at+2 {
		return 0
	}
	return u.said[at+1]
}

// unreached says that the proxy was not reached. The cause is text only: a refused connection is the proxy's, not an
// origin's.
func unreached(ctx context.Context, addr string, err error) error {
	if cause := ended(ctx, err); cause != nil {
		return fmt.Errorf("connect to the upstream proxy %s: %w", addr, cause)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return fmt.Errorf("the upstream proxy %s cannot be reached: %v", addr, err)
}

// ended returns why a dial was given up, nil if it was not. The deadline of a socket may come just before that of ctx, which
// it is made from.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return context.DeadlineExceeded
	}
	return nil
}
