package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/net/link/appbridge"
	"github.com/tributary-http/tributary/internal/net/transport"
)

const (
	greeting = 5 * time.Second  // for the app to answer at startup
	linger   = 30 * time.Second // that mobile data stays on after the last transfer, since another may follow
	telling  = time.Second      // between two status reports to the app while something runs
)

// appBridge keeps the app informed of the status of transfers and of whether mobile data is wanted.
type appBridge struct {
	bridge    *appbridge.Bridge
	started   chan struct{} // capacity 1: something started that mobile data could help
	consents  chan struct{} // capacity 1: the links that apps may use may have changed
	moving    chan struct{} // capacity 1: another tunnel or undivided request started to move data
	transfers atomic.Int64  // running transfers
	further   atomic.Int64  // running transfers that mobile data could help
	tunnels   atomic.Int64  // tunnels and undivided requests that move data
	spread    atomic.Int64  // of these, the ones whose program could use further links
	affords   func() bool   // reports whether mobile data has something left this month and today
}

func newAppBridge(h *appbridge.Bridge, affords func() bool) *appBridge {
	return &appBridge{
		bridge:   h,
		affords:  affords,
		started:  make(chan struct{}, 1),
		moving:   make(chan struct{}, 1),
		consents: make(chan struct{}, 1),
	}
}

// runAppBridge is like Run, but uses the networks of an app.
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
		Source:     h,
		Binder:     h,
		Names:      h.Lookup,
		Limits:     h.Limits,
		Limited:    h.Limited(),
		History:    transport.HistoryFile(cfg),
		RelayState: RelayFile(),
		Paired:     true,
		Pays:       h.Pays,
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

// running implements engine.Config.Running. Transfers can use mobile data, except those of apps that may not.
func (h *appBridge) running(transfers, further int) {
	if before := h.transfers.Swap(int64(transfers)); int64(transfers) > before {
		signal(h.moving)
	}
	if before := h.further.Swap(int64(further)); int64(further) > 0 && int64(further) >= before {
		signal(h.started)
	}
}

// undivided implements transport.Config.Undivided. Tunnels count like downloads, but mobile data is requested only if
// the program could use it, so not for a browser's tunnels.
func (h *appBridge) undivided(running, spread int) {
	if before := h.tunnels.Swap(int64(running)); int64(running) > before {
		signal(h.moving)
	}
	if before := h.spread.Swap(int64(spread)); int64(spread) > before {
		signal(h.started)
	}
}

// changed reports the status to the app at once.
func (h *appBridge) changed() { signal(h.moving) }

// followConsents ends everything that runs over metered links for apps that may no longer use them, until ctx ends.
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

// ownerTime is how long the app may take to name the owner of a connection, while the client waits.
const ownerTime = 2 * time.Second

// app implements proxy.Config.App.
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

// attend requests mobile data while it could help, and a little longer, unless its data limit is used up. It reports
// what runs to the app. It returns when ctx ends.
func (h *appBridge) attend(ctx context.Context, status func() control.Status) {
	h.bridge.Tell(status())
	tick := time.NewTicker(telling)
	defer tick.Stop()
	ticks := tick.C
	var ran, helped time.Time // when something last ran, and when something last ran that mobile data could help
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
			if now.Sub(ran) < 2*telling { // report the end, too
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
