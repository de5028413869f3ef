package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/control"
	"github.com/tributary-http/tributary/internal/link/appbridge"
	"github.com/tributary-http/tributary/internal/transport"
)

const (
	greeting = 5 * time.Second  // for the app to answer at the start
	linger   = 30 * time.Second // that mobile data is kept after the last transfer: the next one may follow
	telling  = time.Second      // between two statuses for the app, while something runs
)

// appBridge keeps the app informed: whether mobile data is wanted, and the status of transfers.
type appBridge struct {
	bridge    *appbridge.Bridge
	started   chan struct{} // capacity 1: something has begun that mobile data could help
	consents  chan struct{} // capacity 1: what apps may use may have changed
	moving    chan struct{} // capacity 1: another tunnel or undivided request has begun to move data
	transfers atomic.Int64  // that run
	further   atomic.Int64  // those of them that mobile data could help
	tunnels   atomic.Int64  // that move data, undivided requests included
	spread    atomic.Int64  // those of them whose program could use further links
	affords   func() bool   // mobile data has something left this month and today
}

func newAppBridge(h *appbridge.Bridge, affords func() bool) *appBridge {
	return &appBridge{bridge: h, affords: affords, started: make(chan struct{}, 1), moving: make(chan struct{}, 1), consents: make(chan struct{}, 1)}
}

// runAppBridge is Run with the networks of an app.
func runAppBridge(ctx context.Context, cfg config.Config, version string, log *slog.Logger, reloads Reloads) error {
	dial, cancel := context.WithTimeout(ctx, greeting)
	h, err := appbridge.Dial(dial, cfg.AppSocket, log)
	cancel()
	if err != nil {
		return fmt.Errorf("%w: in this mode, the app must start tributary", err)
	}
	defer h.Close()
	d := newDaemon(cfg, log)
	d.reloads, d.drainTime = reloads, appDrainTime
	d.appBridge = newAppBridge(h, func() bool { return d.out.Affords(h.Cellular()) })
	if err := d.build(version, transport.Config{
		Source: h, Binder: h, Names: h.Lookup, Limits: h.Limits, Limited: h.Limited(), History: transport.HistoryFile(cfg),
		RelayState: RelayFile(), Paired: true, Pays: h.Pays,
	}); err != nil {
		return err
	}
	ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-h.Gone():
			log.Info("the app that owns the networks is gone")
			cancel()
		case <-ctx.Done():
		}
	}()
	err = d.serve(ctx, nil)
	cancel()
	<-watched
	return err
}

// running is engine.Config.Running: transfers can use mobile data, but those of apps that may not.
func (h *appBridge) running(transfers, further int) {
	if before := h.transfers.Swap(int64(transfers)); int64(transfers) > before {
		signal(h.moving)
	}
	if before := h.further.Swap(int64(further)); int64(further) > 0 && int64(further) >= before {
		signal(h.started)
	}
}

// undivided is transport.Config.Undivided. Tunnels count like downloads, but mobile data is asked for only where the program
// could use it: not for a browser's.
func (h *appBridge) undivided(running, spread int) {
	if before := h.tunnels.Swap(int64(running)); int64(running) > before {
		signal(h.moving)
	}
	if before := h.spread.Swap(int64(spread)); int64(spread) > before {
		signal(h.started)
	}
}

// changed has the app told the status at once.
func (h *appBridge) changed() { signal(h.moving) }

// followConsents ends what runs over metered links for apps that may no longer use these, until ctx ends.
func (d *Daemon) followConsents(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.appBridge.consents:
			if d.proxy.Reconsider() {
				d.out.LookAgain()
			}
		}
	}
}

// ownerTime is for the app to say whose a connection is. A client waits for that.
const ownerTime = 2 * time.Second

// app is proxy.Config.App.
func (h *appBridge) app(local, remote netip.AddrPort) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), ownerTime)
	defer cancel()
	return h.bridge.Owner(ctx, local, remote)
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// attend asks for mobile data while it could help and a little longer, but not when it has nothing left, and reports what runs to
// the app, until ctx ends.
func (h *appBridge) attend(ctx context.Context, status func() control.Status) {
	h.bridge.Tell(status())
	tick := time.NewTicker(telling)
	defer tick.Stop()
	ticks := tick.C
	var ran, helped time.Time // when something ran last, and something that mobile data could help
	wanted := false
	want := func(now time.Time) {
		if w := !helped.IsZero() && now.Sub(helped) < linger && h.affords(); w != wanted {
			wanted = w
			h.bridge.Want(w)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.started:
			ran = time.Now()
			helped = ran
			want(ran)
		case <-h.moving:
			ran = time.Now()
		case now := <-ticks:
			if h.further.Load()+h.spread.Load() > 0 {
				helped = now
			}
			if h.transfers.Load()+h.tunnels.Load() > 0 {
				ran = now
			}
			if now.Sub(ran) < 2*telling { // the end, too
				h.bridge.Tell(status())
			}
			want(now)
			if !wanted && now.Sub(ran) >= 2*telling {
				tick.Stop()
				ticks = nil
			}
			continue
		}
		if ticks == nil {
			tick.Reset(telling)
			ticks = tick.C
		}
	}
}
