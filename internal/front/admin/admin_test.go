package admin

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/net/engine"
)

var proxyAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}

// serve returns the address of the pages of an engine with these links.
func serve(t *testing.T, links ...engine.LinkStatus) string {
	t.Helper()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "metrics") })
	s := httptest.NewServer(Handler(http.NotFoundHandler(), metrics, func() engine.Status { return engine.Status{Links: links} }, proxyAddr))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// ask returns the status and the body; host "" = the address itself.
func ask(t *testing.T, method, addr, path, host string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://"+addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = host
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestGuard(t *testing.T) {
	addr := serve(t, engine.LinkStatus{Name: "wlan0", State: "up"})
	port := addr[strings.LastIndexByte(addr, ':')+1:]
	for host, want := range map[string]int{
		"127.0.0.1:" + port:    200,
		"localhost:" + port:    200,
		"LOCALHOST:" + port:    200,
		"[::1]:" + port:        200,
		"evil.example":         403,
		"evil.example:" + port: 403,
		"localhost.evil":       403,
		"localhost:1":          403,
		"127.0.0.1":            403,
		"127.0.0.2:" + port:    403,
	} {
		t.Run("R180 Host "+host, func(t *testing.T) {
			for _, path := range []string{"/metrics", "/healthz", "/proxy.pac", "/none"} {
				code, _ := ask(t, "GET", addr, path, host)
				if want == 200 && path == "/none" {
					if code != 404 {
						t.Errorf("%s: %d, want 404", path, code)
					}
				} else if code != want {
					t.Errorf("%s: %d, want %d", path, code, want)
				}
			}
		})
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PATCH"} {
		t.Run("R181 "+method, func(t *testing.T) {
			if code, _ := ask(t, method, addr, "/healthz", ""); code != http.StatusMethodNotAllowed {
				t.Errorf("%d, want 405", code)
			}
		})
	}
	t.Run("R181 no CORS", func(t *testing.T) {
		resp, err := http.Get("http://" + addr + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if v := resp.Header.Get("Access-Control-Allow-Origin"); v != "" {
			t.Errorf("Access-Control-Allow-Origin: %s", v)
		}
	})
}

func TestHealth(t *testing.T) {
	for _, c := range []struct {
		name  string
		links []engine.LinkStatus
		code  int
		body  string
	}{
		{"up", []engine.LinkStatus{{Name: "wlan0", State: "down"}, {Name: "wwan0", State: "up"}}, 200, "ok\n"},
		{"suspect", []engine.LinkStatus{{Name: "wlan0", State: "suspect"}}, 200, "ok\n"},
		{"none", nil, 503, "no link is up: no usable interface found\n"},
		{
			"reasons",
			[]engine.LinkStatus{
				{Name: "wlan0", State: "banned", Reason: "silent"},
				{Name: "wwan0", State: "down", Reason: "dial origin.example:80: refused"},
			},
			503, "no link is up: wlan0 is banned (silent), wwan0 is down\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, body := ask(t, "GET", serve(t, c.links...), "/healthz", "")
			if code != c.code || body != c.body {
				t.Errorf("%d %q, want %d %q", code, body, c.code, c.body)
			}
		})
	}
}
