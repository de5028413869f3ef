package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/spread"
	"github.com/tributary-http/tributary/internal/front/admin"
	"github.com/tributary-http/tributary/internal/front/admission"
	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/front/gateway"
	"github.com/tributary-http/tributary/internal/front/intercept"
	"github.com/tributary-http/tributary/internal/front/metrics"
	"github.com/tributary-http/tributary/internal/front/page"
	"github.com/tributary-http/tributary/internal/front/proxy"
	"github.com/tributary-http/tributary/internal/front/rpc"
	"github.com/tributary-http/tributary/internal/host/peer"
	"github.com/tributary-http/tributary/internal/host/statefile"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/relay"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// drainTime is how long running requests may continue after the first signal; a second one ends the process at once. Without the
// app that owns the networks, nothing can continue for long.
const (
	drainTime    = 10 * time.Minute
	appDrainTime = 5 * time.Second
)

// Daemon is the proxy with everything it needs.
type Daemon struct {
	draining atomic.Bool   // it accepts no new connections
	cfg      config.Config // as at startup
	log      *slog.Logger
	version  string
	reloads  Reloads
	counters counters
	out      *transport.Transport
	proxy    *proxy.Proxy
	gateway  *gateway.Gateway // nil = there is none
	rpc      *rpcPart         // nil = there is none
	metrics  *metrics.Metrics
	live     *page.Page
	own      listeners
	sockets  sockets // listeners that systemd opened
	programs peer.Programs
	owner    admission.Owner // returns the user of a connection; nil = users are not distinguished
	private  *PrivateOptions // nil = the proxy is a service

	redirected *redirection
	appBridge  *appBridge    // nil = this process manages the links itself
	drainTime  time.Duration // how long running requests may continue at the end
	syncTime   time.Duration // interval at which the files of orders are synced to the disk
}

func newDaemon(cfg config.Config, log *slog.Logger) *Daemon {
	d := &Daemon{cfg: cfg, log: log, live: page.New(findings(cfg)), drainTime: drainTime, syncTime: syncTime}
	d.redirected = newRedirection(d)
	return d
}

// gcPercent keeps the collected heap close to its live size. The heap is small, since blocks lie outside of it and a request
// allocates little: half of it saves a tenth of the memory with 100 clients, and costs 3 % of processor time at most.
const gcPercent = 25

// SaveMemory tunes the garbage collector for low memory use, unless the user set GOGC.
func SaveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// Run serves until ctx is canceled, then lets running requests end. It notifies systemd (Type=notify-reload). If it cannot listen,
// the error is a *net.OpError.
func Run(ctx context.Context, cfg config.Config, version string, log *slog.Logger, reloads Reloads, scheduler func() schedule.Scheduler) error {
	SaveMemory()
	if cfg.AppSocket != "" {
		return runAppBridge(ctx, cfg, version, log, reloads)
	}
	open, err := inherited()
	if err != nil {
		return err
	}
	mark := ownMark()
	d := newDaemon(cfg, log)
	d.reloads, d.sockets = reloads, open
	err = d.build(version, transport.Config{
		Source: &link.Netlink{Options: transport.LinkOptions(cfg), Mark: mark}, Binder: link.Device{Mark: mark},
		History: transport.HistoryFile(cfg), RelayState: RelayFile(), Scheduler: scheduler,
	})
	if err != nil {
		return err
	}
	checkFiles(log)
	return d.serve(ctx, nil)
}

// build makes the parts. c defines where links come from and how connections over them are dialed.
func (d *Daemon) build(version string, c transport.Config) error {
	d.version = version
	// Metrics read the transport's status, and the transport reports its events to metrics.
	d.metrics = metrics.New(version,
		func() engine.Status { return d.out.Status() }, func() (relay.Status, bool) { return d.out.Relay() })
	c.Settings, c.Log = d.cfg, d.log
	c.Allow, c.DenyPrivate, c.Own = d.cfg.Destinations(), d.cfg.DenyPrivate, d.own.has
	c.Observers = []engine.Observer{d.metrics, &d.counters}
	switch {
	case d.appBridge != nil:
		c.Running, c.Undivided = d.appBridge.running, d.appBridge.undivided
		c.Metered = func(names map[string]bool) {
			d.proxy.Withdraw(names)
			signal(d.appBridge.consents)
		}
	case d.private == nil:
		c.Observers = append(c.Observers, d.live)
		c.Undivided = func(int, int) { d.live.Wake() }
	}
	c.LinkDown = func(name string) { d.proxy.CloseLink(name) }
	var err error
	if d.out, err = transport.New(c); err != nil {
		return err
	}
	users, err := d.cfg.Users(os.Getuid())
	if err != nil {
		return err
	}
	if d.appBridge == nil || users != nil { // otherwise Android hides sockets of other apps
		d.owner = owner
	}
	p := proxy.Config{
		Transport: d.out, Session: func() proxy.Session { return d.out.Session() }, Self: d.own.has, Log: d.log,
		Owner: d.owner, Users: users, TunnelPorts: d.cfg.ConnectPorts, Program: d.program,
		DialOrigin: d.out.DialOrigin, Untrusted: d.out.Untrusted, Overtaken: d.out.Overtaken,
	}
	if d.appBridge != nil {
		p.App, p.Meters = d.appBridge.app, d.appBridge.bridge.Meters
	}
	if d.cfg.Spread == spread.Auto {
		p.SpreadPrograms = d.cfg.SpreadPrograms
	}
	switch {
	case d.private != nil:
		if d.private.Intercept != nil {
			d.private.Intercept.Distrusts = d.distrusts
		}
		p.Users, p.Intercept, p.Carried, p.Refused = d.private.Users, d.private.Intercept, d.private.Carried, d.private.Refused
	case d.cfg.Intercept:
		if p.Intercept, err = interceptStored(d.log); err != nil {
			return err
		}
	}
	d.proxy = proxy.New(p)
	if d.cfg.RPC != "" && d.private == nil {
		if d.rpc, err = d.newRPC(); err != nil {
			return err
		}
	}
	if d.cfg.Gateway == "" || d.private != nil {
		return nil
	}
	hosts, err := gateway.NewHosts(d.cfg.GatewayHosts, statefile.Path(os.Getenv, "gateway-hosts.json"))
	if hosts == nil {
		return fmt.Errorf("gateway_hosts: %w", err)
	}
	if err != nil {
		d.log.Error("cannot read the recorded hosts of the gateway: only those of the configuration are allowed; run tributary use again", "error", err)
	}
	d.gateway = gateway.New(gateway.Config{Transport: d.out, Hosts: hosts, Log: d.log, Owner: d.owner, Users: users})
	return nil
}

