package engine

import (
	"context"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
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
				want := []LeftOut{{"a", "too_slow", health.TooSlow.Text()}}
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
				out, _ = leaves(e, download(t, e, "near:80"))
				if check == health.SlowLiteral { // as published, it may drop the other of two equal links for a moment
					out = slices.DeleteFunc(out, func(l LeftOut) bool { return l.Link == "b" })
				}
				if len(out) > 0 || carried(e, "a")-before < worldSize/4 {
					t.Errorf("another origin's transfer leaves out %v, and has %d bytes over it", out, carried(e, "a")-before)
				}
			})
		})
	}
	if took[health.SlowGuarded] >= took[health.SlowOff] {
		t.Errorf("%v, without the check %v", took[health.SlowGuarded], took[health.SlowOff])
	}
}

// TestOneChannel: of two links that share a channel the metered one is left out, and the transfer takes no longer. Two simultaneous
// transfers shift links among themselves, so nothing is judged.
func TestOneChannel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.channel = map[string]time.Time{}
		e := newWorldEngine(t, w, func(c *Config) { c.Scheduler = scheduler("confluence") })
		out, took := leaves(e, download(t, e, "one:80"))
		if want := []LeftOut{{"b", "no_gain", health.NoGain.Text()}}; !slices.Equal(out, want) {
			t.Errorf("leaves out %v, want %v", out, want)
		}
		if alone := worldSize / chunk * chunkTime / 2; took > alone*102/100 {
			t.Errorf("takes %v, over one link %v", took, alone)
		}
		both := download(t, e, "two:80")
		if out, _ := leaves(e, download(t, e, "three:80")); len(out) > 0 {
			t.Errorf("of two transfers one leaves out %v", out)
		}
		<-both
	})
}

// TestOneChannelEnds: a link that was left out because it adds nothing comes back when the transfer ends, and when it is no longer
// the only one: then nobody watches whether the link is missed.
func TestOneChannelEnds(t *testing.T) {
	for name, ends := range map[string]bool{"it ends": true, "another one has begun": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.channel = map[string]time.Time{}
				e := newWorldEngine(t, w, func(c *Config) { c.Scheduler = scheduler("confluence") })
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				resp, err := e.Get(ctx, &Request{
					Target: Target{Scheme: "http", Host: "one:80", Addr: "one:80", Path: "/"}, Header: http.Header{},
				})
				if err != nil {
					t.Fatal(err)
				}
				read := make(chan struct{})
				go func() {
					defer close(read)
					defer resp.Body.Close()
					_, _ = io.Copy(io.Discard, resp.Body)
				}()
				left := func() bool {
					e.fleet.mu.Lock()
					defer e.fleet.mu.Unlock()
					return len(e.fleet.leftOut(e.fleet.sites[0])) > 0
				}
				for began := time.Now(); !left(); time.Sleep(reportEvery) {
					if time.Since(began) > 15*time.Second {
						t.Fatal("no link is left out")
					}
					synctest.Wait()
				}
				var other <-chan struct{}
				if ends {
					cancel()
				} else {
					other = download(t, e, "two:80")
				}
				time.Sleep(2 * reportEvery)
				synctest.Wait()
				if left() {
					t.Error("the link is still left out")
				}
				<-read
				if other != nil {
					<-other
				}
			})
		})
	}
}
