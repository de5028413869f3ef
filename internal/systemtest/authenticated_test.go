package systemtest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/daemon"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// authority is an origin that authenticates connections instead of requests, as servers with NTLM and Negotiate do (RFC 4559
// section 6): once a connection belongs to a user, every request on it does.
type authority struct {
	*httptest.Server
	open atomic.Int32 // connections
}

// session is the origin's record of a connection.
type session struct {
	mu        sync.Mutex
	challenge bool
	user      string
}

type sessionKey struct{}

func newAuthority(t *testing.T) *authority {
	a := &authority{}
	a.Server = httptest.NewUnstartedServer(a)
	a.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, sessionKey{}, &session{})
	}
	a.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			a.open.Add(1)
		case http.StateClosed:
			a.open.Add(-1)
		}
	}
	a.Start()
	t.Cleanup(a.Close)
	return a
}

func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := r.Context().Value(sessionKey{}).(*session)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = io.Copy(io.Discard, r.Body)
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case token == "hello":
		s.challenge = true
		w.Header().Set("Www-Authenticate", scheme+" challenge")
	case scheme == "NTLM" && !s.challenge:
	case token != "":
		s.user, s.challenge = token, false
	}
	if s.user == "" {
		if !s.challenge {
			w.Header().Add("Www-Authenticate", "Negotiate")
			w.Header().Add("Www-Authenticate", "NTLM")
		}
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Etag", `"1"`)
	http.ServeContent(w, r, "secret", time.Time{}, strings.NewReader("secret of "+s.user+strings.Repeat(".", 1<<20)))
}

// proxied starts the proxy over two links that both lead to addr.
func proxied(t *testing.T, addr string) *url.URL {
	t.Helper()
	dial := func(ctx context.Context, _ link.Link, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	_, u, stop, err := daemon.StartWith(t.Context(), settings(), slog.New(slog.DiscardHandler),
		transport.Config{Source: discover.NewStatic(link.DialFunc(dial).Over(named("wifi", "lte")...)...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { within(t, "stop of the proxy", stop) })
	proxy, err := url.Parse(u)
	if err != nil {
		t.Fatal(err)
	}
	return proxy
}

// asks sends one request, reads the whole answer, and returns the secret in it.
func asks(t *testing.T, c *http.Client, method, u string, fields ...string) string {
	t.Helper()
	var content io.Reader
	if method == http.MethodPost {
		content = strings.NewReader("content")
	}
	r, err := http.NewRequestWithContext(t.Context(), method, u, content)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Sprint(resp.StatusCode)
	}
	secret, _, _ := strings.Cut(string(b), ".")
	return secret
}

// TestAuthenticatedConnections: a connection that an origin authenticated serves only the client that authenticated it.
func TestAuthenticatedConnections(t *testing.T) {
	others := []struct {
		name, method string
		fields       []string
	}{
		{"GET", "GET", nil},
		{"GET with trailers", "GET", []string{"Te: trailers"}},
		{"POST", "POST", nil},
		{"HEAD", "HEAD", nil},
		{"OPTIONS", "OPTIONS", nil},
	}
	for _, tt := range []struct {
		name      string
		handshake []string // values of Authorization
	}{
		{"NTLM", []string{"NTLM hello", "NTLM alice"}},
		{"Negotiate", []string{"Negotiate alice"}},
		{"Negotiate with a challenge", []string{"negotiate hello", "Negotiate alice"}},
		{"Kerberos", []string{"Kerberos alice"}},
		{"an unknown scheme", []string{"Mystery alice"}},
	} {
		for _, method := range []string{"GET", "POST"} {
			t.Run("R83 "+tt.name+" by "+method, func(t *testing.T) {
				a := newAuthority(t)
				proxy := proxied(t, a.Listener.Addr().String())
				alice := client(t, proxy)
				got := ""
				for _, credentials := range tt.handshake {
					got = asks(t, alice, method, a.URL, "Authorization: "+credentials)
				}
				if got != "secret of alice" {
					t.Fatalf("alice gets %s", got)
				}
				for _, o := range others {
					if got := asks(t, client(t, proxy), o.method, a.URL, o.fields...); got != "401" {
						t.Errorf("somebody else gets %s by %s", got, o.name)
					}
				}
				for _, o := range others { // as for direct requests, without credentials
					if got := asks(t, alice, o.method, a.URL, o.fields...); got != "secret of alice" && o.method != "HEAD" && o.method != "OPTIONS" {
						t.Errorf("alice gets %s by %s", got, o.name)
					}
				}
				before := a.open.Load()
				alice.CloseIdleConnections()
				until(t, "the connection of alice is closed", limit, func() bool { return a.open.Load() < before })
			})
		}
	}
	t.Run("R83 handshakes of two clients at a time", func(t *testing.T) {
		a := newAuthority(t)
		proxy := proxied(t, a.Listener.Addr().String())
		alice, bob := client(t, proxy), client(t, proxy)
		asks(t, alice, "POST", a.URL, "Authorization: NTLM hello")
		if got := asks(t, bob, "POST", a.URL, "Authorization: NTLM bob"); got != "401" {
			t.Errorf("bob gets %s with the challenge of alice", got)
		}
		asks(t, bob, "POST", a.URL, "Authorization: NTLM hello")
		if got := asks(t, alice, "POST", a.URL, "Authorization: NTLM alice"); got != "secret of alice" {
			t.Errorf("alice gets %s", got)
		}
		if got := asks(t, bob, "POST", a.URL, "Authorization: NTLM bob"); got != "secret of bob" {
			t.Errorf("bob gets %s", got)
		}
		if got := asks(t, alice, "GET", a.URL); got != "secret of alice" {
			t.Errorf("alice gets %s", got)
		}
	})
	t.Run("R83 credentials of a request need no connection of their own", func(t *testing.T) {
		a := newAuthority(t)
		proxy := proxied(t, a.Listener.Addr().String())
		for range 20 {
			asks(t, client(t, proxy), "PUT", a.URL, "Authorization: Basic alice")
		}
		if n := a.open.Load(); n > 2 {
			t.Errorf("%d connections for requests one after the other", n)
		}
	})
}
