package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// Start runs the proxy on a free loopback port over the given links; stop ends it and waits.
func Start(ctx context.Context, links []link.Link) (proxyURL string, stop func(), err error) {
	_, proxyURL, stop, err = StartWith(ctx, proxyAlone(), slog.New(slog.DiscardHandler),
		transport.Config{Source: discover.NewStatic(links...)})
	return proxyURL, stop, err
}

// proxyAlone returns a configuration without any other listener.
func proxyAlone() config.Config {
	cfg := config.Default()
	cfg.Listen, cfg.Admin, cfg.Control = "127.0.0.1:0", "", ""
	return cfg
}

// StartWith is like Start, but takes a configuration, a log, and what t sets: links that may change, dialers,
// authorities.
func StartWith(ctx context.Context, cfg config.Config, log *slog.Logger,
	t transport.Config,
) (d *Daemon, proxyURL string, stop func(), err error) {
	d = newDaemon(cfg, log)
	if err := d.build("demo", t); err != nil {
		return nil, "", nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ready, ended := make(chan net.Addr, 1), make(chan error, 1)
	go func() { ended <- d.serve(ctx, func(a net.Addr) { ready <- a }) }()
	select {
	case a := <-ready:
		return d, "http://" + a.String(), func() { cancel(); <-ended }, nil
	case err := <-ended:
		cancel()
		return nil, "", nil, fmt.Errorf("start the proxy: %w", err)
	}
}
