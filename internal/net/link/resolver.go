package link

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxLookup = 10 * time.Second // one question, all servers
	// headStart is the time that the server that answered last gets before the others are asked too.
	headStart = 250 * time.Millisecond
)

// Resolver resolves names over a link: it asks the link's DNS servers over that link, over UDP and, where an answer is
// too long, TCP. Servers are those of [Link.DNS], or else those in the first resolv.conf that lists any other than
// loopback. All are asked at once, the first answer wins and its server is asked first from then on; NXDOMAIN is an
// answer, SERVFAIL is not. Answers are kept for 30 s, negative ones are not. /etc/hosts and the search domains of
// resolv.conf apply as for any program.
type Resolver struct {
	Binder Binder
	// AllLinksAllowed permits asking a local stub resolver, which chooses its link itself, where no other server is
	// known.
	AllLinksAllowed bool
	// Over, if not nil, returns the interface over which a server is asked on a link's behalf, and whether the server
	// is a stub on this machine; an error keeps the server from being asked. If Over is nil, servers are asked over the
	// link itself. See [Destinations.Over].
	Over func(l Link, server netip.Addr) (over Link, local bool, err error)
	// Names, if not nil, is called instead of asking DNS servers: it returns the addresses of a name over a link, both
	// families, none if the name does not exist.
	Names func(ctx context.Context, l Link, name string) ([]netip.Addr, error)

	files []string // instead of systemFiles, for tests

	mu    sync.Mutex
	links map[string]*memory
	plain map[netip.AddrPort]time.Time // servers that do not understand EDNS: until when they are asked without it
}

// Lookup returns the addresses of host over l. Network is "ip4", "ip6", or "ip" for both, IPv6 first. It answers IP
// literals and localhost names (RFC 6761 section 6.3) without asking a server. The error for a name without addresses
// is a *net.DNSError with IsNotFound, and for a socket that could not be bound to l a *BindError.
func (r *Resolver) Lookup(ctx context.Context, l Link, network, host string) ([]netip.Addr, error) {
	var families []family
	switch network {
	case "ip4":
		families = []family{v4}
	case "ip6":
		families = []family{v6}
	case "ip":
		families = []family{v6, v4}
	default:
		return nil, fmt.Errorf("look up %s: unknown network %q", host, network)
	}
	got := make([][]netip.Addr, len(families))
	errs := make([]error, len(families))
	var wg sync.WaitGroup
	for i, f := range families {
		wg.Go(func() { got[i], errs[i] = r.lookup(ctx, l, f, host) })
	}
	wg.Wait()
	addrs := slices.Concat(got...)
	if len(addrs) > 0 {
		return addrs, nil
	}
	if err := firstError(errs...); err != nil {
		return nil, err
	}
	return nil, notFound(host)
}

// lookup returns the addresses of one family, none if the name does not exist or has none in that family.
func (r *Resolver) lookup(ctx context.Context, l Link, f family, host string) ([]netip.Addr, error) {
	if a, ok := literal(host); ok {
		return only(f, a), nil
	}
	name, absolute := strings.CutSuffix(strings.ToLower(host), ".")
	if name == "" {
		return nil, notFound(host)
	}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return only(f, netip.IPv6Loopback(), netip.AddrFrom4([4]byte{127, 0, 0, 1})), nil
	}
	m := r.memory(l)
	if r.Names != nil { // one question for both families
		addrs, err := m.lookup(ctx, question{name, both}, func(ctx context.Context) ([]netip.Addr,
			error,
		) {
			return r.Names(ctx, l, name)
		})
		return only(f, addrs...), err
	}
	return m.lookup(ctx, question{strings.ToLower(host), f}, func(ctx context.Context) ([]netip.Addr, error) {
		if addrs, known := inFile(ctx, f, name); known {
			return addrs, nil
		}
		names := []string{name}
		if !absolute {
			names = r.searched(name)
		}
		return r.ask(ctx, l, m, f, names)
	})
}

// memory returns the memory of l in its present state.
func (r *Resolver) memory(l Link) *memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.links[l.Name]
	if m == nil || !m.link.Same(l) || m.link.Network != l.Network || !slices.Equal(m.link.Addrs, l.Addrs) ||
		!slices.Equal(m.link.DNS, l.DNS) {
		if r.links == nil || m == nil && len(r.links) >= maxLinks {
			r.links = map[string]*memory{}
		}
		m = newMemory(l)
		r.links[l.Name] = m
	}
	return m
}

// reply is the outcome of asking one server.
type reply struct {
	server netip.AddrPort
	addrs  []netip.Addr
	err    error
}

// Probe asks the DNS servers of l for a name that they cannot have cached, and returns nil if one of them answers, even
// if only that the name does not exist. The error is ErrNothingToProbe if none of them is asked over l itself, since an
// answer would then say nothing about the link.
func (r *Resolver) Probe(ctx context.Context, l Link) error {
	name := strings.ToLower(rand.Text()) + ".example.com"
	if r.Names != nil {
		_, err := r.Names(ctx, l, name)
		return err
	}
	from, err := r.ownServers(l)
	if err != nil || len(from.Addrs) == 0 {
		return ErrNothingToProbe
	}
	_, err = r.askServers(ctx, l, from, newMemory(l), v4, name)
	return err
}

// ownServers returns those of l's servers that are asked over l itself.
func (r *Resolver) ownServers(l Link) (Servers, error) {
	from, err := r.Servers(l)
	from.Addrs = slices.DeleteFunc(from.Addrs, func(s netip.AddrPort) bool {
		over := from.over[s]
		return over == nil || over.Name != l.Name
	})
	return from, err
}

