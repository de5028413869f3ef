package link

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
)

var (
	// ErrDenied says that requests may not go to an address, over any link.
	ErrDenied = errors.New("the address is not allowed as a destination")
	// ErrRebound says that a public name resolved to an address that is not on the internet. It wraps ErrDenied.
	ErrRebound = fmt.Errorf("%w: a public host name resolves to a private address", ErrDenied)
	// ErrOffLink says that an address belongs to another interface: only that one leads there.
	ErrOffLink = errors.New("the address belongs to another interface")
)

// loopback is the name of the kernel's loopback device.
const loopback = "lo"

// Destinations decides which addresses may be dialed, and over which link. A proxy can reach addresses that its clients
// must not reach, and a web page can make a browser send requests to it. So the resolved address is checked every time
// before it is dialed (R183). Traffic that the system itself would send over an interface that is not a link, such as a
// VPN or a container bridge, never leaves over a link. The zero value has no interfaces, denies destinations that are
// not meant to be reached through a proxy, and allows all others.
type Destinations struct {
	Allow       []netip.Prefix            // exceptions to the denied networks; own listeners stay denied
	DenyPrivate bool                      // also deny networks that are private or have a special purpose
	Own         func(netip.AddrPort) bool // reports the proxy's own listeners, which are always denied; may be nil

	Router Router // the system's own routes; nil = unknown
	// without a Router, reports this machine's addresses besides loopback and links'; nil = none
	Local  func(netip.Addr) bool
	Around bool                   // links go around a VPN that carries the system's own traffic
	Names  func(name string) bool // reports interfaces other than links over which names may be looked up; nil = none
	// reports links that the user chose by name, never VPNs under which others rest; nil = none
	Named func(name string) bool

	links atomic.Pointer[[]Link]
}

// SetLinks sets the links that exist, best first.
func (d *Destinations) SetLinks(links []Link) {
	links = slices.Clone(links)
	d.links.Store(&links)
}

// Check returns the interface to which a socket to an address must be bound so that it uses l: l, or for an address of
// this machine the interface that has the address. name is the name that the address was looked up for, "" if there was
// no lookup. The error is [ErrDenied], [ErrRebound] or [ErrOffLink], or an error of the Router. Check serves as a
// [Dialer]'s Allow.
func (d *Destinations) Check(l Link, name string, to netip.AddrPort) (Link, error) {
	over, _, err := d.Look(l, name, to)
	return over, err
}

// Look decides as Check does. It also reports whether the address, as l reaches it, is one of this machine, or of a
// network that only some machines reach.
func (d *Destinations) Look(l Link, name string, to netip.AddrPort) (over Link, inward bool, err error) {
	addr := to.Addr().Unmap().WithZone("")
	if d.Own != nil && d.Own(netip.AddrPortFrom(addr, to.Port())) {
		return l, true, ErrDenied
	}
	hop, err := d.nextHop(addr)
	if err != nil {
		return l, true, err
	}
	inward = hop.Local || slices.ContainsFunc(meanings(addr, l.NAT64),
		func(a netip.Addr) bool { return denied(a) || private(a) })
	over, err = d.judge(l, name, addr, hop)
	return over, inward, err
}

// judge decides about an address with its next hop, see Check.
func (d *Destinations) judge(l Link, name string, addr netip.Addr, hop NextHop) (Link, error) {
	if !d.excepted(addr) {
		for _, a := range meanings(addr, l.NAT64) {
			if err := d.permit(name, a, addr, hop); err != nil {
				return l, err
			}
		}
		// The network chose the prefix: private addresses behind it are the network's own (RFC 6052 section 3.1).
		if l.NAT64.IsValid() && l.NAT64.Contains(addr) {
			if a := fromNAT64(l.NAT64, addr); inward(a) && !d.excepted(a) {
				return l, ErrDenied
			}
		}
	}
	if hop.Local {
		out, err := d.device(hop.Index)
		return out, err
	}
	over, err := d.over(l, addr, hop)
	if err == nil && over.Name != l.Name {
		err = ErrOffLink
	}
	return l, err
}

