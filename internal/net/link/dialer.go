package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// Steps of a dial, for [DialError].
const (
	OpResolve = "resolve" // the name has no address, or no DNS server answered
	OpBind    = "bind"    // the socket could not be tied to the link: nothing was sent
	OpConnect = "connect" // no address accepted the connection, or the link has none of the right family
	OpRefuse  = "refuse"  // the Allow hook refused every address: nothing was sent
)

// DialError is the failure of a dial over a link.
type DialError struct {
	Link string
	Op   string
	Err  error
}

func (e *DialError) Error() string {
	if e.Op == OpBind { // names the step itself
		return e.Err.Error()
	}
	return fmt.Sprintf("%s over %s: %v", e.Op, e.Link, e.Err)
}

func (e *DialError) Unwrap() error { return e.Err }

// DefaultTimeout is the time limit of a dial, name lookups included.
const DefaultTimeout = 5 * time.Second

// Dialer opens TCP connections over one link, DNS included. It tries addresses as RFC 8305 describes: it looks up both
// families at once, alternates between IPv6 and IPv4, starts the next attempt 250 ms after the last or as soon as that
// fails, and takes the first handshake that succeeds. A link that has only IPv6 addresses reaches IPv4 addresses by
// NAT64, if its network has one. A handshake with the only address is started a second time when it is late by 250 ms.
type Dialer struct {
	Binder   Binder
	Resolver *Resolver
	Timeout  time.Duration // 0 = DefaultTimeout
	// Allow, if not nil, is called before an address is dialed over a link. It returns the interface that the socket is
	// bound to. Its error keeps the address from being dialed, and the error of Dial wraps it if no other address
	// works. name is the host that the address was looked up for, "" if the host is an address. See [Destinations].
	Allow func(l Link, name string, to netip.AddrPort) (Link, error)
	// Buffer, if not nil, returns the SO_RCVBUF of a new socket, 0 to leave it to the kernel. It bounds how much the
	// peer may send before anything is read.
	Buffer func(Link) int
	// RTT, if not nil, returns the usual round-trip time over a link, 0 if it is not known.
	RTT func(Link) time.Duration
	// Slots, if not nil, decides whether a second handshake with a host may run alongside the first one.
	Slots *Slots
	// For tests, instead of sockets.
	connect func(ctx context.Context, l Link, to netip.AddrPort) (net.Conn, error)
	lookup  func(ctx context.Context, l Link, f family, host string) ([]netip.Addr, error)
}

// Dial connects over l, see [Path]. The connection is a *net.TCPConn.
func (d *Dialer) Dial(ctx context.Context, l Link, network, addr string) (net.Conn, Info, error) {
	fail := func(op string, err error) (net.Conn, Info, error) {
		return nil, Info{}, &DialError{Link: l.Name, Op: op, Err: err}
	}
	host, port, err := splitAddr(addr)
	if err != nil {
		return fail(OpResolve, err)
	}
	ctx, cancel := withTimeout(ctx, d.Timeout)
	defer cancel()
	if a, ok := literal(host); ok {
		if d.Allow != nil { // whatever families the link has
			if _, err := d.Allow(l, "", netip.AddrPortFrom(a, port)); err != nil {
				return fail(OpRefuse, err)
			}
		}
		if a.Is4() && needsNAT64(l) {
			prefix, err := d.Resolver.nat64(ctx, l)
			switch {
			case err != nil:
				return fail(OpResolve, fmt.Errorf("look up the NAT64 prefix for %s: %w", host, err))
			case prefix.IsValid():
				l.NAT64, host = prefix, toNAT64(prefix, a).String()
			}
		}
	}
	families, err := d.families(l, network, host)
	if err != nil {
		return fail(OpConnect, err)
	}
	r := race{
		dialer: d,
		link:   l,
		addr:   addr,
		host:   host,
		port:   port,
	}
	c, err := r.run(ctx, families)
	if err != nil {
		op := r.op()
		if _, ok := errors.AsType[*BindError](err); ok {
			op = OpBind
		}
		return fail(op, err)
	}
	info := infoOf(c)
	info.Local = r.over.Name != l.Name
	return c, info, nil
}

// onceKey marks the context of a dial by Once; its value is the address.
type onceKey struct{}

// Once returns a context for a dial that is one of several: it starts only one handshake with each address of the host.
// If to is valid, the name is not looked up, and to is the only address.
func Once(ctx context.Context, to netip.Addr) context.Context {
	return context.WithValue(ctx, onceKey{}, to)
}

// IsOnce reports whether a dial is restricted by Once, and to which address.
func IsOnce(ctx context.Context) (to netip.Addr, once bool) {
	to, once = ctx.Value(onceKey{}).(netip.Addr)
	return to, once
}

// splitAddr parses "host:port"; the port is a number.
func splitAddr(addr string) (host string, port uint16, err error) {
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, &net.AddrError{Err: "want a port below 65536", Addr: addr}
	}
	return host, uint16(n), nil
}

// withTimeout bounds a dial, by DefaultTimeout if limit is 0.
func withTimeout(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	limit = cmp.Or(limit, DefaultTimeout)
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no connection within %v: %w", limit,
		context.DeadlineExceeded))
}

// families returns the address families that network allows, in which l has an address, and to which host belongs if it
// is a literal; IPv6 first.
func (d *Dialer) families(l Link, network, host string) ([]family, error) {
	if network != "tcp" && network != "tcp4" && network != "tcp6" {
		return nil, net.UnknownNetworkError(network)
	}
	lit, isLit := literal(host)
	var fs []family
	for _, f := range []family{v6, v4} {
		six := f == v6
		_, has := l.Addr(six)
		if has && (network == "tcp" || six == (network == "tcp6")) && (!isLit || six == lit.Is6()) {
			fs = append(fs, f)
		}
	}
	if len(fs) == 0 {
		return nil, fmt.Errorf("%s has no address of the family of %s (%s)", l.Name, host, network)
	}
	return fs, nil
}

// open connects to one address over l.
func (d *Dialer) open(ctx context.Context, l Link, to netip.AddrPort) (net.Conn, error) {
	if d.connect != nil {
		return d.connect(ctx, l, to)
	}
	s := sockets(d.Binder, l, "tcp", to.Addr())
	if IsApart(ctx) {
		s.Control = withApartBuffer(s.Control)
	}
	if d.Buffer != nil {
		if n := d.Buffer(l); n > 0 {
			s.Control = withBuffer(s.Control, n)
		}
	}
	return s.DialContext(ctx, "tcp", to.String())
}

// resolve returns the addresses of one family.
func (d *Dialer) resolve(ctx context.Context, l Link, f family, host string) ([]netip.Addr, error) {
	if d.lookup != nil {
		return d.lookup(ctx, l, f, host)
	}
	return d.Resolver.lookup(ctx, l, f, host)
}
