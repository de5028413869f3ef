package gateway

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestToken: a client that knows the token may use any host of the internet; other clients get no more hosts than before.
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
	s.Config = NewServer(g).Server
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

// slow is an origin that sends only half of its announced content until the request ends.
type slow struct{ begun chan struct{} }

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	body, out := io.Pipe()
	go func() {
		_, _ = io.WriteString(out, "half ")
		close(s.begun)
		<-r.Context().Done()
		out.CloseWithError(context.Cause(r.Context()))
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body, ContentLength: 10, Request: r}, nil
}

// TestNewToken: with a new token, the old one becomes invalid, and requests that used it end. Setting the same token again changes
// nothing.
func TestNewToken(t *testing.T) {
	const old, fresh = "AbCdEfGhIjKlMnOpQrSt_-", "bbCdEfGhIjKlMnOpQrSt_-"
	hosts, err := NewHosts(nil, "")
	if err != nil {
		t.Fatal(err)
	}
	w := slow{make(chan struct{})}
	g := New(Config{Transport: w, Hosts: hosts, Log: slog.New(slog.DiscardHandler)})
	g.SetToken(old)
	s := httptest.NewUnstartedServer(nil)
	s.Config = NewServer(g).Server
	s.Start()
	defer s.Close()
	type result struct {
		text string
		err  error
	}
	ended := make(chan result, 1)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/"+old+"/https/cdn.example/film", nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			ended <- result{"", err}
			return
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		ended <- result{string(b), err}
	}()
	<-w.begun
	valid := g.token.Load().valid
	g.SetToken(old)
	if valid.Err() != nil {
		t.Error("the same token ends what it opened")
	}
	g.SetToken(fresh)
	select {
	case r := <-ended:
		if r.err == nil {
			t.Errorf("half of the film looks complete: %q", r.text)
		}
	case <-time.After(10 * time.Second):
		s.CloseClientConnections() // otherwise the server waits for it
		t.Fatal("an old player plays on")
	}
	resp, err := http.Get(s.URL + "/" + old + "/https/cdn.example/film")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		t.Error("the old token opens more")
	}
}
