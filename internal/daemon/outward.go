package daemon

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/allowance"
	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/control"
	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/health"
	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/origin"
)

// outward is what leads to origins: links, connections and the engine. The proxy and the command line's own downloads have
// one each.
type outward struct {
	cfg    config.Config // as at the start; follow and dials go by live
	log    *slog.Logger
	source link.Source
	reach  link.Destinations
	rates  link.Rates
	conns  link.Conns
	book   *allowance.Book // from start on
	pool   *origin.Pool
	engine *engine.Engine
	found  chan struct{} // closed by follow when there is a link to use
	using  using         // set by follow

	live       atomic.Pointer[config.Config]
	names      func(ctx context.Context, l link.Link, name string) ([]netip.Addr, error) // the host's; nil = DNS servers are asked
	binder     link.Binder                                                               // nil = the dial function does not come from dialer
	dials      atomic.Pointer[link.Dialer]
	accounts   atomic.Pointer[map[string]string] // by name of the link
	reconsider chan struct{}                     // live is another: follow looks again at what it has
}

func newOutward(cfg config.Config, log *slog.Logger, source link.Source) *outward {
	o := &outward{cfg: cfg, log: log, source: source, reconsider: make(chan struct{}, 1)}
	if n, ok := source.(*link.Netlink); ok {
		o.reach.Router = link.Kernel{Mark: n.Mark}
	}
	o.reach.Around = cfg.VPN == config.VPNAround
	o.reach.Names = func(name string) bool { // a VPN's, as the system asks them
		cfg := o.live.Load()
		return len(cfg.Links) == 0 && cfg.Allows(name)
	}
	o.live.Store(&cfg)
	o.rates.Set(rates(cfg))
	return o
}

// dialing returns what connects by the dialer of the live configuration.
func (o *outward) dialing(b link.Binder) dialFunc {
	o.binder = b
	o.dials.Store(o.dialer(b))
	return func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
		return o.dials.Load().DialContext(ctx, l, network, addr)
	}
}

// dialer returns what all connections to origins are made with: it goes where reach allows.
func (o *outward) dialer(b link.Binder) *link.Dialer {
	cfg := o.live.Load()
	resolver := &link.Resolver{Binder: b, AllLinksAllowed: anyAllowed(*cfg), Over: o.reach.Over, Names: o.names}
	return &link.Dialer{
		Binder: b, Resolver: resolver, Allow: o.reach.Check, Rates: &o.rates, Connected: o.connected,
		Buffer: func(l link.Link) int { return o.book.Buffer(account(l)) },
		Meter:  func(c net.Conn, l link.Link) net.Conn { return o.book.Wrap(c, account(l)) },
	}
}

// connected notes a connection over a link: it may show later whether the link still works.
func (o *outward) connected(l link.Link, addr string, c net.Conn) {
	o.conns.Add(l, c)
	if to, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		o.engine.Connected(l, addr, to.AddrPort().Addr())
	}
}

// askDNS reports whether a DNS server of a link answers over it, if it has one.
func (o *outward) askDNS(ctx context.Context, l link.Link) (answers, known bool) {
	d := o.dials.Load()
	if d == nil {
		return false, false
	}
	return d.Resolver.Answers(ctx, l)
}

// connect makes the pool and the engine. Certificates are verified against roots, nil for the system's.
func (o *outward) connect(dial dialFunc, roots *x509.CertPool, linkDown func(string), observers ...engine.Observer) error {
	o.pool = origin.New(dial, roots)
	o.found = make(chan struct{})
	var err error
	o.engine, err = engine.New(engine.Config{
		Opener: o.pool, Dial: dial, Log: o.log, Observers: observers,
		Scheduler: o.cfg.Scheduler, Budget: int64(o.cfg.Budget), Window: int64(o.cfg.TransferWindow), Threshold: int64(o.cfg.Threshold),
		Patience: o.cfg.WaitForLink, SlowLink: health.PaperLimits,
		Heard: o.conns.Heard, AskDNS: o.askDNS, LinkDown: linkDown,
	})
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	return nil
}

// start watches the links and looks after them until stop, which waits for both; the end of ctx is no end. It returns when
// the engine has the links that there are now: a request that comes at once finds them.
func (o *outward) start(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	links, err := o.source.Watch(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("look for links: %w", err)
	}
	o.book = allowance.Open(allowance.File(os.Getenv), time.Now, o.log, o.lookAgain)
	var parts sync.WaitGroup
	first := make(chan struct{})
	parts.Go(func() { o.follow(links, first) })
	parts.Go(func() { o.engine.Run(ctx) })
	<-first
	return func() { cancel(); parts.Wait(); o.book.Close() }, nil
}

