package admin

import (
	"net/http"

	"github.com/tributary-http/tributary/internal/front/admission"
)

// guard rejects requests that a page of another site could send here: those whose Host is not one of this machine's own
// names (403, DNS rebinding, R180), and those with a method that could change something (405, R181).
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !admission.OwnName(r) {
			http.Error(w, "the Host field does not name this server: open the page by its own address",
				http.StatusForbidden)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are allowed here", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}
