package transport

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/spread"
	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/host/statefile"
	"github.com/tributary-http/tributary/internal/net/allowance"
	"github.com/tributary-http/tributary/internal/net/direct"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// Config configures a Transport. Settings, Log and Source are required.
type Config struct {
	Settings config.Config // the user's configuration; Reload changes the settings that can change at run time
	Log      *slog.Logger
	Source   discover.Source // source of the links

	// Binder ties sockets to the links that Source returns without a Path. Names, if not nil, resolves names over these
	// links in place of DNS servers.
	Binder link.Binder
	Names  func(ctx context.Context, l link.Link, name string) ([]netip.Addr, error)

	// Limits, if not nil, returns the data limits of accounts by name; Limited receives a value when they may have
	// changed.
	Limits  func() map[string]allowance.Limit
	Limited <-chan struct{}

	Roots *x509.CertPool // certificates that https origins are verified against; nil = the system's
	// Allow, DenyPrivate and Own restrict the destinations that can be reached, see link.Destinations.
	Allow       []netip.Prefix
	DenyPrivate bool
	Own         func(netip.AddrPort) bool

	// History is the file that keeps findings about networks and origins for the next start, see HistoryFile; "" =
	// none.
	History string

	// RelayState is the file that describes how to reach the relay of the settings; "" = no relay is used.
	RelayState string
	// Paired means that tunnels use every relay in RelayState, whatever the settings say, including those that Pair
	// adds. Lanes use metered links beside others while Pays, which must then not be nil, reports that some client may
	// use metered links: an app shows these links only if the user wants them to be used beside others.
	Paired bool
	Pays   func() bool

	// Scheduler, if not nil, makes the scheduler of each transfer in place of that of Settings.
	Scheduler func() schedule.Scheduler

	Observers []engine.Observer
	// Running, if not nil, is called with the number of running transfers whenever it changes, and with the number of
	// those that further links could help, see engine.Config.
	Running func(transfers, further int)
	// Undivided, if not nil, is called with the number of running tunnels and pass-through requests whenever it
	// changes, and with the number of those whose program could use further links. It must not block, nor call the
	// Transport.
	Undivided func(running, spread int)
	// LinkDown, if not nil, is called with the name of a link that went down or was banned for every origin:
	// connections over it are dead.
	LinkDown func(name string)
	// Metered, if not nil, is called with the names of the metered links whenever these, the limits or a Consent may
	// have changed. It must not block.
	Metered func(names map[string]bool)
}

// Transport carries requests to origins over the links. Create it with New. It is safe for concurrent use.
type Transport struct {
	cfg         config.Config // as at the start; follow and dials use live
	log         *slog.Logger
	history     string                      // of Config
	device      discover.Source             // of Config
	metered     func(names map[string]bool) // of Config; may be nil
	source      discover.Source             // all links, each with its Path
	upstream    *discover.Static            // links through an upstream proxy
	reach       link.Destinations
	inward      inward
	rates       link.Rates
	conns       link.Conns
	slots       *link.Slots
	data        dataLimits
	pool        *origin.Pool
	passThrough *direct.PassThrough
	placer      *direct.Placer
	relay       relay.End       // nil = none
	paired      *relay.Pairings // relay if it is that of Config.Paired, otherwise nil
	engine      *engine.Engine
	found       chan struct{} // closed by follow when there is a link to use
	using       using         // set by follow
	expected    chan expected // to expect

	live   atomic.Pointer[config.Config]
	names  func(ctx context.Context, l link.Link, name string) ([]netip.Addr, error) // nil = ask DNS servers
	binder link.Binder
	dials  atomic.Pointer[link.Dialer]
	count  atomic.Pointer[func(link string, read, written int)] // of Count
	// live changed: follow re-evaluates the current links
	reconsider chan struct{}
}