// follow tells the engine which links there are, until the source ends.
func (o *outward) follow(links <-chan []link.Link, first chan<- struct{}) {
	var before, all []link.Link
	var vpn *control.VPN
	found := false
	for {
		select {
		case now, ok := <-links:
			if !ok {
				return
			}
			all = now
		case <-o.reconsider:
			if first != nil {
				continue // the links are not known yet
			}
		}
		cfg := o.live.Load()
		var use []link.Link
		o.book.Set(monthly(*cfg, all))
		accounts := map[string]string{}
		for _, l := range all {
			accounts[l.Name] = account(l)
			switch {
			case !cfg.Allows(l.Name):
			case o.affords(l):
				l.Untrusted = !cfg.Trusts(l.Name)
				use = append(use, l)
			case slices.ContainsFunc(before, func(b link.Link) bool { return b.Name == l.Name }):
				o.log.Warn("what this link may carry in a month is spent", "link", l.Name)
			}
		}
		o.accounts.Store(&accounts)
		o.reach.SetLinks(all)
		o.engine.SetLinks(use)
		o.using.set(use)
		c := link.Diff(before, use)
		for _, l := range c.Added {
			o.log.Info("link found", "link", l.Name, "kind", l.Kind, "metered", l.Metered)
		}
		for _, l := range c.Removed {
			o.log.Info("link lost", "link", l.Name)
		}
		if v := o.vpn(); (v == nil) != (vpn == nil) || v != nil && !slices.Equal(v.Interfaces, vpn.Interfaces) {
			o.tellVPN(v)
			vpn = v
		}
		if len(use) > 0 && !found {
			found = true
			close(o.found)
		}
		if first != nil {
			if len(use) == 0 {
				o.log.Warn("no link found yet: an interface must be up, with an address and a default route; name others with --link; see: tributary links, tributary doctor")
			}
			close(first)
			first = nil
		}
		before = use
	}
}

// tellVPN says what becomes of a VPN.
func (o *outward) tellVPN(v *control.VPN) {
	switch {
	case v == nil:
		o.log.Info("no VPN carries what the system sends any more")
	case v.Mode == config.VPNAround:
		o.log.Warn("downloads go around the VPN, because the configuration says vpn = \"around\"", "vpn", v.Interfaces)
	default:
		o.log.Info("downloads follow the VPN, and the links beneath it rest; vpn = \"around\" goes around it", "vpn", v.Interfaces)
	}
}

// lookAgain has follow look again at what it has.
func (o *outward) lookAgain() {
	select {
	case o.reconsider <- struct{}{}:
	default:
	}
}

// account names what a link's bytes are counted on.
func account(l link.Link) string { return cmp.Or(l.Account, l.Name) }

// left returns what the named link may still carry this month; nil = there is no limit.
func (o *outward) left(name string) *int64 {
	if accounts := o.accounts.Load(); accounts != nil {
		if n, bounded := o.book.Left((*accounts)[name]); bounded {
			return &n
		}
	}
	return nil
}

// affords reports whether a link has something left this month.
func (o *outward) affords(l link.Link) bool {
	n, bounded := o.book.Left(account(l))
	return !bounded || n > 0
}

// monthly returns the limits of accounts in bytes a month: what the configuration says of a link comes before what a host
// says of it.
func monthly(cfg config.Config, links []link.Link) map[string]int64 {
	all := map[string]int64{}
	for _, l := range links {
		if l.Monthly > 0 {
			all[account(l)] = l.Monthly
		}
	}
	for name, l := range cfg.Link {
		if l.Monthly > 0 {
			all[name] = int64(l.Monthly)
		}
	}
	return all
}

// options says which links to look for, and what is configured of them.
func options(cfg config.Config) link.Options {
	o := link.Options{
		Names: cfg.Links, DNS: map[string][]netip.AddrPort{}, Metered: map[string]bool{}, Around: cfg.VPN == config.VPNAround,
	}
	for name, l := range cfg.Link {
		if s := l.Servers(); len(s) > 0 {
			o.DNS[name] = s
		}
		if l.Metered != nil {
			o.Metered[name] = *l.Metered
		}
		switch {
		case l.Enabled == nil:
		case *l.Enabled:
			o.Also = append(o.Also, name)
		default:
			o.Never = append(o.Never, name)
		}
	}
	return o
}

// rates returns the limits of links in bytes per second.
func rates(cfg config.Config) map[string]int64 {
	all := map[string]int64{}
	for name, l := range cfg.Link {
		if l.MaxRate > 0 {
			all[name] = int64(l.MaxRate)
		}
	}
	return all
}

// anyAllowed reports whether every interface may be used, as far as the configuration is concerned.
func anyAllowed(cfg config.Config) bool {
	if len(cfg.Links) > 0 {
		return false
	}
	for _, l := range cfg.Link {
		if l.Enabled != nil && !*l.Enabled {
			return false
		}
	}
	return true
}

// vpn returns the VPN that carries what the system sends to the world, and whether it is followed or gone around; nil = there
// is none, or it is not known.
func (o *outward) vpn() *control.VPN {
	s, ok := o.source.(interface{ VPNs() []string })
	if !ok {
		return nil
	}
	names := s.VPNs()
	if len(names) == 0 {
		return nil
	}
	return &control.VPN{Interfaces: names, Mode: o.cfg.VPN}
}
