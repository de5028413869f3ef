package origin_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/net/direct"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
	ot "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// routes is a Path that knows whether addresses belong to a VPN now.
type routes struct{ elsewhere atomic.Bool }

// Revalidate implements link.Revalidator.
func (r *routes) Revalidate(string, net.Conn) error {
	if r.elsewhere.Load() {
		return link.ErrOffLink
	}
	return nil
}

// Dial implements link.Path.
func (r *routes) Dial(ctx context.Context, network, addr string) (net.Conn, link.Info, error) {
	if err := r.Revalidate(addr, nil); err != nil {
		return nil, link.Info{}, err
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	return c, link.Info{}, err
}

// Probe implements link.Path.
func (*routes) Probe(context.Context) error { return link.ErrNothingToProbe }

func (r *routes) link() link.Link { return link.Link{Name: "w0", Index: 1, Path: r} }

// TestKeptBeneathVPN: a route that appears while a connection is kept, or is busy, applies to the next request.
func TestKeptBeneathVPN(t *testing.T) {
	for name, pin := range map[string]bool{"Plain": false, "Pinned": true} {
		t.Run("R184 R198 "+name, func(t *testing.T) {
			var arrived atomic.Int32
			hold := make(chan struct{})
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				arrived.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				if r.URL.Path == "/slow" {
					w.(http.Flusher).Flush()
					<-hold
				}
			}))
			defer s.Close()
			var routes routes
			p := direct.NewPassThrough(func() []link.Link { return []link.Link{routes.link()} }, nil, time.Second)
			defer p.Close()
			do := p.Do
			if pin {
				own := p.Pin()
				defer own.Close()
				do = own.Do
			}
			post := func(path string) (*http.Response, error) {
				r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+path, io.NopCloser(strings.NewReader("x")))
				if err != nil {
					t.Fatal(err)
				}
				resp, _, err := do(r)
				return resp, err
			}
			end := func(resp *http.Response) {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			busy, err := post("/slow")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				resp, err := post("/")
				if err != nil {
					t.Fatal(err)
				}
				end(resp)
			}
			routes.elsewhere.Store(true)
			if _, err := post("/"); !errors.Is(err, link.ErrOffLink) {
				t.Errorf("idle: %v", err)
			}
			close(hold)
			end(busy)
			if _, err := post("/"); !errors.Is(err, link.ErrOffLink) {
				t.Errorf("busy at that time: %v", err)
			}
			if n := arrived.Load(); n != 3 {
				t.Errorf("%d requests arrived", n)
			}
			routes.elsewhere.Store(false)
			resp, err := post("/")
			if err != nil {
				t.Fatal(err)
			}
			end(resp)
		})
	}
	t.Run("R184 R198 Pool", func(t *testing.T) {
		var routes routes
		s := ot.New(t, ot.Object{Size: 5000})
		p := origin.New(nil)
		defer p.Close()
		r := &rig{t, s, &pool{Pool: p}}
		open := func() (engine.Conn, error) { return p.Open(t.Context(), routes.link(), r.target()) }
		c, err := open()
		if err != nil {
			t.Fatal(err)
		}
		r.send(c, whole(r))
		r.next(c)
		routes.elsewhere.Store(true)
		if got := outcome(t, c.Send(later(r))); got != fault.Stale {
			t.Errorf("a transfer goes on: %v", got)
		}
		c.Close()
		routes.elsewhere.Store(false)
		if c, err = open(); err != nil {
			t.Fatal(err)
		}
		r.send(c, later(r))
		r.next(c)
		c.Release()
		routes.elsewhere.Store(true)
		if _, err := open(); outcome(t, err) != fault.Denied || !errors.Is(err, link.ErrOffLink) {
			t.Errorf("idle: %v", err)
		}
		if n := len(s.Requests()); n != 2 {
			t.Errorf("%d requests arrived", n)
		}
	})
}