// New returns a Transport that has no links before Start.
func New(c Config) (*Transport, error) {
	t := &Transport{
		cfg:        c.Settings,
		log:        c.Log,
		history:    c.History,
		device:     c.Source,
		names:      c.Names,
		binder:     c.Binder,
		data:       dataLimits{app: c.Limits, appChanged: c.Limited},
		metered:    c.Metered,
		reconsider: make(chan struct{}, 1),
		found:      make(chan struct{}),
		expected:   make(chan expected, maxExpected),
	}
	if n, ok := c.Source.(*discover.Netlink); ok {
		t.reach.Router = &discover.Kernel{Mark: n.Mark}
	} else {
		t.reach.Local = link.Local
	}
	t.reach.Allow, t.reach.DenyPrivate, t.reach.Own = c.Allow, c.DenyPrivate, c.Own
	t.reach.Around = c.Settings.VPN == config.VPNAround
	t.reach.Names = func(name string) bool { // the VPN resolves names, as it does for the system
		cfg := t.live.Load()
		return len(cfg.Links) == 0 && cfg.Allows(name)
	}
	t.reach.Named = func(name string) bool { return slices.Contains(t.live.Load().Links, name) }
	t.slots = link.NewSlots(c.Settings.MaxConnectionsPerHost)
	t.live.Store(&c.Settings)
	t.rates.Set(rates(c.Settings))
	t.dials.Store(t.dialer())
	t.upstream = discover.NewStatic(t.upstreams(c.Settings)...)
	devices := discover.WithPaths(c.Source, func(l link.Link) link.Path { return link.DevicePath(l, t.dials.Load) })
	t.source = discover.Merge(devices, t.upstream)
	t.pool = origin.New(c.Roots)
	t.pool.Greetings = new(origin.Greetings)
	t.placer = direct.NewPlacer(spreading(c.Settings))
	t.placer.Busy = func(running, spread int) {
		t.engine.Others(running)
		if c.Undivided != nil {
			c.Undivided(running, spread)
		}
	}
	t.placer.Remembered = func(l link.Link) float64 { return t.engine.Remembered(l) }
	t.placer.Overdue = func(name string, of []engine.Overdue) { t.engine.Overdue(name, of) }
	scheduler, connections, err := scheduling(c)
	if err != nil {
		return nil, err
	}
	t.engine = engine.New(engine.Config{
		Opener:      t.pool,
		Log:         t.log,
		Observers:   append([]engine.Observer{eventLog{t.log}}, c.Observers...),
		Scheduler:   scheduler,
		MostConns:   connections,
		Budget:      int64(t.cfg.Budget),
		Window:      int64(t.cfg.TransferWindow),
		Threshold:   int64(t.cfg.Threshold),
		WaitForLink: t.cfg.WaitForLink,
		SlowLinks:   health.SlowCheck(t.cfg.Slow),
		Behind:      func(l link.Link, a netip.Addr) netip.Addr { return t.dials.Load().Behind(l, a) },
		Heard:       t.conns.Heard,
		Received:    link.Link.Received,
		Running:     c.Running,
		Goodput:     t.placer.Goodput,
		Lied:        t.pool.Greetings.Lied,
		LinkDown: func(name string) {
			t.pool.DropLink(name)
			t.passThrough.DropLink(name)
			if c.LinkDown != nil {
				c.LinkDown(name)
			}
		},
	})
	t.passThrough = direct.NewPassThrough(t.engine.Ranked, c.Roots, t.cfg.WaitForLink)
	t.passThrough.Greetings = t.pool.Greetings
	t.passThrough.Placer = t.placer
	if c.Settings.MaxConnectionsPerHost > 0 {
		t.pool.Idle, t.passThrough.Idle = t.slots.Idle, t.slots.Idle
	}
	if c.Paired {
		if t.paired, err = relay.OpenPairings(c.RelayState, int64(t.cfg.Budget), t.log, c.Pays); err != nil {
			return nil, err
		}
		t.relay = t.paired
	} else if r := c.Settings.Relay; r.Mode != config.RelayOff && c.RelayState != "" {
		addresses := append([]string{r.Address}, r.Others...)
		if t.relay, err = relay.Open(c.RelayState, addresses, int64(t.cfg.Budget), t.log); err != nil {
			return nil, err
		}
		t.passThrough.Detour = t.detour
	}
	if t.relay != nil {
		t.placer.Relay = t.relayed
	}
	return t, nil
}

