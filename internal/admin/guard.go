package admin

import (
	"net"
	"net/http"
	"strings"
)

// guard refuses requests that a page of another site could send here: a Host that is not this machine's own name for itself
// (403, DNS rebinding, R180), and every method that could change something (405, R181).
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !own(r) {
			http.Error(w, "Host is not the address of this page", http.StatusForbidden)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "these pages are read-only", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// own reports whether Host is the address that the request came in at: 127.0.0.1, localhost or [::1] with the port of the
// listener, or the address of the connection itself, which is a number and so cannot be rebound.
func own(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	_, port, err := net.SplitHostPort(local.String())
	if err != nil {
		return false
	}
	switch strings.ToLower(r.Host) {
	case "127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port, local.String():
		return true
	}
	return false
}
