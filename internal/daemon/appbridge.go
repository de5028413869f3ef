package daemon

import (
	"context"
	"fmt"
	"log/slog"
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
	telling  = time.Second      // between two statuses for the app, while there are transfers
)

// appBridge keeps the app informed: whether mobile data is wanted, and the status of transfers.
type appBridge struct {
	bridge    *appbridge.Bridge
	started   chan struct{} // capacity 1: a transfer has begun
	transfers atomic.Int64  // that run
}

func newAppBridge(h *appbridge.Bridge) *appBridge {
	return &appBridge{bridge: h, started: make(chan struct{}, 1)}
}

// runAppBridge is Run with the networks of an app.
func runAppBridge(ctx context.Context, cfg config.Config, version string, log *slog.Logger, reloads Reloads) error {
	dial, cancel := context.WithTimeout(ctx, greeting)
	h, err := appbridge.Dial(dial, cfg.AppSocket, log)
	cancel()
	if err != nil {
		return fmt.Errorf("%w: it is the app that starts tributary in this mode", err)
	}
	defer h.Close()
	d := newDaemon(cfg, log)
	d.reloads, d.drainTime = reloads, appDrainTime
	d.appBridge = newAppBridge(h)
	if err := d.build(version, transport.Config{Source: h, Binder: h, Names: h.Lookup, History: transport.HistoryFile(cfg)}); err != nil {
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

// running is engine.Config.Running: transfers can use mobile data.
func (h *appBridge) running(transfers int) {
	if before := h.transfers.Swap(int64(transfers)); int64(transfers) < before {
		return
	}
	select {
	case h.started <- struct{}{}:
	default:
	}
}

// attend asks for mobile data while there are transfers, and reports them to the app, until ctx ends.
func (h *appBridge) attend(ctx context.Context, status func() control.Status) {
	h.bridge.Tell(status())
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.started:
		}
		h.bridge.Want(true)
		if !h.during(ctx, status) {
			return
		}
		h.bridge.Want(false)
	}
}

// during reports the status to the app until no transfer has run for a while; false = ctx has ended.
func (h *appBridge) during(ctx context.Context, status func() control.Status) bool {
	tick := time.NewTicker(telling)
	defer tick.Stop()
	last := time.Now() // that there was a transfer
	for {
		select {
		case <-ctx.Done():
			return false
		case <-h.started:
			last = time.Now()
			continue
		case now := <-tick.C:
			busy := h.transfers.Load() > 0
			if busy || now.Sub(last) < 2*telling { // the end, too
				h.bridge.Tell(status())
			}
			if busy {
				last = now
			}
			if now.Sub(last) >= linger {
				return true
			}
		}
	}
}