// scheduling returns what makes the schedulers, and the number of connections over one link that a transfer may have:
// one with any but the default scheduler, as in the papers.
func scheduling(c Config) (scheduler func() schedule.Scheduler, connections int, err error) {
	if c.Scheduler != nil {
		return c.Scheduler, 1, nil
	}
	if c.Settings.Scheduler == schedule.Default {
		connections = transfer.MostConns
	}
	if scheduler, err = schedule.Maker(c.Settings.Scheduler); err != nil {
		return nil, 0, fmt.Errorf("scheduler: %w", err)
	}
	return scheduler, connections, nil
}

// Close closes the connections that no request uses. Requests under way continue.
func (t *Transport) Close() {
	t.passThrough.Close()
	t.pool.Close()
}

// Start watches the links and maintains them until stop is called, which waits for both to end; the end of ctx does not
// stop them. Start returns when the engine has the current links: a request made immediately afterwards finds them.
func (t *Transport) Start(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	links, err := t.source.Watch(ctx)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("look for links: %w", err)
	}
	t.data.accounts = allowance.Open(statefile.Path(os.Getenv, "allowance.json"), time.Now, t.log, t.LookAgain)
	var parts sync.WaitGroup
	first := make(chan struct{})
	parts.Go(func() { t.follow(links, first) })
	parts.Go(func() { t.engine.Run(ctx) })
	if t.history != "" {
		k := &recorder{path: t.history, engine: t.engine, log: t.log}
		k.load()
		parts.Go(func() { k.keep(ctx) })
	}
	parts.Go(func() { t.placer.Run(ctx) })
	if t.relay != nil {
		parts.Go(func() { t.relay.Run(ctx) })
	}
	parts.Go(func() { t.expect(ctx) })
	<-first
	return func() { cancel(); parts.Wait(); t.data.accounts.Close() }, nil
}

// follow passes the current links to the engine, until the source ends.
func (t *Transport) follow(links <-chan []link.Link, first chan<- struct{}) {
	var before, all []link.Link
	var vpn *VPN
	found := false
	known := radios{}
	for {
		select {
		case now, ok := <-links:
			if !ok {
				return
			}
			all = now
		case <-t.reconsider:
			if first != nil {
				continue // the links are not known yet
			}
		case <-t.data.appChanged:
			if first != nil {
				continue
			}
		}
		cfg := t.live.Load()
		var use []link.Link
		t.data.set(cfg, all)
		for _, l := range all {
			if err := known.terms(cfg, &l); err != nil {
				t.log.Warn("the energy use of this link's radio is unknown", "link", l.Name, "error", err)
			}
			l.Terms.Spent = !t.data.affords(account(cfg, l))
			switch l.Terms.Closed() {
			case policy.NoReason:
				l.Path = &linkPath{t, l}
				use = append(use, l)
			case policy.Spent:
				if slices.ContainsFunc(before, func(b link.Link) bool { return b.Name == l.Name }) {
					t.log.Warn("this link has reached its data limit", "link", l.Name)
				}
			}
		}
		t.reach.SetLinks(all)
		t.engine.SetLinks(use)
		t.withdraw(before, use)
		t.using.set(use)
		if t.relay != nil {
			t.relay.SetLinks(use)
		}
		c := discover.Diff(before, use)
		for _, l := range c.Added {
			t.log.Info("link found", "link", l.Name, "kind", l.Kind, "metered", l.Terms.Metered)
			if l.Odd != "" && len(use) == 1 {
				t.log.Warn("the only link is "+l.Odd+": it is used since the system's own traffic leaves there; --link names others", "link", l.Name)
			}
		}
		for _, l := range c.Removed {
			t.log.Info("link lost", "link", l.Name)
		}
		if v := t.VPN(); (v == nil) != (vpn == nil) || v != nil && !slices.Equal(v.Interfaces, vpn.Interfaces) {
			t.tellVPN(v)
			vpn = v
		}
		if len(use) > 0 && !found {
			found = true
			close(t.found)
		}
		if first != nil {
			if len(use) == 0 {
				t.log.Warn("no link found yet: an interface must be up, with an address and a default route; name others with --link; see: tributary links, tributary doctor")
			}
			close(first)
			first = nil
		}
		before = use
	}
}

