package engine

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestTunnelsAccuse lets tunnels fall silent on link a, while there is no transfer: their word alone bans no link.
func TestTunnelsAccuse(t *testing.T) {
	overdue := []Overdue{{"one.test:443", netip.MustParseAddr(addrOf("one.test"))}}
	silent := func(ctx context.Context, name string) bool {
		if name == "a" {
			<-ctx.Done()
		}
		return name != "a"
	}
	answers := func(context.Context, string) bool { return true }
	for _, tt := range []struct {
		name   string
		dead   bool                               // the link
		dns    func(context.Context, string) bool // whether its DNS servers answer; nil = it has none
		heard  bool                               // something else arrives over it
		met    []string                           // hosts that were connected to over it
		banned bool
		asked  []string
	}{
		{"R145 DNS servers are silent: dead", true, silent, false, nil, true, nil},
		{"R145 another origin is silent: dead", true, nil, false, []string{"good:443"}, true, []string{"good:443"}},
		{"R207 DNS servers answer", false, answers, false, nil, false, nil},
		{"R207 another origin answers", false, nil, false, []string{"one.test:443", "good:443"}, false, []string{"good:443"}},
		{"R207 the origin itself is not asked", true, nil, false, []string{"one.test:443"}, false, nil},
		{"R207 bytes of others come", false, silent, true, []string{"good:443"}, false, nil},
		{"R207 there is nobody to ask", true, nil, false, nil, false, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.answers = tt.dns
				var mu sync.Mutex
				var down []string
				e := newWorldEngine(t, w, func(c *Config) {
					c.Heard = func(name string, _ time.Duration) bool { return tt.heard && name == "a" }
					c.LinkDown = func(name string) { mu.Lock(); defer mu.Unlock(); down = append(down, name) }
				})
				for _, addr := range tt.met {
					met(e, linkA, addr)
				}
				if tt.dead {
					w.change(func() { w.dead["a"] = true })
				}
				for range 20 {
					e.Overdue("a", overdue)
					time.Sleep(500 * time.Millisecond)
				}
				state, want := linkState(e, "a"), "up"
				if tt.banned {
					want = "banned"
				}
				mu.Lock()
				defer mu.Unlock()
				if state != want || slices.Contains(down, "a") != tt.banned || slices.Contains(down, "b") {
					t.Errorf("a is %s, want %s; connections over %q are dead", state, want, down)
				}
				var asked []string
				for _, p := range w.probes() {
					if addr := p[:len(p)-len(" over a")]; !slices.Contains(asked, addr) {
						asked = append(asked, addr)
					}
				}
				if !slices.Equal(asked, tt.asked) {
					t.Errorf("asked %q, want %q", asked, tt.asked)
				}
			})
		})
	}
}

// TestTunnelsRecover: answers that arrive while other hosts are asked about the link speak for it.
func TestTunnelsRecover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		e := newWorldEngine(t, w, nil)
		met(e, linkA, "good:443")
		w.change(func() { w.dead["a"] = true })
		e.Overdue("a", []Overdue{{"one.test:443", netip.MustParseAddr(addrOf("one.test"))}})
		time.Sleep(testimonyTimeout / 2)
		e.Overdue("a", nil)
		stays(t, e, "a", "up", 10*time.Second)
		if asked := len(w.probes()); asked != 1 {
			t.Errorf("%d were asked, want 1", asked)
		}
	})
}
