package page

import (
	"embed"
	"fmt"
	"net/http"
	"path"
	"time"
)

//go:embed static
var static embed.FS

// types are the media types of the files.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// policy lets the page load only its own files, and does not let other pages frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// writeTime is the time limit for writing one update.
const writeTime = 10 * time.Second

// Handler returns a handler for the page at / and its parts below /live/. owns reports whether the user of a request
// may see it.
func (p *Page) Handler(owns func(*http.Request) bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { file(w, r, "index.html") })
	mux.HandleFunc("GET /live/{name}", func(w http.ResponseWriter, r *http.Request) { file(w, r, r.PathValue("name")) })
	mux.HandleFunc("GET /live/events", p.events)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		switch {
		case foreign(r):
			http.Error(w, "Another site requested this page. Open it by its own address.", http.StatusForbidden)
		case !owns(r):
			http.Error(w, "Only root and the user who runs Tributary may open this page.", http.StatusForbidden)
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

// foreign reports whether a page of another site made the request (Fetch Metadata). Following a link to the page itself
// is allowed.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return r.Header.Get("Origin") != "" && r.Header.Get("Origin") != "http://"+r.Host
	}
	return r.URL.Path != "/" || r.Header.Get("Sec-Fetch-Mode") != "navigate" ||
		r.Header.Get("Sec-Fetch-Dest") != "document"
}

func file(w http.ResponseWriter, r *http.Request, name string) {
	b, err := static.ReadFile("static/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	_, _ = w.Write(b) // the browser is gone
}

// events sends updates as server-sent events (HTML section 9.2) until the browser disconnects or the proxy ends.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	v := make(viewer, 1)
	select {
	case p.join <- v:
	case <-p.closed:
		http.Error(w, "Tributary is shutting down.", http.StatusServiceUnavailable)
		return
	case <-r.Context().Done():
		return
	}
	defer func() {
		select {
		case p.leave <- v:
		case <-p.closed:
		}
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	to := http.NewResponseController(w)
	for {
		select {
		case b := <-v:
			if to.SetWriteDeadline(time.Now().Add(writeTime)) != nil {
				return
			}
			if _, err := fmt.Fprintf(w, "data: %s\n\n", b); err != nil || to.Flush() != nil {
				return
			}
		case <-p.closed:
			return
		case <-r.Context().Done():
			return
		}
	}
}
