package admin

import (
	"net"
	"net/http"

	"github.com/tributary-http/tributary/internal/engine"
)

// AutoConfig serves only the script that makes programs use the proxy at an address.
func AutoConfig(proxy net.Addr) http.Handler { return guard(autoConfig{proxy}) }

// Metrics serves only a page of metrics.
func Metrics(page http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", page)
	return guard(mux)
}

// Handler serves the pages: live is the one at / with its parts below /live/, metrics the one of /metrics, status is read for
// /healthz at every request and from any goroutine, and proxy is where the proxy listens, for /proxy.pac.
func Handler(live, metrics http.Handler, status func() engine.Status, proxy net.Addr) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/{$}", live)
	mux.Handle("/live/", live)
	mux.Handle("/metrics", metrics)
	mux.Handle("/healthz", health(status))
	mux.Handle("/proxy.pac", autoConfig{proxy})
	return guard(mux)
}
