package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/health"
	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/metrics"
	"github.com/tributary-http/tributary/internal/origin"
	"github.com/tributary-http/tributary/internal/peer"
	"github.com/tributary-http/tributary/internal/policy"
	"github.com/tributary-http/tributary/internal/proxy"
)

// drainTime is how long running requests may go on after the first signal; a second one ends the process at once.
const drainTime = 10 * time.Minute

// dialFunc connects over one link and no other.
type dialFunc = func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error)

// Daemon is the proxy with everything it needs.
type Daemon struct {
	cfg     config.Config
	log     *slog.Logger
	source  link.Source
	engine  *engine.Engine
	pool    *origin.Pool
	plain   *origin.Plain
	proxy   *proxy.Proxy
	metrics *metrics.Metrics
	own     listeners
	reach   link.Destinations
}

// gcPercent keeps the collected heap near what is in use. It is small, since blocks lie outside of it, and what is allocated
// for a request is little.
const gcPercent = 50

// Run serves until ctx is cancelled, then lets running requests end. An error of listening is a *net.OpError.
func Run(ctx context.Context, cfg config.Config, version string, log *slog.Logger) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	d := &Daemon{cfg: cfg, log: log, source: &link.Netlink{Options: options(cfg)}}
	if err := d.build(d.dialer(link.Device{}).DialContext, version); err != nil {
		return err
	}
	checkFiles(log)
	return d.serve(ctx, nil)
}

// dialer returns what all connections to origins are made with: it goes where the configuration allows.
func (d *Daemon) dialer(b link.Binder) *link.Dialer {
	resolver := &link.Resolver{Binder: b, AllLinksAllowed: len(d.cfg.Links) == 0 && !anyDisabled(d.cfg)}
	d.reach.Allow, d.reach.DenyPrivate, d.reach.Own = d.cfg.Destinations(), d.cfg.DenyPrivate, d.own.has
	return &link.Dialer{Binder: b, Resolver: resolver, Allow: d.reach.Check}
}

// build makes the parts.
func (d *Daemon) build(dial dialFunc, version string) error {
	d.pool = origin.New(dial, nil)
	// Metrics read the engine's status, and the engine tells metrics its events.
	d.metrics = metrics.New(version, func() engine.Status { return d.engine.Status() })
	var err error
	d.engine, err = engine.New(engine.Config{
		Opener: d.pool, Dial: dial, Log: d.log, Observers: []engine.Observer{d.metrics, newJournal(d.log)},
		Scheduler: d.cfg.Algorithm(), Restart: d.cfg.Continuation == "restart",
		Budget: int64(d.cfg.Budget), Window: int64(d.cfg.TransferWindow), Threshold: int64(d.cfg.Threshold),
		Patience: d.cfg.WaitForLink, SlowLink: health.PaperLimits,
		LinkDown: d.linkDown,
	})
	if err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	users, err := d.cfg.Users(os.Getuid())
	if err != nil {
		return err
	}
	d.plain = origin.NewPlain(dial, d.engine.Ranked, nil)
	d.proxy = proxy.New(proxy.Config{
		Getter: d.engine, Plain: d.plain, Policy: policy.Policy{}, Self: d.own.has, Observer: d.metrics, Log: d.log,
		Owner: peer.Owner, Users: users, TunnelPorts: d.cfg.ConnectPorts,
	})
	return nil
}

// linkDown drops what can only hang on a link that went down.
func (d *Daemon) linkDown(name string) {
	d.pool.DropLink(name)
	d.plain.DropLink(name)
	d.proxy.CloseLink(name)
}

// serve listens, finds links, and serves until ctx is cancelled. ready, if not nil, is called with the proxy's address.
func (d *Daemon) serve(ctx context.Context, ready func(net.Addr)) error {
	ln, err := net.Listen("tcp", d.cfg.Listen)
	if err != nil {
		return err
	}
	d.own.add(ln.Addr())
	var admin net.Listener
	if d.cfg.Admin != "" {
		if admin, err = net.Listen("tcp", d.cfg.Admin); err != nil {
			ln.Close()
			return err
		}
		d.own.add(admin.Addr())
	}

	inner, stop := context.WithCancel(context.WithoutCancel(ctx)) // outlives ctx: requests drain over links that still work
	defer stop()
	links, err := d.source.Watch(inner)
	if err != nil {
		ln.Close()
		if admin != nil {
			admin.Close()
		}
		return fmt.Errorf("look for links: %w", err)
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	defer stop()
	first := make(chan struct{})
	parts.Go(func() { d.follow(links, first) })
	parts.Go(func() { d.engine.Run(inner) })
	<-first // a request that comes at once finds the links

	failed := make(chan error, 2)
	front := proxy.NewServer(d.proxy)
	parts.Go(func() { failed <- front.Serve(ln) })
	servers := []*http.Server{front}
	if admin != nil {
		back := &http.Server{Handler: d.metrics.Handler(), ReadHeaderTimeout: 10 * time.Second}
		parts.Go(func() { failed <- back.Serve(admin) })
		servers = append(servers, back)
	}
	d.log.Info("listening", "proxy", ln.Addr().String(), "admin", d.cfg.Admin, "scheduler", d.cfg.Scheduler)
	if ready != nil {
		ready(ln.Addr())
	}
	select {
	case <-ctx.Done():
		err = nil
	case err = <-failed:
	}
	return errors.Join(err, d.drain(servers))
}

// drain lets running requests and tunnels end.
func (d *Daemon) drain(servers []*http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	var all sync.WaitGroup
	errs := make([]error, len(servers)+1)
	for i, s := range servers {
		all.Go(func() {
			if errs[i] = s.Shutdown(ctx); errs[i] != nil {
				s.Close()
			}
		})
	}
	all.Go(func() { errs[len(servers)] = d.proxy.Shutdown(ctx) })
	all.Wait()
	d.plain.Close()
	d.pool.Close()
	return errors.Join(errs...)
}

// follow tells the engine which links there are, until the source ends.
func (d *Daemon) follow(links <-chan []link.Link, first chan<- struct{}) {
	var before []link.Link
	for all := range links {
		var use []link.Link
		for _, l := range all {
			if d.cfg.Allows(l.Name) {
				use = append(use, l)
			}
		}
		d.reach.SetLinks(all)
		d.engine.SetLinks(use)
		c := link.Diff(before, use)
		for _, l := range c.Added {
			d.log.Info("link found", "link", l.Name, "kind", l.Kind, "metered", l.Metered)
		}
		for _, l := range c.Removed {
			d.log.Info("link lost", "link", l.Name)
		}
		if first != nil {
			if len(use) == 0 {
				d.log.Warn("no link found yet: an interface must be up, with an address and a default route; name others with --link")
			}
			close(first)
			first = nil
		}
		before = use
	}
}

// options says which links to look for, and what is configured of them.
func options(cfg config.Config) link.Options {
	o := link.Options{Names: cfg.Links, DNS: map[string][]netip.AddrPort{}, Metered: map[string]bool{}}
	for name, l := range cfg.Link {
		if s := l.Servers(); len(s) > 0 {
			o.DNS[name] = s
		}
		if l.Metered != nil {
			o.Metered[name] = *l.Metered
		}
	}
	return o
}

func anyDisabled(cfg config.Config) bool {
	for _, l := range cfg.Link {
		if l.Enabled != nil && !*l.Enabled {
			return true
		}
	}
	return false
}
