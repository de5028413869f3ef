package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

// tokenWorld is a registry whose objects need a token that any client gets, and whose blobs are on another host.
func tokenWorld(realm string) *world {
	registry := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
		switch {
		case r.Header.Get("Authorization") != "Bearer anybody":
			w.Header().Set("Www-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="registry",scope="repository:library/x:pull"`, realm))
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/v2/library/x/blobs/sha256:ab":
			sends("https://cdn.example/blob")(w, r)
		default:
			w.Header().Set("Docker-Content-Digest", "sha256:cd")
			_, _ = w.Write([]byte(r.RequestURI))
		}
	}
	return &world{servers: map[string]http.HandlerFunc{
		"registry-1.docker.io:443": registry, "registry.example:443": registry,
		"cdn.example:443": func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			_, _ = w.Write([]byte("blob"))
		},
		"auth.example:443": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery != "scope=repository%3Alibrary%2Fx%3Apull&service=registry" || r.Header.Get("Authorization") != "" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			_, _ = w.Write([]byte(`{"token":"anybody","expires_in":300}`))
		},
	}}
}

func TestRegistries(t *testing.T) {
	w := tokenWorld("https://auth.example/token")
	addr := serve(t, w, "docker.io", "registry.example")
	for path, want := range map[string]string{
		"/v2/":                                "{}",
		"/v2/?ns=docker.io":                   "{}",
		"/v2/library/x/manifests/1":           "/v2/library/x/manifests/1",
		"/v2/docker.io/library/x/manifests/1": "/v2/library/x/manifests/1",
		"/v2/registry.example/library/x/tags/list?n=5":   "/v2/library/x/tags/list?n=5",
		"/v2/library/x/blobs/sha256:ab":                  "blob",
		"/v2/registry.example/library/x/blobs/sha256:ab": "blob",
	} {
		resp, body := ask(t, addr, http.MethodGet, path)
		if resp.StatusCode != http.StatusOK || body != want || resp.Header.Get("Docker-Distribution-Api-Version") == "" && body != "blob" {
			t.Errorf("%s: %s, %q, %v", path, resp.Status, body, resp.Header)
		}
	}
	tokens := 0
	for _, a := range w.asked() {
		if a[:4] == "auth" {
			tokens++
		}
	}
	if tokens != 2 {
		t.Errorf("asked for %d tokens, want one for each repository", tokens)
	}
	if resp, _ := ask(t, addr, http.MethodHead, "/v2/library/x/manifests/1"); resp.StatusCode != http.StatusOK || resp.Header.Get("Docker-Content-Digest") != "sha256:cd" {
		t.Errorf("HEAD: %s, %v", resp.Status, resp.Header)
	}
	// Clients that know the registry get its demand for a token, as do those whose own token is invalid.
	for path, field := range map[string]string{
		"/v2/library/x/manifests/1?ns=docker.io": "Accept: */*", "/v2/library/x/manifests/1": "Authorization: Bearer old",
	} {
		resp, _ := ask(t, addr, http.MethodGet, path, field)
		if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("Www-Authenticate") == "" {
			t.Errorf("%s, %s: %s", path, field, resp.Status)
		}
	}
	resp, body := ask(t, addr, http.MethodGet, "/v2/library/x/manifests/1?ns=docker.io", "Authorization: Bearer anybody")
	if resp.StatusCode != http.StatusOK || body != "/v2/library/x/manifests/1" {
		t.Errorf("%s, %q", resp.Status, body)
	}
}

// TestRealms: a registry cannot make the gateway request tokens from the local network, or by http.
func TestRealms(t *testing.T) {
	for _, realm := range []string{
		"http://auth.example/token", "https://127.0.0.1/token", "https://router.lan/token", "https://auth.example:8443/token",
		"https://user@auth.example/token", "https://none.example/token", "", "https://auth.example/denied",
	} {
		w := tokenWorld(realm)
		w.servers["auth.example:443"] = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
		addr := serve(t, w, "registry.example")
		resp, _ := ask(t, addr, http.MethodGet, "/v2/registry.example/library/x/manifests/1")
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s", realm, resp.Status)
		}
		if n := len(slices.DeleteFunc(w.asked(), func(a string) bool {
			return a == "none.example:443 /token?scope=repository%3Alibrary%2Fx%3Apull&service=registry"
		})); n > 2 || n > 1 && realm != "https://auth.example/denied" {
			t.Errorf("%s: asked for %q", realm, w.asked())
		}
	}
}

func TestChallenge(t *testing.T) {
	for field, want := range map[string]string{
		`Bearer realm="https://a/t",service="s",scope="repository:x:pull"`: "https://a/t?scope=repository%3Ax%3Apull&service=s",
		`bearer realm=https://a/t, service=s`:                              "https://a/t?service=s",
		`Bearer realm="https://a/t?x=1"`:                                   "https://a/t?x=1&",
		`Bearer realm="https://a/t`:                                        "",
		`Bearer service="s"`:                                               "",
		`Basic realm="x"`:                                                  "",
		`Bearer`:                                                           "",
		``:                                                                 "",
		`Bearer ,=,"`:                                                      "",
	} {
		if got, ok := challenge([]string{field}); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v", field, got, ok)
		}
	}
}

func TestTokens(t *testing.T) {
	var k tokens
	now := time.Now()
	for i := range maxTokens + 10 {
		k.put(fmt.Sprint(i), "x", now.Add(time.Minute), now)
	}
	if len(k.of) > maxTokens || k.get(fmt.Sprint(maxTokens+9), now) != "x" {
		t.Errorf("%d tokens", len(k.of))
	}
	if got := k.get(fmt.Sprint(maxTokens+9), now.Add(time.Minute)); got != "" {
		t.Error("one that has ended")
	}
	if k.put("new", "x", now.Add(2*time.Minute), now.Add(time.Minute)); len(k.of) != 1 {
		t.Errorf("%d tokens, of which one holds", len(k.of))
	}
}
