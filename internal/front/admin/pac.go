package admin

import (
	_ "embed"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

//go:embed proxy.pac
var script string

// autoConfig serves the script that points a browser to the proxy (R73).
type autoConfig struct{ proxy net.Addr }

func (a autoConfig) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ns-proxy-autoconfig")
	w.Header().Set("Cache-Control", "no-cache")
	io.WriteString(w, strings.ReplaceAll(script, "PROXY-ADDRESS", a.address(r)))
}

// address returns the address at which the browser reaches the proxy. If the proxy listens on all addresses, it is the
// address of this page.
func (a autoConfig) address(r *http.Request) string {
	at, err := netip.ParseAddrPort(a.proxy.String())
	if err != nil || !at.Addr().IsUnspecified() {
		return a.proxy.String()
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return netip.AddrPortFrom(local.AddrPort().Addr().Unmap(), at.Port()).String()
	}
	return a.proxy.String()
}