// program returns the path of a client's program; see peer.Programs.
func (d *Daemon) program(local, remote netip.AddrPort, names []string) string {
	path, err := d.programs.Of(local, remote, names)
	if err != nil {
		d.log.Debug("cannot find the program of a connection", "error", err)
	}
	return path
}

// StoredAuthority returns the location of the authority of `tributary ca`.
func StoredAuthority() intercept.Stored {
	return intercept.Stored{Certificate: statefile.Path(os.Getenv, "ca.pem"), Key: statefile.Path(os.Getenv, "ca-key.pem")}
}

// RelayFile returns the path of the file that lists the relays this user has paired with.
func RelayFile() string { return statefile.Path(os.Getenv, "relay.json") }

// PinsFile returns the path of the file that lists the programs that reject certificates of an authority.
func PinsFile() string { return statefile.Path(os.Getenv, "pins.json") }

// StorePinsFile is PinsFile for commands that see the authority in the system's store.
func StorePinsFile() string { return statefile.Path(os.Getenv, "pins-store.json") }

// interceptStored returns an Interceptor that opens the connections to the hosts of the user's authority.
func interceptStored(log *slog.Logger) (*intercept.Interceptor, error) {
	a, err := StoredAuthority().Load()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("intercept = true needs an authority: create one with tributary ca init --hosts HOST,...: %w", err)
	}
	if err != nil {
		return nil, err
	}
	return intercept.NewInterceptor(intercept.Config{Authority: a, Only: a.Hosts(), Pins: intercept.OpenPins(PinsFile(), log)})
}

// owner asks the kernel which user owns a connection.
func owner(local, remote netip.AddrPort) (uint32, error) {
	uid, err := peer.Owner(local, remote)
	if errors.Is(err, peer.ErrUnknown) {
		err = fmt.Errorf("%w: %w", admission.ErrUnknown, err)
	}
	return uid, err
}

// mayWatch reports whether the requesting user may see the live page. Only the user who runs the proxy and root may.
func mayWatch(r *http.Request) bool {
	u := admission.UserFrom(r.Context())
	return u.Known() && (u.UID == 0 || u.UID == int64(os.Getuid()))
}

// shortServer returns a server for small pages that does not wait for slow or idle clients.
func shortServer(h http.Handler) *http.Server {
	const limit = 10 * time.Second
	return &http.Server{Handler: h, ReadHeaderTimeout: limit, ReadTimeout: limit, WriteTimeout: 3 * limit, IdleTimeout: limit, MaxHeaderBytes: 16 << 10}
}

