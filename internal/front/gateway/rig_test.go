package gateway

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tributary-http/tributary/internal/front/admission"
	"github.com/tributary-http/tributary/internal/net/link"
)

// world is a Transport that leads to its servers, by their "host:port".
type world struct {
	servers map[string]http.HandlerFunc

	mu   sync.Mutex
	seen []*http.Request
}

// RoundTrip implements http.RoundTripper.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.seen = append(w.seen, r)
	w.mu.Unlock()
	if r.URL.Scheme != "https" {
		return nil, errors.New("asked for without TLS")
	}
	h := w.servers[r.URL.Host]
	if h == nil {
		return nil, link.ErrDenied
	}
	path, query, _ := strings.Cut(r.URL.RequestURI(), "?")
	in := &http.Request{Method: r.Method, Host: r.Host, Header: r.Header.Clone(), RequestURI: r.URL.RequestURI()}
	in = in.WithContext(r.Context())
	in.URL = r.URL.JoinPath() // a copy
	in.URL.Opaque, in.URL.Path, in.URL.RawQuery = "", path, query
	rec := httptest.NewRecorder()
	h(rec, in)
	resp := rec.Result()
	resp.ContentLength = int64(rec.Body.Len())
	if r.Method == http.MethodHead {
		resp.Body, resp.ContentLength = http.NoBody, -1
	}
	return resp, nil
}

// asked returns the requests so far as "HOST PATH".
func (w *world) asked() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.seen {
		all = append(all, r.URL.Host+" "+r.URL.RequestURI())
	}
	return all
}

// says returns a server that answers everything with a text.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// sends returns a server that redirects everything.
func sends(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	}
}

// serve starts a gateway for all users and returns its address.
func serve(t *testing.T, by http.RoundTripper, hosts ...string) string {
	t.Helper()
	return serveUsers(t, by, nil, nil, hosts...)
}

func serveUsers(t *testing.T, by http.RoundTripper, owner admission.Owner, users []uint32, hosts ...string) string {
	t.Helper()
	h, err := NewHosts(hosts, "")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(New(Config{Transport: by, Hosts: h, Log: slog.New(slog.DiscardHandler), Owner: owner, Users: users}))
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
	return l.Addr().String()
}

// ask sends a request whose target has exactly these bytes, with fields "Name: value".
func ask(t *testing.T, addr, method, path string, fields ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.URL.Opaque = path
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		if name == "Host" {
			r.Host = value
		}
		r.Header.Add(name, value)
	}
	tr := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}
