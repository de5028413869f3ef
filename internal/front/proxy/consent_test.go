package proxy_test

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/tributary-http/tributary/internal/front/proxy"
)

// TestWithdraw: a tunnel is reset when its link becomes metered and its client may not use metered links, or when its link is
// metered and the client loses that permission.
func TestWithdraw(t *testing.T) {
	begin := func(t *testing.T, may bool) (g *rig, pays *atomic.Bool, c *conn) {
		pays = new(atomic.Bool)
		pays.Store(may)
		g = start(t, func(c *proxy.Config) {
			c.App = func(_, _ netip.AddrPort) int64 { return 10200 }
			c.Meters = func(whose func() int64) bool { return whose() == 10200 && pays.Load() }
		})
		c = g.tunnelTo(serve(t, echo), "x")
		c.want("x")
		return g, pays, c
	}
	works := func(t *testing.T, c *conn) {
		t.Helper()
		c.send("y")
		c.want("y")
	}
	isReset := func(t *testing.T, c *conn) {
		t.Helper()
		if rest, err := c.rest(); rest != "" || !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("client's end: %q, %v, want a reset", rest, err)
		}
	}
	free, costs := map[string]bool{"other": true}, map[string]bool{"lo": true}
	t.Run("its link becomes metered", func(t *testing.T) {
		g, _, c := begin(t, false)
		g.proxy.Withdraw(free)
		if works(t, c); g.proxy.Reconsider() {
			t.Error("an answer has changed")
		}
		works(t, c)
		g.proxy.Withdraw(costs)
		isReset(t, c)
	})
	t.Run("the user no longer agrees", func(t *testing.T) {
		g, pays, c := begin(t, true)
		g.proxy.Withdraw(costs)
		works(t, c)
		pays.Store(false)
		if !g.proxy.Reconsider() {
			t.Error("no answer has changed")
		}
		isReset(t, c)
	})
	t.Run("the user no longer agrees, by a relay", func(t *testing.T) {
		g, pays, c := begin(t, true)
		g.f.relayed = true
		by := g.tunnelTo(serve(t, echo), "")
		works(t, by)
		g.proxy.Withdraw(free)
		works(t, by)
		pays.Store(false)
		g.proxy.Reconsider()
		isReset(t, by)
		works(t, c)
	})
	t.Run("the user no longer agrees, over a link without a cost", func(t *testing.T) {
		g, pays, c := begin(t, true)
		g.proxy.Withdraw(free)
		pays.Store(false)
		g.proxy.Reconsider()
		works(t, c)
	})
	t.Run("its link became metered while it was dialed", func(t *testing.T) {
		g, _, c := begin(t, false)
		g.proxy.Withdraw(costs)
		isReset(t, c)
		isReset(t, g.tunnelTo(serve(t, echo), ""))
	})
}