// ask asks the servers of l for the first of the names that exists. A name without addresses of the family counts as
// existing if it has some of the other family: both families must belong to the same host.
func (r *Resolver) ask(ctx context.Context, l Link, m *memory, f family, names []string) ([]netip.Addr, error) {
	from, err := r.Servers(l)
	if err != nil {
		return nil, err
	}
	last := len(names) - 1
	for _, name := range names[:last] {
		addrs, exists, err := r.askFor(ctx, l, from, m, f, name)
		if err != nil || exists {
			return addrs, err
		}
	}
	return r.askServers(ctx, l, from, m, f, names[last])
}

// askFor is askServers, and reports whether the name has addresses of any family. Most names have IPv4 addresses, and a
// connection may wait for the answer about IPv6, so it asks for them at once.
func (r *Resolver) askFor(ctx context.Context, l Link, from Servers, m *memory, f family,
	name string,
) (addrs []netip.Addr, exists bool, err error) {
	within, cancel := context.WithCancel(ctx)
	var others []netip.Addr
	var failed error
	ask := func() { others, failed = r.askServers(within, l, from, m, 1-f, name) }
	var asking sync.WaitGroup
	defer asking.Wait()
	defer cancel()
	if f == v6 {
		asking.Go(ask)
	}
	if addrs, err = r.askServers(ctx, l, from, m, f, name); err != nil || len(addrs) > 0 {
		return addrs, true, err
	}
	if f != v6 {
		ask()
	}
	asking.Wait()
	return nil, len(others) > 0, failed
}

// askServers asks servers until one answers; everything that it started has ended when it returns.
func (r *Resolver) askServers(ctx context.Context, l Link, from Servers, m *memory, f family,
	name string,
) ([]netip.Addr, error) {
	servers := slices.Clone(from.Addrs) // its order changes
	trusted := slices.Index(servers, m.server())
	if trusted >= 0 {
		servers[0], servers[trusted] = servers[trusted], servers[0]
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	replies := make(chan reply, len(servers))
	next := 0
	start := func(n int) {
		for ; next < n; next++ {
			server := servers[next]
			wg.Go(func() {
				addrs, err := r.exchange(ctx, from.over[server], server, f, name)
				replies <- reply{server, addrs, err}
			})
		}
	}
	var others <-chan time.Time
	if trusted >= 0 {
		start(1)
		t := time.NewTimer(headStart)
		defer t.Stop()
		others = t.C
	} else {
		start(len(servers))
	}
	var errs []error
	for len(errs) < len(servers) {
		select {
		case <-others:
			start(len(servers))
		case a := <-replies:
			if a.err == nil {
				m.setServer(a.server)
				return a.addrs, nil
			}
			errs = append(errs, a.err)
			start(len(servers))
		}
	}
	return nil, fmt.Errorf("look up %s over %s: %w", name, l.Name, firstError(errs...))
}

// exchange asks one server over l, or over the route that the system chooses if l is nil. An error means that the
// server gave no answer.
func (r *Resolver) exchange(ctx context.Context, l *Link, server netip.AddrPort, f family,
	name string,
) ([]netip.Addr, error) {
	var mu sync.Mutex
	var bind *BindError // net.Resolver keeps only the text of errors
	res := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		c, err := r.dial(ctx, l, server, network)
		if b, ok := errors.AsType[*BindError](err); ok {
			mu.Lock()
			bind = b
			mu.Unlock()
		}
		return c, err
	}}
	// The trailing dot makes the name absolute, so that search domains never apply.
	addrs, err := res.LookupNetIP(ctx, f.network(), name+".")
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	if err == nil {
		return addrs, nil
	}
	mu.Lock()
	defer mu.Unlock()
	if bind != nil {
		return nil, bind
	}
	if d, ok := errors.AsType[*net.DNSError](err); ok && d.IsNotFound {
		return nil, nil
	}
	// /etc/hosts knows the name, with addresses of the other family.
	if _, ok := errors.AsType[*net.AddrError](err); ok {
		return nil, nil
	}
	if d, ok := errors.AsType[*net.DNSError](err); ok {
		d.Name, d.Server = name, server.String() // the name without the dot, the server that was really asked
	}
	return nil, err
}

// dial opens a socket to a DNS server.
func (r *Resolver) dial(ctx context.Context, l *Link, server netip.AddrPort, network string) (net.Conn, error) {
	network = network[:3] // "udp", "tcp"
	d := &net.Dialer{}
	if l != nil {
		d = sockets(r.Binder, *l, network, server.Addr())
	}
	c, err := d.DialContext(ctx, network, server.String())
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UDPConn)
	switch {
	case ok:
		q := newQuery(ctx, u)
		if q.refused = func() { r.setPlain(server) }; r.isPlain(server) {
			q.refused = nil
		}
		return q, nil
	case r.isPlain(server):
		c = plainStream{c}
	}
	closeOnCancel(ctx, c)
	return c, nil
}

// firstError returns the most useful error: a *BindError if there is one, otherwise the first.
func firstError(errs ...error) error {
	var first error
	for _, err := range errs {
		if _, ok := errors.AsType[*BindError](err); ok {
			return err
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func notFound(host string) error {
	return &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// literal parses an IP address, with or without the brackets of a URL.
func literal(host string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return a.Unmap(), err == nil
}

func only(f family, addrs ...netip.Addr) []netip.Addr {
	return slices.DeleteFunc(addrs, func(a netip.Addr) bool { return a.Is6() != (f == v6) })
}
