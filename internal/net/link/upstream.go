package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// handshakes are the protocols of upstream proxies, by the scheme of their URL (`via` in the configuration).
//
// A handshake connects to the proxy by [Upstream.connect] and asks it to connect to an address, "host:port". It returns
// the
// *net.TCPConn itself, since tunnels are spliced, without having read a byte beyond the proxy's answer and without a
// deadline. Its error describes the origin only as the proxy did: errors.Is finds ECONNREFUSED, EHOSTUNREACH,
// ENETUNREACH or ErrUpstreamRefused in it. Problems of the proxy itself are text only, see unreached.
var handshakes = map[string]func(ctx context.Context, u *Upstream, to string) (net.Conn, error){
	KindSOCKS5: socks5,
}

// ErrUpstreamRefused says that an upstream proxy does not connect to an address: its rules forbid it, or it cannot.
var ErrUpstreamRefused = errors.New("the upstream proxy does not allow the address")

// Upstream is the [Path] of a link whose connections are made by an upstream proxy, which also resolves the names. The
// system chooses the route to the proxy. Access to the user's own machine and networks is still decided here, see
// target.
type Upstream struct {
	Link           Link   // link that it is the Path of
	Scheme         string // protocol of the proxy: a key of handshakes
	Addr           string // address of the proxy, "host:port"
	User, Password string // no User = none are sent
	Binder         Binder // prepares the sockets to the proxy
	// Check decides which addresses may be requested from the proxy, see [Destinations.Check].
	Check func(l Link, name string, to netip.AddrPort) (Link, error)
	// Buffer returns the SO_RCVBUF of a new socket, 0 to leave it to the kernel.
	Buffer func(Link) int

	hosts func(ctx context.Context, name string) []netip.Addr // instead of /etc/hosts, for tests
}

// Dial implements [Path]. The connection is a *net.TCPConn to the proxy.
func (u *Upstream) Dial(ctx context.Context, network, addr string) (net.Conn, Info, error) {
	fail := func(op string, err error) (net.Conn, Info, error) {
		return nil, Info{}, &DialError{Link: u.Link.Name, Op: op, Err: err}
	}
	if network != "tcp" {
		return fail(OpConnect, net.UnknownNetworkError(network))
	}
	to, origin, err := u.target(ctx, addr)
	switch {
	case errors.Is(err, ErrDenied), errors.Is(err, ErrOffLink):
		return fail(OpRefuse, err)
	case err != nil:
		return fail(OpResolve, err)
	}
	ctx, cancel := withTimeout(ctx, 0)
	defer cancel()
	handshake, ok := handshakes[u.Scheme]
	if !ok {
		return fail(OpConnect, fmt.Errorf("unknown protocol %s://", u.Scheme))
	}
	c, err := handshake(ctx, u, to)
	if bind, ok := errors.AsType[*BindError](err); ok {
		return fail(OpBind, &BindError{Link: u.Link.Name, Err: bind.Err})
	}
	if err != nil {
		return fail(OpConnect, err)
	}
	return c, Info{Origin: origin}, nil
}

// Probe implements [Path]: the proxy must accept a connection.
func (u *Upstream) Probe(ctx context.Context) error {
	ctx, cancel := withTimeout(ctx, 0)
	defer cancel()
	c, err := u.connect(ctx)
	if err != nil {
		return &DialError{Link: u.Link.Name, Op: OpConnect, Err: unreached(ctx, u.Addr, err)}
	}
	return c.Close()
}

// Revalidate implements [Revalidator]: an address is checked as before a dial. Only the proxy knows where a name leads.
func (u *Upstream) Revalidate(addr string, _ net.Conn) error {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil
	}
	return u.check("", to)
}

// connect connects to the proxy.
func (u *Upstream) connect(ctx context.Context) (net.Conn, error) {
	d := sockets(u.Binder, Link{}, "tcp", netip.Addr{})
	d.Resolver = &net.Resolver{PreferGo: true}
	if u.Buffer != nil {
		if n := u.Buffer(u.Link); n > 0 {
			d.Control = withBuffer(d.Control, n)
		}
	}
	return d.DialContext(ctx, "tcp", u.Addr)
}

// target returns the address to request from the proxy, and the origin's address if it is known here. The proxy
// resolves names, so the rules for destinations apply to what is known without asking a server: addresses, names that
// stand for this machine or for a cloud's metadata, and names in /etc/hosts. Such names are replaced by their
// addresses. Only the proxy knows where another name leads.
func (u *Upstream) target(ctx context.Context, addr string) (to string, origin netip.AddrPort, err error) {
	host, port, err := splitAddr(addr)
	if err != nil {
		return "", origin, err
	}
	if a, ok := literal(host); ok {
		origin = netip.AddrPortFrom(a, port)
		return origin.String(), origin, u.check("", origin)
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
		known = u.inHosts(ctx, name)
	}
	if len(known) == 0 {
		return net.JoinHostPort(host, strconv.Itoa(int(port))), origin, nil
	}
	for _, a := range known {
		origin = netip.AddrPortFrom(a, port)
		if err = u.check(name, origin); err == nil {
			return origin.String(), origin, nil
		}
	}
	return "", netip.AddrPort{}, err
}

// check returns an error if an address may not be requested from the proxy. Addresses of this machine or in the network
// of another link are not reached through the proxy.
func (u *Upstream) check(name string, to netip.AddrPort) error {
	if u.Check == nil {
		return nil
	}
	over, err := u.Check(u.Link, name, to)
	if err == nil && over.Name != u.Link.Name {
		err = ErrOffLink
	}
	return err
}

func (u *Upstream) inHosts(ctx context.Context, name string) []netip.Addr {
	if u.hosts != nil {
		return u.hosts(ctx, name)
	}
	return inHosts(ctx, name)
}

// maxName is the length in bytes of the longest name that a request can hold.
const maxName = 255

// numeric reports whether the last label of a name is a number. No top-level domain is a number (RFC 3696 section 2),
// but many programs read such a name as an IPv4 address: 127.1, 0x7f000001.
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

// meaning returns the addresses of a name that has the same meaning wherever it is resolved: the machine that resolves
// it (RFC 6761 section 6.3, and what distributions write into /etc/hosts), or the metadata of the cloud in which it is
// resolved.
func meaning(name string) []netip.Addr {
	switch name {
	case "localhost", "localhost4", "localhost6", "localhost.localdomain", "localhost4.localdomain4",
		"localhost6.localdomain6",
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
	r := &net.Resolver{
		PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errNoQuestion },
	}
	addrs, _ := r.LookupNetIP(ctx, "ip", name) // an error means that the name is not in the file
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	return addrs
}

// unreached returns an error that says that the proxy was not reached. The cause is text only: a refused connection
// concerns the proxy, not an origin.
func unreached(ctx context.Context, addr string, err error) error {
	if cause := ended(ctx, err); cause != nil {
		return fmt.Errorf("connect to the upstream proxy %s: %w", addr, cause)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return fmt.Errorf("the upstream proxy %s cannot be reached: %v", addr, err)
}

// ended returns why a dial was given up, nil if it was not. The deadline of a socket, which is made from that of ctx,
// may pass slightly before it.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if n, ok := errors.AsType[net.Error](err); ok && n.Timeout() {
		return context.DeadlineExceeded
	}
	return nil
}
