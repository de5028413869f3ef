package admission

import (
	"net"
	"net/http"
	"strings"
)

// OwnName reports whether the Host of a request is one of this machine's own names: 127.0.0.1, localhost,
// tributary.localhost or [::1] with the port of the listener, or the numeric address of the connection. For a page
// whose name temporarily resolves to this machine (DNS rebinding), Host is the page's own name.
func OwnName(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	_, port, err := net.SplitHostPort(local.String())
	if err != nil {
		return false
	}
	switch strings.ToLower(r.Host) {
	case "127.0.0.1:" + port, "localhost:" + port, "tributary.localhost:" + port, "[::1]:" + port, local.String():
		return true
	}
	return false
}
