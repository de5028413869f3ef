package transport

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// MeasureRelay downloads from a relay over the links of this machine, see [relay.Measure].
func MeasureRelay(ctx context.Context, cfg config.Config, path, address string,
	log *slog.Logger,
) (gains []relay.Gain, all float64, err error) {
	cfg.Relay = config.Default().Relay
	t, err := Own(cfg, nil, log)
	if err != nil {
		return nil, 0, err
	}
	defer t.Close()
	var links lister
	t.relay = &links
	stop, err := t.Start(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer stop()
	t.Await(ctx)
	return relay.Measure(ctx, path, address, links.get(), int64(cfg.Budget), log)
}

// lister stands in for a relay, and keeps the links.
type lister struct{ links atomic.Pointer[[]link.Link] }

func (l *lister) get() []link.Link {
	if p := l.links.Load(); p != nil {
		return *p
	}
	return nil
}

// SetLinks implements relay.End.
func (l *lister) SetLinks(all []link.Link) { l.links.Store(&all) }

// Dial implements relay.End.
func (*lister) Dial(context.Context, string) (net.Conn, error) { return nil, relay.ErrAway }

// Run implements relay.End.
func (*lister) Run(context.Context) {}

// Status implements relay.End.
func (*lister) Status() relay.Status { return relay.Status{} }
