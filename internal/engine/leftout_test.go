package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/health"
)

// leaves watches a download and returns which links it left out, and how long it took.
func leaves(e *Engine, done <-chan struct{}) (out []LeftOut, took time.Duration) {
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		for _, t := range e.Status().Transfers {
			for _, l := range t.LeftOut {
				if !slices.Contains(out, l) {
					out = append(out, l)
				}
			}
		}
		select {
		case <-done:
			return out, time.Since(began)
		default:
		}
	}
}

// TestSlowLink: a link that keeps the other one waiting is left out by the transfers from that origin, and the status says so.
func TestSlowLink(t *testing.T) {
	took := map[health.SlowCheck]time.Duration{}
	for _, check := range []health.SlowCheck{health.SlowOff, health.SlowGuarded, health.SlowLiteral} {
		t.Run(string(check), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.slow["far:80"] = "a"
				e := newWorldEngine(t, w, func(c *Config) { c.SlowLinks, c.Window = check, mib })
				var out []LeftOut
				out, took[check] = leaves(e, download(t, e, "far:80"))
				want := []LeftOut{{"a", "too_slow"}}
				if check == health.SlowOff {
					want = nil
				}
				if !slices.Equal(out, want) {
					t.Errorf("leaves out %v, want %v", out, want)
				}
				if s := linkState(e, "a"); s != "up" {
					t.Errorf("for others it is %s", s)
				}
				before := carried(e, "a")
				if out, _ := leaves(e, download(t, e, "near:80")); len(out) > 0 || carried(e, "a")-before < worldSize/4 {
					t.Errorf("another origin's transfer leaves out %v, and has %d bytes over it", out, carried(e, "a")-before)
				}
			})
		})
	}
	if took[health.SlowGuarded] >= took[health.SlowOff] {
		t.Errorf("%v, without the check %v", took[health.SlowGuarded], took[health.SlowOff])
	}
}
