package gateway

import (
	"net/http"
	"testing"
)

// TestCookiesOfAChain: a server gets the cookies back that it set before in the same chain of redirects, and nobody else gets them.
func TestCookiesOfAChain(t *testing.T) {
	w := &world{servers: map[string]http.HandlerFunc{
		"files.example:443": func(w http.ResponseWriter, r *http.Request) {
			switch c, err := r.Cookie("k"); {
			case r.URL.Path == "/seen":
				says(r.Header.Get("Cookie"))(w, r)
			case r.URL.Path == "/out":
				w.Header().Set("Set-Cookie", "k=1; Path=/; Domain=example")
				sends("https://cdn.example/x")(w, r)
			case err == nil && c.Value == "1":
				says("the file")(w, r)
			default:
				w.Header().Set("Set-Cookie", "k=1; Path=/")
				sends(r.URL.Path)(w, r)
			}
		},
		"cdn.example:443": func(w http.ResponseWriter, r *http.Request) { says("cookies: "+r.Header.Get("Cookie"))(w, r) },
	}}
	addr := serve(t, w, "files.example")
	for _, c := range []struct{ name, path, want string }{
		{"R238 the same host", "/https/files.example/again", "the file"},
		{"R238 the next request", "/https/files.example/seen", ""},
		{"R238 another host", "/https/files.example/out", "cookies: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := ask(t, addr, http.MethodGet, c.path, "Cookie: s=browser")
			if resp.StatusCode != http.StatusOK || body != c.want || resp.Header.Get("Set-Cookie") != "" {
				t.Errorf("%s: %q, %v", resp.Status, body, resp.Header)
			}
		})
	}
}
