package daemon

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/tributary-http/tributary/internal/admin"
	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/control"
	"github.com/tributary-http/tributary/internal/crowd"
	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/metrics"
	"github.com/tributary-http/tributary/internal/origin"
	"github.com/tributary-http/tributary/internal/peer"
	"github.com/tributary-http/tributary/internal/policy"
	"github.com/tributary-http/tributary/internal/proxy"
)

// drainTime is how long running requests may go on after the first signal; a second one ends the process at once. Without
// the host that owns the networks nothing can go on for long.
const (
	drainTime       = 10 * time.Minute
	hostedDrainTime = 5 * time.Second
)

// dialFunc connects over one link and no other.
type dialFunc = func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error)

// Daemon is the proxy with everything it needs.
type Daemon struct {
	*outward
	version string
	roots   *x509.CertPool // that https origins are verified against; nil = the system's
	reloads Reloads
	tally   tally
	plain   *origin.Plain
	proxy   *proxy.Proxy
	metrics *metrics.Metrics
	own     listeners
	sockets sockets     // that are open already
	owner   crowd.Owner // tells whose a connection is; nil = users are not told apart

	redirected *redirection
	hosted     *hosted       // nil = this process sees to the links itself
	drainTime  time.Duration // how long running requests may go on at the end
}

func newDaemon(cfg config.Config, log *slog.Logger, source link.Source) *Daemon {
	d := &Daemon{outward: newOutward(cfg, log, source), drainTime: drainTime}
	d.redirected = newRedirection(d)
	d.reach.Allow, d.reach.DenyPrivate, d.reach.Own = cfg.Destinations(), cfg.DenyPrivate, d.own.has
	return d
}

// gcPercent keeps the collected heap near what is in use. It is small, since blocks lie outside of it, and what is allocated
// for a request is little.
const gcPercent = 50

// saveMemory sets the pace of the garbage collector, unless the user has.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// Run serves until ctx is cancelled, then lets running requests end. It tells systemd about it (Type=notify-reload). An error of listening is a *net.OpError.
func Run(ctx context.Context, cfg config.Config, version string, log *slog.Logger, reloads Reloads) error {
	saveMemory()
	if cfg.HostSocket != "" {
		return runHosted(ctx, cfg, version, log, reloads)
	}
	open, err := inherited()
	if err != nil {
		return err
	}
	mark := ownMark()
	d := newDaemon(cfg, log, &link.Netlink{Options: options(cfg), Mark: mark})
	d.reloads, d.sockets = reloads, open
	if err := d.build(d.dialing(link.Device{Mark: mark}), version); err != nil {
		return err
	}
	checkFiles(log)
	return d.serve(ctx, nil)
}

// build makes the parts.
func (d *Daemon) build(dial dialFunc, version string) error {
	d.version = version
	// Metrics read the engine's status, and the engine tells metrics its events.
	d.metrics = metrics.New(version, func() engine.Status { return d.engine.Status() })
	see := []engine.Observer{d.metrics, &d.tally, newJournal(d.log)}
	if d.hosted != nil {
		see = append(see, d.hosted)
	}
	if err := d.connect(dial, d.roots, d.linkDown, see...); err != nil {
		return err
	}
	users, err := d.cfg.Users(os.Getuid())
	if err != nil {
		return err
	}
	if d.hosted == nil || users != nil { // else Android does not tell apps of each other's sockets: no need to ask
		d.owner = peer.Owner
	}
	d.plain = origin.NewPlain(dial, d.engine.Ranked, d.roots)
	d.proxy = proxy.New(proxy.Config{
		Getter: d.engine, Plain: d.plain, Pin: func() proxy.Pinned { return d.plain.Pin() }, Policy: policy.Policy{}, Self: d.own.has, Observer: observers{d.metrics, &d.tally}, Log: d.log,
		Owner: d.owner, Users: users, TunnelPorts: d.cfg.ConnectPorts,
	})
	return nil
}

// shortServer returns a server of small pages: who is slow or idle is not waited for.
func shortServer(h http.Handler) *http.Server {
	const limit = 10 * time.Second
	return &http.Server{Handler: h, ReadHeaderTimeout: limit, ReadTimeout: limit, WriteTimeout: 3 * limit, IdleTimeout: limit, MaxHeaderBytes: 16 << 10}
}

