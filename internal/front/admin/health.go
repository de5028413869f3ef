package admin

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tributary-http/tributary/internal/net/engine"
)

// health answers 200 if a link is up. A suspect link is still in use and counts.
type health func() engine.Status

func (h health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	links := h().Links
	for _, l := range links {
		if l.State == "up" || l.State == "suspect" {
			fmt.Fprintln(w, "ok")
			return
		}
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprintln(w, unhealthy(links))
}

// unhealthy returns why no link is up. It omits reasons that may contain a host name (R181).
func unhealthy(links []engine.LinkStatus) string {
	if len(links) == 0 {
		return "no link is up: no usable interface found"
	}
	each := make([]string, len(links))
	for i, l := range links {
		each[i] = l.Name + " is " + l.State
		if l.Reason != "" && !strings.ContainsAny(l.Reason, ".:/\r\n") {
			each[i] += " (" + l.Reason + ")"
		}
	}
	return "no link is up: " + strings.Join(each, ", ")
}
