package link

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"
)

// Path dials over exactly one link. It is the interface between the kinds of links and everything that uses them: a
// [Source] gives each link its Path. Implementations are pointers, so that they can be compared, and safe for
// concurrent use.
type Path interface {
	// Dial connects to addr, which is "host:port" with a number as port. Network is "tcp", "tcp4" or "tcp6". An error
	// is a *DialError.
	Dial(ctx context.Context, network, addr string) (net.Conn, Info, error)
	// Probe asks a host on the link other than an origin, such as its DNS servers, and returns nil if it answers. The
	// error is ErrNothingToProbe if there is nothing to ask.
	Probe(ctx context.Context) error
}

// Info describes a connection that a [Path] made.
type Info struct {
	// Origin is the address at the other end. It is invalid if an upstream resolved the name.
	Origin netip.AddrPort
	// RTT is the round-trip time to the origin, 0 if it is unknown. The round-trip time to an upstream says nothing
	// about it.
	RTT time.Duration
	// Local means that the other end is on this machine, so that nothing goes over the link.
	Local bool
}

// ErrNothingToProbe says that there is no host that could be asked to test a link.
var ErrNothingToProbe = errors.New("nothing on the link can be queried")

var errNoPath = errors.New("the link has no path")

// Dial connects over the link, see [Path].
func (l Link) Dial(ctx context.Context, network, addr string) (net.Conn, Info, error) {
	if l.Path == nil {
		return nil, Info{}, &DialError{Link: l.Name, Op: OpConnect, Err: errNoPath}
	}
	return l.Path.Dial(ctx, network, addr)
}

// Probe asks whether the link works, see [Path].
func (l Link) Probe(ctx context.Context) error {
	if l.Path == nil {
		return ErrNothingToProbe
	}
	return l.Path.Probe(ctx)
}

// Revalidator is implemented by Paths on which an address may stop being allowed after a connection to it was dialed.
type Revalidator interface {
	// Revalidate returns an error if a connection to addr ("host:port") that was dialed earlier must not carry another
	// request. A VPN may have come up since.
	Revalidate(addr string, c net.Conn) error
}

// Revalidate returns an error if a connection over the link must not be used again, see [Revalidator].
func (l Link) Revalidate(addr string, c net.Conn) error {
	if k, ok := l.Path.(Revalidator); ok {
		return k.Revalidate(addr, c)
	}
	return nil
}

// device is the Path of a link whose sockets are bound to it.
type device struct {
	dialer func() *Dialer
	link   Link
}

// DevicePath returns a Path whose sockets are bound to l by the Dialer in use, which dialer returns.
func DevicePath(l Link, dialer func() *Dialer) Path { return &device{dialer, l} }

func (d *device) Dial(ctx context.Context, network, addr string) (net.Conn, Info, error) {
	return d.dialer().Dial(ctx, d.link, network, addr)
}

// Revalidate implements Revalidator: the destination is checked as before a dial.
func (d *device) Revalidate(addr string, c net.Conn) error {
	to, ok := c.RemoteAddr().(*net.TCPAddr)
	allow := d.dialer().Allow
	if !ok || allow == nil {
		return nil
	}
	name, _, _ := net.SplitHostPort(addr) // it was dialed
	if _, err := netip.ParseAddr(name); err == nil {
		name = ""
	}
	l := d.link
	l.NAT64 = d.dialer().Resolver.knownNAT64(l)
	_, err := allow(l, name, to.AddrPort())
	return err
}

// Probe asks the DNS servers of the link.
func (d *device) Probe(ctx context.Context) error { return d.dialer().Resolver.Probe(ctx, d.link) }

// DialFunc connects over exactly one link. It is for emulated links.
type DialFunc func(ctx context.Context, l Link, network, addr string) (net.Conn, error)

// Path returns the Path of a link that connects with d.
func (d DialFunc) Path(l Link) Path { return &emulated{d, l} }

// Over returns the links with Paths that connect with d.
func (d DialFunc) Over(links ...Link) []Link {
	all := make([]Link, len(links))
	for i, l := range links {
		l.Path = d.Path(l)
		all[i] = l
	}
	return all
}

type emulated struct {
	dial DialFunc
	link Link
}

func (e *emulated) Dial(ctx context.Context, network, addr string) (net.Conn, Info, error) {
	c, err := e.dial(ctx, e.link, network, addr)
	if err != nil {
		return nil, Info{}, err
	}
	return c, infoOf(c), nil
}

func (*emulated) Probe(context.Context) error { return ErrNothingToProbe }

// infoOf describes a connection that leads directly to an origin.
func infoOf(c net.Conn) Info {
	i := Info{RTT: handshakeRTT(c)}
	if to, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		i.Origin = to.AddrPort()
	}
	return i
}
