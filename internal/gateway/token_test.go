package gateway

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestToken: who knows the token may ask any host of the internet, and nobody else may ask more than before.
func TestToken(t *testing.T) {
	const token = "AbCdEfGhIjKlMnOpQrSt_-"
	w := &world{servers: map[string]http.HandlerFunc{
		"cdn.example:443": says("film"), "cdn.example:8443": says("port"), "router.lan:443": says("secret"), "10.0.0.1:443": says("secret"),
		"away.example:443": sends("https://cdn.example/there"), "inward.example:443": sends("https://10.0.0.1/"),
	}}
	hosts, err := NewHosts(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	g := New(Config{Transport: w, Hosts: hosts, Log: slog.New(slog.DiscardHandler)})
	s := httptest.NewUnstartedServer(nil)
	s.Config = NewServer(g)
	s.Start()
	defer s.Close()
	get := func(path string) (int, string) {
		resp, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	if code, _ := get("/" + token + "/https/cdn.example/a"); code == http.StatusOK {
		t.Error("before there is a token")
	}
	g.SetToken(token)
	for path, want := range map[string]string{
		"/https/cdn.example/a?b": "film", "/https/cdn.example:8443/": "port", "/https/away.example/": "film",
		"/https/router.lan/": "", "/https/10.0.0.1/": "", "/https/[::1]/": "", "/https/inward.example/": "", "/https/": "", "/": "", "": "",
		"/simple/cdn.example/": "", "/v2/cdn.example/x/manifests/1": "",
	} {
		code, text := get("/" + token + path)
		if got := code == http.StatusOK; got != (want != "") || got && text != want {
			t.Errorf("%s: %d %q", path, code, text)
		}
	}
	for _, wrong := range []string{"", "/" + strings.ToLower(token), "/" + token[1:], "/" + token + "x"} {
		if code, _ := get(wrong + "/https/cdn.example/a"); code == http.StatusOK {
			t.Errorf("with %q", wrong)
		}
	}
	for _, bad := range []string{"", token[1:], token[1:] + "/"} {
		g.SetToken(bad)
		for _, known := range []string{bad, token} {
			if code, _ := get("/" + known + "/https/cdn.example/a"); code == http.StatusOK {
				t.Errorf("%q is a token", known)
			}
		}
	}
}