// permit returns an error if a request may not go to a, one of the addresses that to stands for. hop is the next hop of
// to.
func (d *Destinations) permit(name string, a, to netip.Addr, hop NextHop) error {
	if d.excepted(a) {
		return nil
	}
	if a != to {
		var err error
		if hop, err = d.nextHop(a); err != nil {
			return err
		}
	}
	switch {
	case denied(a), hop.Local, d.DenyPrivate && (inward(a) || within(documentationPrefixes, a)):
		return ErrDenied
	case publicName(name) && inward(a) && !hostsFileSays(name, a): // no stranger writes that file
		return ErrRebound
	}
	return nil
}

// Over returns the interface over which to ask a server on l's behalf, such as a DNS server: l, or another link or
// interface that the server's address belongs to, if that may be used. A local server runs on this machine and chooses
// its route itself. The error is [ErrOffLink] or an error of the Router. Over serves as a [Resolver]'s Over.
func (d *Destinations) Over(l Link, server netip.Addr) (over Link, local bool, err error) {
	server = server.Unmap().WithZone("")
	hop, err := d.nextHop(server)
	if err != nil {
		return l, false, err
	}
	if hop.Local {
		over, err = d.device(hop.Index)
		return over, true, err
	}
	if over, err = d.over(l, server, hop); err != nil || over.Name == l.Name {
		return over, false, err
	}
	_, used := d.link(func(o Link) bool { return o.Name == over.Name })
	if used || d.Names != nil && d.Names(over.Name) {
		return over, false, nil
	}
	return over, false, ErrOffLink
}

// over returns the interface that an address belongs to, given its next hop: l if no particular interface leads there.
func (d *Destinations) over(l Link, a netip.Addr, hop NextHop) (Link, error) {
	switch {
	case hop.Blocked:
		return l, ErrOffLink
	case hop.Index == 0:
		return d.neighbour(l, a), nil
	// the system chooses the route to an upstream, which chooses the rest
	case hop.Index == l.Index, hop.Default && l.Via != "":
		return l, nil
	}
	if out, used := d.link(func(o Link) bool { return o.Index == hop.Index }); used {
		// Home networks look alike: if two links have the same network, the better one leads there, as in the system's
		// routes (R184). A public address in a link's network is reached over the others, too, but not one behind a
		// tunnel. A tunnel that was a link like others may have become a VPN that carries everything: the route shows
		// that before SetLinks does.
		own := !hop.Default && (private(a) || CarriesVPN(out.Kind))
		vpn := hop.Default && CarriesVPN(out.Kind) && !d.Around && !d.named(out)
		if own || l.Confined || vpn {
			return out, nil
		}
		return l, nil
	}
	out, err := d.device(hop.Index)
	vpn := CarriesVPN(out.Kind)
	switch {
	case err != nil:
		return l, err
	case vpn && d.Around && !private(a):
		return l, nil
	case hop.Default && (!vpn || d.named(out)) && !l.Confined:
		return l, nil // the system prefers a link that is not used: the others lead to the world as well
	}
	return out, nil
}

// named reports whether the user chose a link by name, be it used or lost.
func (d *Destinations) named(l Link) bool { return d.Named != nil && d.Named(l.Name) }

// neighbour returns the link whose network contains a private address, l if there is none.
func (d *Destinations) neighbour(l Link, a netip.Addr) Link {
	if !private(a) {
		return l
	}
	out, found := d.link(func(o Link) bool { return within(o.Prefixes, a) })
	if !found {
		return l
	}
	return out
}

func (d *Destinations) excepted(a netip.Addr) bool { return within(d.Allow, a) }

// nextHop returns the system's next hop for an address, the zero NextHop if there is none or it is unknown.
func (d *Destinations) nextHop(a netip.Addr) (NextHop, error) {
	if d.Router == nil {
		_, of := d.link(func(l Link) bool { return slices.Contains(l.Addrs, a) })
		return NextHop{Local: of || a.IsLoopback() || d.Local != nil && d.Local(a)}, nil
	}
	return d.Router.NextHop(a)
}

// device returns an interface by its index.
func (d *Destinations) device(index int) (Link, error) {
	if d.Router == nil {
		return Link{Name: loopback}, nil
	}
	if l, used := d.link(func(o Link) bool { return o.Index == index }); used {
		return l, nil
	}
	return d.Router.Device(index)
}

// link returns the first link for which which returns true.
func (d *Destinations) link(which func(Link) bool) (Link, bool) {
	if links := d.links.Load(); links != nil {
		if i := slices.IndexFunc(*links, which); i >= 0 {
			return (*links)[i], true
		}
	}
	return Link{}, false
}
