package direct_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/direct"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
)

// TestCostsWhileDialing: a link becomes metered while a client that must not use metered links connects over it. Nothing is sent.
func TestCostsWhileDialing(t *testing.T) {
	for _, given := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := &course{t: t, begin: time.Now(), after: map[string]time.Duration{"wifi": 100 * time.Millisecond}, open: map[string]int{}}
			defer c.served.Wait()
			metered := new(atomic.Bool)
			dial := link.DialFunc(func(ctx context.Context, l link.Link, network, addr string) (net.Conn, error) {
				nc, err := c.dial(ctx, l, network, addr)
				metered.Store(true)
				return nc, err
			})
			p := direct.NewPassThrough(func() []link.Link {
				return dial.Over(link.Link{Name: "wifi", Terms: policy.Terms{Metered: metered.Load()}})
			}, nil, time.Minute)
			defer p.Close()
			var consent engine.Consent
			consent.Give(given)
			ctx := engine.With(t.Context(), func(o *engine.Options) { o.Consent = &consent })
			ended := func(what string, err error) {
				t.Helper()
				if given && err != nil || !given && !errors.Is(err, engine.ErrCosts) {
					t.Errorf("%s, consent %v: %v", what, given, err)
				}
			}
			d, err := p.DialTunnel(ctx, "o:443")
			if ended("a tunnel", err); err == nil {
				d.Close()
			}
			metered.Store(false)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://o/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, _, err := p.Do(r)
			if ended("a request", err); err == nil {
				resp.Body.Close()
			}
			p.Close()
			c.mu.Lock()
			defer c.mu.Unlock()
			if sent := strings.Contains(strings.Join(c.log, "\n"), "request wifi"); sent != given || !given && c.open["wifi"] > 0 {
				t.Errorf("consent %v: %q, %d connections are open", given, c.log, c.open["wifi"])
			}
		})
	}
}
