package daemon

import (
	"context"
	"net"
	"net/http"

	"github.com/tributary-http/tributary/internal/front/admin"
	"github.com/tributary-http/tributary/internal/front/metrics"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// ServeRelayMetrics serves the metrics of a relay server at /metrics until ctx ends.
func ServeRelayMetrics(ctx context.Context, ln net.Listener, status func() relay.ServerStatus) error {
	s := shortServer(admin.Metrics(metrics.Relay(status)))
	defer context.AfterFunc(ctx, func() { s.Close() })()
	if err := s.Serve(ln); err != http.ErrServerClosed {
		return err
	}
	return nil
}
