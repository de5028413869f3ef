package admin

import (
	"net"
	"net/http"

	"github.com/tributary-http/tributary/internal/net/engine"
)

// AutoConfig returns a handler that serves only the script that makes programs use the proxy at an address.
func AutoConfig(proxy net.Addr) http.Handler { return guard(autoConfig{proxy}) }

// Metrics returns a handler that serves only a page of metrics.
func Metrics(page http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", page)
	return guard(mux)
}

// Live returns a handler that serves only the live page.
func Live(live http.Handler) http.Handler { return guard(withLive(live)) }

// withLive returns a mux that has the live page.
func withLive(live http.Handler) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/{$}", live)
	mux.Handle("/live/", live)
	return mux
}

// Handler returns a handler for all pages: live serves / and everything below /live/, metrics serves /metrics, status
// is called for each request of /healthz, from any goroutine, and proxy is the listening address of the proxy, for
// /proxy.pac.
func Handler(live, metrics http.Handler, status func() engine.Status, proxy net.Addr) http.Handler {
	mux := withLive(live)
	mux.Handle("/metrics", metrics)
	mux.Handle("/healthz", health(status))
	mux.Handle("/proxy.pac", autoConfig{proxy})
	return guard(mux)
}