// linkDown drops what can only hang on a link that went down.
func (d *Daemon) linkDown(name string) {
	d.pool.DropLink(name)
	d.plain.DropLink(name)
	d.proxy.CloseLink(name)
}

// serve listens, finds links, and serves until ctx is cancelled. ready, if not nil, is called with the proxy's address.
func (d *Daemon) serve(ctx context.Context, ready func(net.Addr)) error {
	ln, err := d.sockets.listen(d.cfg.Listen)
	if err != nil {
		return err
	}
	d.own.add(ln.Addr())
	var adminLn net.Listener
	closeAll := func() {
		ln.Close()
		if adminLn != nil {
			adminLn.Close()
		}
	}
	if d.cfg.Admin != "" {
		if adminLn, err = d.sockets.listen(d.cfg.Admin); err != nil {
			closeAll()
			return err
		}
		d.own.add(adminLn.Addr())
	}
	if err := d.sockets.left(); err != nil {
		closeAll()
		return err
	}
	ctl, err := d.listenControl()
	if err != nil {
		closeAll()
		return err
	}
	stop, err := d.start(ctx) // requests drain over links that still work
	if err != nil {
		closeAll()
		if ctl != nil {
			ctl.Close()
		}
		return err
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	defer d.redirected.serving.Wait()
	defer stop()

	began := time.Now()
	failed := make(chan error, 3)
	front := proxy.NewServer(d.proxy)
	parts.Go(func() { failed <- front.Serve(ln) })
	servers := []*http.Server{front}
	if adminLn != nil {
		pages := admin.Handler(d.metrics.Handler(), d.engine.Status, ln.Addr())
		back := shortServer(pages)
		visitors := crowd.Crowd{Limits: crowd.Limits{Each: 16, Sure: 8, All: 64}}
		visitors.Guard(back, d.owner)
		parts.Go(func() { failed <- back.Serve(adminLn) })
		servers = append(servers, back)
	}
	if ctl != nil {
		status := shortServer(d.controlHandler(ln.Addr(), began))
		status.ConnContext = control.ConnContext
		status.WriteTimeout = 0 // a lease goes on as long as it is held
		parts.Go(func() { failed <- status.Serve(ctl) })
		defer status.Close() // to the end: a drain can be watched
	}
	if d.hosted != nil {
		attended, done := context.WithCancel(ctx)
		defer done()
		parts.Go(func() { d.hosted.attend(attended, func() control.Status { return d.status(ln.Addr(), began) }) })
		parts.Go(func() { d.fillOrders(attended) })
	}
	d.log.Info("listening", "proxy", ln.Addr().String(), "admin", d.cfg.Admin, "scheduler", d.cfg.Scheduler)
	if ready != nil {
		ready(ln.Addr())
	}
	notify(sd.SdNotifyReady)
	err = d.until(ctx, failed)
	notify(sd.SdNotifyStopping)
	return errors.Join(err, d.drain(servers))
}

// until waits for the end of ctx or a failure, and reloads when that is wanted.
func (d *Daemon) until(ctx context.Context, failed <-chan error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-d.reloads.Wanted:
			notify(reloading())
			if err := d.reload(d.reloads); err != nil {
				d.log.Error("not reloaded", "error", err)
			} else {
				d.log.Info("reloaded")
			}
			notify(sd.SdNotifyReady)
		}
	}
}

// reloading is the state that a reload begins with: systemd wants to know when.
func reloading() string { return sd.SdNotifyReloading + "\n" + sd.SdNotifyMonotonicUsec() }

// notify tells systemd a state of the service (Type=notify-reload). Without systemd nothing happens.
func notify(state string) { _, _ = sd.SdNotify(false, state) }

// observers tells all of them.
type observers []engine.Observer

func (all observers) Observe(e engine.Event) {
	for _, o := range all {
		o.Observe(e)
	}
}

// drain lets running requests and tunnels end.
func (d *Daemon) drain(servers []*http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), d.drainTime)
	defer cancel()
	var all sync.WaitGroup
	errs := make([]error, len(servers)+2)
	for i, s := range servers {
		all.Go(func() {
			if errs[i] = s.Shutdown(ctx); errs[i] != nil {
				s.Close()
			}
		})
	}
	all.Go(func() { errs[len(servers)] = d.proxy.Shutdown(ctx) })
	all.Go(func() { errs[len(servers)+1] = d.redirected.shutdown(ctx) })
	all.Wait()
	d.plain.Close()
	d.pool.Close()
	return errors.Join(errs...)
}
