package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/origin/origintest"
)

func TestFetch(t *testing.T) {
	t.Parallel()
	s := origintest.New(t, origintest.Object{Size: mid}, origintest.RateLimit(paced))
	source := link.NewStatic()
	o := newFetch(settings(), slog.New(slog.DiscardHandler), source)
	nodes := map[string]string{"wifi": s.Addr(0), "lte": s.Addr(1)}
	dial := func(ctx context.Context, l link.Link, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, nodes[l.Name])
	}
	source.Set(named("wifi", "lte")...) // maybe after it began to wait
	failed := errors.New("failed")
	err := o.fetch(t.Context(), dial, nil, func(ctx context.Context, e *engine.Engine) error {
		resp, err := e.Get(ctx, &engine.Request{
			Target: engine.Target{Scheme: "http", Host: s.Addr(0), Addr: s.Addr(0), Path: "/object"}, Header: http.Header{}, StartRanged: true,
		})
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || !bytes.Equal(b, s.Object().Bytes(0, mid)) || resp.ID.Validator != `"v1"` || resp.ID.Total != mid {
			t.Errorf("%d bytes of %+v, %v", len(b), resp.ID, err)
		}
		for _, l := range e.Status().Links {
			if l.Bytes == 0 {
				t.Errorf("%s brought nothing", l.Name)
			}
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}

// Without a link it waits a moment for one, and lets the engine say so then.
func TestFetchWithoutLinks(t *testing.T) {
	for name, stopped := range map[string]bool{"waits": false, "stopped": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := newFetch(settings(), slog.New(slog.DiscardHandler), link.NewStatic())
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if stopped {
					cancel()
				}
				began := time.Now()
				dial := func(context.Context, link.Link, string, string) (net.Conn, error) { return nil, net.ErrClosed }
				err := o.fetch(ctx, dial, nil, func(_ context.Context, e *engine.Engine) error {
					_, err := e.Get(t.Context(), &engine.Request{Target: engine.Target{Scheme: "http", Host: "h", Addr: "h:80", Path: "/"}})
					return err
				})
				took, want := time.Since(began), firstLink
				if stopped {
					want = 0
				}
				if !errors.Is(err, engine.ErrNoLink) || took != want {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// A command goes where its user could go, but over the link that leads there.
func TestFetchDestinations(t *testing.T) {
	o := newFetch(settings(), slog.New(slog.DiscardHandler), link.NewStatic())
	home := link.Link{Name: "wifi", Prefixes: []netip.Prefix{netip.MustParsePrefix("192.168.1.0/24")}}
	other := link.Link{Name: "lte"}
	o.reach.SetLinks([]link.Link{home, other})
	for _, addr := range []string{"127.0.0.1:80", "[::1]:80", "169.254.1.1:80", "93.184.215.14:80", "192.168.1.1:80"} {
		if _, err := o.reach.Check(home, "", netip.MustParseAddrPort(addr)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if _, err := o.reach.Check(other, "", netip.MustParseAddrPort("192.168.1.1:80")); !errors.Is(err, link.ErrOffLink) {
		t.Errorf("R184: %v", err)
	}
}
