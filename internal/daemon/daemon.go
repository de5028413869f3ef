package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
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
	"github.com/tributary-http/tributary/internal/front/gateway"
	"github.com/tributary-http/tributary/internal/front/intercept"
	"github.com/tributary-http/tributary/internal/front/metrics"
	"github.com/tributary-http/tributary/internal/front/page"
	"github.com/tributary-http/tributary/internal/front/proxy"
	"github.com/tributary-http/tributary/internal/host/peer"
	"github.com/tributary-http/tributary/internal/host/statefile"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/relay"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// drainTime is how long running requests may continue after the first signal; a second one ends the process at once.
// Without the app that owns the networks, nothing can continue for long.
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

	began      time.Time
	at         net.Addr // of the proxy
	gatewayAt  net.Addr // nil = there is none
	redirected *redirection
	appBridge  *appBridge    // nil = this process manages the links itself
	drainTime  time.Duration // how long running requests may continue at the end
	syncTime   time.Duration // interval at which the files of orders are synced to the disk
}

func newDaemon(cfg config.Config, log *slog.Logger) *Daemon {
	d := &Daemon{
		cfg:       cfg,
		log:       log,
		live:      page.New(findings(cfg)),
		at:        &net.TCPAddr{},
		drainTime: drainTime,
		syncTime:  syncTime,
	}
	d.redirected = newRedirection(d)
	return d
}

// Settings returns the configuration in use.
func (d *Daemon) Settings() config.Config { return d.out.Settings() }

// Listeners returns the TCP addresses at which clients are served, in the order in which they were opened: the admin
// port, the gateway, RPC, SOCKS, the page's own port, the proxy. What the configuration leaves out is missing.
func (d *Daemon) Listeners() []netip.AddrPort { return d.own.all() }

// gcPercent keeps the collected heap close to its live size. The heap is small, since blocks lie outside of it and a
// request allocates little: half of it saves a tenth of the memory with 100 clients, and costs 3 % of processor time at
// most.
const gcPercent = 25

// SaveMemory tunes the garbage collector for low memory use, unless the user set GOGC.
func SaveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// Run serves until ctx is canceled, then lets running requests end. It notifies systemd (Type=notify-reload). If it
// cannot listen, the error is a *net.OpError.
func Run(ctx context.Context, cfg config.Config, version string, log *slog.Logger, reloads Reloads,
	scheduler func() schedule.Scheduler,
) error {
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
		Source:     &discover.Netlink{Options: transport.LinkOptions(cfg), Mark: mark},
		Binder:     link.Device{Mark: mark},
		History:    transport.HistoryFile(cfg),
		RelayState: RelayFile(),
		Scheduler:  scheduler,
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
		Transport:   d.out,
		Session:     func() proxy.Session { return d.out.Session() },
		Self:        d.own.has,
		Log:         d.log,
		Owner:       d.owner,
		Users:       users,
		TunnelPorts: d.cfg.ConnectPorts,
		Program:     d.program,
		DialOrigin:  d.out.DialOrigin,
		Untrusted:   d.out.Untrusted,
		Overtaken:   d.out.Overtaken,
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
		p.Users, p.Intercept, p.Carried, p.Refused = d.private.Users, d.private.Intercept, d.private.Carried,
			d.private.Refused
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
	d.gateway = gateway.New(gateway.Config{
		Transport: d.out,
		Hosts:     hosts,
		Log:       d.log,
		Owner:     d.owner,
		Users:     users,
	})
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
	return intercept.Stored{
		Certificate: statefile.Path(os.Getenv, "ca.pem"),
		Key:         statefile.Path(os.Getenv, "ca-key.pem"),
	}
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
		return nil, fmt.Errorf("intercept = true needs an authority: create one with tributary ca init --hosts HOST,...: %w",
			err)
	}
	if err != nil {
		return nil, err
	}
	return intercept.NewInterceptor(intercept.Config{
		Authority: a, Only: a.Hosts(), Pins: intercept.OpenPins(PinsFile(), log),
	})
}

// owner asks the kernel which user owns a connection.
func owner(local, remote netip.AddrPort) (uint32, error) {
	uid, err := peer.Owner(local, remote)
	if errors.Is(err, peer.ErrUnknown) {
		err = fmt.Errorf("%w: %w", admission.ErrUnknown, err)
	}
	return uid, err
}

// serve listens, finds links, and serves until ctx is canceled. ready, if not nil, is called with the proxy's address.
func (d *Daemon) serve(ctx context.Context, ready func(net.Addr)) error {
	fronts := d.fronts()
	if err := d.listen(fronts); err != nil {
		return err
	}
	stop, err := d.out.Start(ctx) // requests drain over links that still work
	if err != nil {
		closeAll(fronts)
		return err
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	defer d.redirected.serving.Wait()
	defer stop()
	running, ended := context.WithCancel(ctx)
	defer ended()

	d.began = time.Now()
	d.proxy.AutoConfig = admin.AutoConfig(d.at)
	failed := make(chan error, len(fronts)+1)
	serveAll(fronts, &parts, failed)
	for _, task := range d.tasks(failed) {
		parts.Go(func() { task(running) })
	}
	d.log.Info("listening", "proxy", d.at.String(), "admin", d.cfg.Admin, "gateway", d.cfg.Gateway, "rpc", d.cfg.RPC,
		"socks", d.cfg.SOCKS, "scheduler", d.cfg.Scheduler)
	next := fmt.Sprintf("ready: for one command, http_proxy=http://%s curl -O http://HOST/FILE; for https, tributary run COMMAND", d.at)
	if d.cfg.Admin != "" {
		next += fmt.Sprintf("; in a browser, http://%s/", d.cfg.Admin)
	}
	d.log.Info(next)
	if ready != nil {
		ready(d.at)
	}
	notify(sd.SdNotifyReady)
	err = d.until(ctx, failed)
	notify(sd.SdNotifyStopping)
	return errors.Join(err, d.drain(fronts))
}

// tasks returns what runs beside the fronts.
func (d *Daemon) tasks(failed chan<- error) (all []func(ctx context.Context)) {
	if d.cfg.Admin != "" {
		all = append(all, func(ctx context.Context) { d.live.Run(ctx, d.Status) })
	}
	if d.rpc != nil {
		all = append(all, func(ctx context.Context) {
			if err := d.rpc.queue.Run(ctx); err != nil {
				failed <- err
			}
		})
	}
	if d.appBridge != nil {
		attend := func(ctx context.Context) { d.appBridge.attend(ctx, d.Status) }
		all = append(all, attend, d.fillOrders, d.followWishes, d.followConsents)
	}
	return all
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
			if err := d.Reload(d.reloads); err != nil {
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
func (d *Daemon) drain(fronts []*front) error {
	d.draining.Store(true)
	ctx, cancel := context.WithTimeout(context.Background(), d.drainTime)
	defer cancel()
	var all sync.WaitGroup
	errs := make([]error, 3)
	all.Go(func() { errs[0] = shutDown(ctx, fronts) })
	all.Go(func() { errs[1] = d.proxy.Shutdown(ctx) })
	all.Go(func() { errs[2] = d.redirected.shutdown(ctx) })
	all.Wait()
	d.out.Close()
	for _, f := range fronts {
		if c, ok := f.running.(io.Closer); ok && f.last {
			c.Close()
		}
	}
	return errors.Join(errs...)
}