// serve listens, finds links, and serves until ctx is canceled. ready, if not nil, is called with the proxy's address.
func (d *Daemon) serve(ctx context.Context, ready func(net.Addr)) error {
	var ln, adminLn, gatewayLn, rpcLn, socksLn, pageLn net.Listener
	closeAll := func() {
		for _, l := range []net.Listener{ln, adminLn, gatewayLn, rpcLn, socksLn, pageLn} {
			if l != nil {
				l.Close()
			}
		}
	}
	// the proxy last: once a client can connect to it, the other listeners are open as well
	for _, l := range []struct {
		addr string
		to   *net.Listener
	}{{d.cfg.Admin, &adminLn}, {d.cfg.Gateway, &gatewayLn}, {d.cfg.RPC, &rpcLn}, {d.cfg.SOCKS, &socksLn}, {d.cfg.Listen, &ln}} {
		if l.addr == "" {
			continue
		}
		var err error
		if *l.to, err = d.sockets.listen(l.addr); err != nil {
			if l.to == &gatewayLn && d.appBridge != nil { // the app needs the proxy, not the gateway
				d.log.Warn("the gateway does not work", "error", err)
				continue
			}
			closeAll()
			return err
		}
		d.own.add((*l.to).Addr())
	}
	if err := d.sockets.left(); err != nil {
		closeAll()
		return err
	}
	if adminLn != nil && rpcLn != nil {
		var err error
		if pageLn, err = rpc.ListenPage(); err != nil { // the proxy works without it
			d.log.Warn("the live page cannot change downloads", "error", err)
		} else {
			d.own.add(pageLn.Addr())
		}
	}
	ctl, err := d.listenControl()
	if err != nil {
		closeAll()
		return err
	}
	stop, err := d.out.Start(ctx) // requests drain over links that still work
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
	failed := make(chan error, 8)
	d.proxy.AutoConfig = admin.AutoConfig(ln.Addr())
	front := proxy.NewServer(d.proxy)
	parts.Go(func() { failed <- front.Serve(ln) })
	servers := []*http.Server{front.Server}
	if adminLn != nil {
		parts.Go(func() { d.live.Run(ctx, func() control.Status { return d.status(ln.Addr(), began) }) })
		pages := admin.Handler(d.live.Handler(mayWatch), d.metrics.Handler(), d.out.Status, ln.Addr())
		back := shortServer(pages)
		visitors := admission.Control{Limits: admission.Limits{Each: 64, Sure: 8, All: 128}, Named: []uint32{0, uint32(os.Getuid())}}
		visitors.Guard(back, d.owner, nil)
		parts.Go(func() { failed <- back.Serve(adminLn) })
		servers = append(servers, back)
	}
	if gatewayLn != nil {
		objects := gateway.NewServer(d.gateway)
		parts.Go(func() { failed <- objects.Serve(gatewayLn) })
		servers = append(servers, objects.Server)
	}
	if socksLn != nil {
		socks := proxy.NewSOCKS(d.proxy)
		parts.Go(func() { failed <- socks.Serve(socksLn) })
		defer socks.Shutdown()
	}
	if rpcLn != nil {
		downloading, done := context.WithCancel(ctx)
		defer done()
		parts.Go(func() {
			if err := d.rpc.queue.Run(downloading); err != nil {
				failed <- err
			}
		})
		if pageLn != nil {
			changing := d.rpc.server.Page(pageLn, admin.Live(d.live.Handler(mayWatch)))
			parts.Go(func() { failed <- changing.Serve(pageLn) })
			servers = append(servers, changing)
		}
		parts.Go(func() { failed <- d.rpc.server.HTTP().Serve(rpcLn) })
		servers = append(servers, d.rpc.server.HTTP())
		defer d.rpc.server.Close()
	}
	if ctl != nil {
		status := shortServer(d.controlHandler(ln.Addr(), gatewayLn, began))
		status.ConnContext = control.ConnContext
		status.WriteTimeout = 0 // a lease has no time limit
		parts.Go(func() { failed <- status.Serve(ctl) })
		defer status.Close() // last, so that a drain can be watched
	}
	if d.appBridge != nil {
		attended, done := context.WithCancel(ctx)
		defer done()
		parts.Go(func() { d.appBridge.attend(attended, func() control.Status { return d.status(ln.Addr(), began) }) })
		parts.Go(func() { d.fillOrders(attended) })
		parts.Go(func() { d.followWishes(attended) })
		parts.Go(func() { d.followConsents(attended) })
	}
	d.log.Info("listening", "proxy", ln.Addr().String(), "admin", d.cfg.Admin, "gateway", d.cfg.Gateway, "rpc", d.cfg.RPC, "socks", d.cfg.SOCKS, "scheduler", d.cfg.Scheduler)
	next := fmt.Sprintf("ready: for one command, http_proxy=http://%s curl -O http://HOST/FILE; for https, tributary run COMMAND", ln.Addr())
	if d.cfg.Admin != "" {
		next += fmt.Sprintf("; in a browser, http://%s/", d.cfg.Admin)
	}
	d.log.Info(next)
	if ready != nil {
		ready(ln.Addr())
	}
	notify(sd.SdNotifyReady)
	err = d.until(ctx, failed)
	notify(sd.SdNotifyStopping)
	return errors.Join(err, d.drain(servers))
}

// until waits for the end of ctx or a failure, and reloads the configuration on request.
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

// reloading returns the state that announces a reload, with the time that systemd requires.
func reloading() string { return sd.SdNotifyReloading + "\n" + sd.SdNotifyMonotonicUsec() }

// notify reports a state of the service to systemd (Type=notify-reload). Without systemd, it does nothing.
func notify(state string) { _, _ = sd.SdNotify(false, state) }

// drain lets running requests and tunnels end.
func (d *Daemon) drain(servers []*http.Server) error {
	d.draining.Store(true)
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
	d.out.Close()
	return errors.Join(errs...)
}
