package gateway

import (
	"net/http"
	"testing"
)

// hub answers as huggingface.co does for a file that is stored elsewhere.
func hub(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/m/resolve/main/model.bin":
		for name, value := range map[string]string{
			"Location": "https://cas.example/x?sig=1", "X-Repo-Commit": "c0ffee", "X-Linked-Etag": `"sha"`, "X-Linked-Size": "4242",
			"Etag": `"redirect"`, "X-Xet-Hash": "ab", "X-Xet-Refresh-Route": "/x", "Accept-Ranges": "bytes", "Content-Type": "text/plain",
			"Link": `<https://hub.example/xet>; rel="xet-auth", <https://cas.example/y>; rel="xet-reconstruction-info"`,
		} {
			w.Header().Set(name, value)
		}
		w.WriteHeader(http.StatusFound)
		_, _ = w.Write([]byte("Found. Redirecting"))
	case "/renamed/resolve/main/model.bin":
		sends("/m/resolve/main/model.bin")(w, r)
	case "/odd/resolve/main/model.bin":
		sends("https://cas.example/x?sig=1")(w, r)
	case "/api/models/m/tree/main":
		w.Header().Set("Link", `<https://hub.example/api/models/m/tree/main?cursor=x>; rel="next"`)
		_, _ = w.Write([]byte("[]"))
	}
}

func TestHub(t *testing.T) {
	w := &world{servers: map[string]http.HandlerFunc{"hub.example:443": hub, "cas.example:443": says("content")}}
	addr := serve(t, w, "hub.example")
	for _, path := range []string{"/hf/hub.example/m/resolve/main/model.bin", "/hf/hub.example/renamed/resolve/main/model.bin"} {
		resp, _ := ask(t, addr, http.MethodHead, path, "Authorization: Bearer hf_secret")
		for name, want := range map[string]string{
			"X-Repo-Commit": "c0ffee", "Etag": `"sha"`, "X-Linked-Size": "4242", "Accept-Ranges": "bytes",
			"Location": "", "X-Xet-Hash": "", "X-Xet-Refresh-Route": "", "Link": "",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("HEAD %s: %s: %q, want %q", path, name, got, want)
			}
		}
		if resp.StatusCode != http.StatusOK || resp.ContentLength != 4242 {
			t.Errorf("HEAD %s: %s, %d bytes", path, resp.Status, resp.ContentLength)
		}
		if resp, body := ask(t, addr, http.MethodGet, path); resp.StatusCode != http.StatusOK || body != "content" {
			t.Errorf("GET %s: %s, %q", path, resp.Status, body)
		}
	}
	// If a hub does not describe a file, its redirect is followed.
	if resp, _ := ask(t, addr, http.MethodHead, "/hf/hub.example/odd/resolve/main/model.bin"); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
	resp, _ := ask(t, addr, http.MethodGet, "/hf/hub.example/api/models/m/tree/main")
	if got, want := resp.Header.Get("Link"), "<http://"+addr+`/hf/hub.example/api/models/m/tree/main?cursor=x>; rel="next"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.seen {
		if r.URL.Host == "cas.example:443" && r.Header.Get("Authorization") != "" {
			t.Error("the token went to the storage")
		}
	}
}