// withdraw ends everything that runs over metered links and may not, except transfers, which the engine looks after.
// When a link becomes metered, its idle connections are closed: closing them later would cost something.
func (t *Transport) withdraw(before, now []link.Link) {
	metered := map[string]bool{}
	for _, l := range now {
		if !l.Terms.Metered {
			continue
		}
		metered[l.Name] = true
		if slices.ContainsFunc(before, func(b link.Link) bool { return b.Name == l.Name && !b.Terms.Metered }) {
			t.pool.DropLink(l.Name)
			t.passThrough.DropIdle(l.Name)
		}
	}
	t.passThrough.Withdraw(func(name string) bool { return name == viaRelay || metered[name] })
	if t.metered != nil {
		t.metered(metered)
	}
}

// tellVPN logs how a VPN is treated.
func (t *Transport) tellVPN(v *VPN) {
	switch {
	case v == nil:
		t.log.Info("the system's traffic no longer uses a VPN")
	case v.Mode == config.VPNAround:
		t.log.Warn("downloads bypass the VPN because of vpn = \"around\"", "vpn", v.Interfaces)
	default:
		t.log.Info("downloads use the VPN and not the links beneath it; vpn = \"around\" bypasses it",
			"vpn", v.Interfaces)
	}
}

// LookAgain makes the Transport re-evaluate the current links, and what runs over them. It does not wait for that.
func (t *Transport) LookAgain() {
	select {
	case t.reconsider <- struct{}{}:
	default:
	}
}

// Balances returns the balances of the accounts with a data limit, by name.
func (t *Transport) Balances() map[string]allowance.Balance { return t.data.balances() }

// Affords reports whether an account may carry anything now.
func (t *Transport) Affords(account string) bool { return t.data.affords(account) }

// LinkOptions returns which links to look for, with their configuration.
func LinkOptions(cfg config.Config) discover.Options {
	o := discover.Options{Names: cfg.Links, Around: cfg.VPN == config.VPNAround}
	o.Of = func(name string) discover.Setting {
		l := cfg.LinkOf(name)
		return discover.Setting{DNS: l.Servers(), Metered: l.Metered, Enabled: l.Enabled}
	}
	for name, l := range cfg.Link {
		if l.Upstream() != nil {
			o.Taken = append(o.Taken, name)
		}
	}
	return o
}

// spreading returns which requests and tunnels are spread over links.
func spreading(cfg config.Config) spread.Policy {
	p := spread.Policy{Mode: spread.Mode(cfg.Spread)}
	for _, host := range cfg.Sticky {
		p.Sticky = append(p.Sticky, plainHost(host))
	}
	return p
}

// plainHost returns a host in the form that package spread compares.
func plainHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// rates returns the rate limits of links in bytes per second.
func rates(cfg config.Config) map[string]int64 {
	all := map[string]int64{}
	for name, l := range cfg.Link {
		if l.MaxRate > 0 {
			all[name] = int64(l.MaxRate)
		}
	}
	return all
}

// anyAllowed reports whether the configuration allows every interface.
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

// VPN is a VPN that carries the system's own traffic.
type VPN struct {
	Interfaces []string
	Mode       string // config.VPNFollow or config.VPNAround
}

// VPN returns the VPN that carries the system's own traffic; nil = there is none, or it is unknown.
func (t *Transport) VPN() *VPN {
	s, ok := t.device.(interface{ VPNs() []string })
	if !ok {
		return nil
	}
	names := s.VPNs()
	if len(names) == 0 {
		return nil
	}
	return &VPN{names, t.cfg.VPN}
}
