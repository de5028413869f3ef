package admin

import (
	"net"
	"net/http"

	"github.com/tributary-http/tributary/internal/engine"
)

// Handler serves the pages: metrics is the one of /metrics, status is read for /healthz at every request and from any
// goroutine, and proxy is where the proxy listens, for /proxy.pac.
func Handler(metrics http.Handler, status func() engine.Status, proxy net.Addr) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics)
	mux.Handle("/healthz", health(status))
	mux.Handle("/proxy.pac", autoConfig{proxy})
	return guard(mux)
}
