package engine

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/net/link"
)

// TestLinkReturnsAtOnce lets a link swallow everything for a while in mid-transfer. Once it is back, it carries bytes 0.35 s later,
// whatever the kernel's timers wait for: those that the world paces arrive one chunk after they were sent.
func TestLinkReturnsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		link string
		most time.Duration
	}{{"a", 350 * time.Millisecond}, {"b", 1100 * time.Millisecond}} { // b is metered
		for away := 500 * time.Millisecond; away < 9*time.Second; away += 830 * time.Millisecond {
			t.Run(fmt.Sprintf("%s, %v", tt.link, away), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld()
					w.kernel = true
					e := newWorldEngine(t, w, nil)
					done := download(t, e, "one:80")
					time.Sleep(2 * time.Second)
					w.change(func() { w.dead[tt.link] = true })
					time.Sleep(away)
					before := carried(e, tt.link)
					w.change(func() { w.dead[tt.link] = false })
					back := time.Now()
					for carried(e, tt.link) == before && time.Since(back) < 10*time.Second {
						time.Sleep(time.Millisecond)
					}
					if took := time.Since(back) - chunkTime; took > tt.most {
						t.Errorf("bytes come %v after its return, want %v", took, tt.most)
					}
					<-done
				})
			})
		}
	}
}

// TestDeadLinkIsProbedSparingly counts the handshakes that a link gets in a minute in which it is dead.
func TestDeadLinkIsProbedSparingly(t *testing.T) {
	for _, tt := range []struct {
		link    string
		origins int
		most    int           // probes
		apart   time.Duration // time between the first ones of each origin
	}{
		{"a", 1, 57 + 6, 50 * time.Millisecond},
		{"a", 4, 4 * (57 + 6), 50 * time.Millisecond},
		{"a", 12, 12 * (28 + 6), 150 * time.Millisecond},
		{"b", 1, 10 + 6, time.Second},
		{"b", 4, 10 + 4*6, 4 * time.Second},
	} {
		t.Run(fmt.Sprintf("%s, %d origins", tt.link, tt.origins), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.kernel = true
				e := newWorldEngine(t, w, nil)
				var done []<-chan struct{}
				for i := range tt.origins {
					done = append(done, download(t, e, fmt.Sprintf("one%d:80", i)))
				}
				time.Sleep(time.Second)
				w.change(func() { w.dead[tt.link] = true })
				time.Sleep(10 * time.Second)
				times := map[string][]time.Duration{}
				sent := w.probedAt()
				for i, p := range w.probes()[:len(sent)] {
					times[p] = append(times[p], sent[i])
				}
				for p, at := range times {
					for i := range at[1:] {
						if d := at[i+1] - at[i]; d < tt.apart {
							t.Errorf("%s: probes %v apart, want %v", p, d, tt.apart)
							break
						}
					}
				}
				if len(times) != tt.origins {
					t.Errorf("probes of %d origins", len(times))
				}
				time.Sleep(50 * time.Second)
				if n := len(w.probedAt()); n > tt.most {
					t.Errorf("%d probes in a minute, want %d at most", n, tt.most)
				}
				w.change(func() { w.dead[tt.link] = false })
				for _, d := range done {
					<-d
				}
			})
		})
	}
}

// TestQuickProbesAreOnePacket: a link that recently failed is probed at an address that worked over it, and later at any.
func TestQuickProbesAreOnePacket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.kernel = true
		e := newWorldEngine(t, w, nil)
		done := download(t, e, "one:80")
		time.Sleep(time.Second)
		w.change(func() { w.dead["a"] = true })
		time.Sleep(30 * time.Second)
		w.change(func() { w.dead["a"] = false })
		<-done
		for i, at := range w.sent {
			want := "invalid IP"
			if at < w.sent[0]+10*time.Second {
				want = addrOf("one")
			}
			if w.to[i] != want {
				t.Errorf("the probe after %v is restricted to %s, want %s", at, w.to[i], want)
			}
		}
		if len(w.sent) < 42 {
			t.Errorf("%d probes", len(w.sent))
		}
	})
}

// TestQuickProbesToAnOldAddress: an origin's address is one that a connection reached within the last seconds, or still reaches. An
// address from hours ago may belong to somebody else now.
func TestQuickProbesToAnOldAddress(t *testing.T) {
	t.Run("a connection stays", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.kernel = true
			w.slow["one:80"] = "a"
			e := newWorldEngine(t, w, nil)
			e.SetLinks([]link.Link{{Name: "a", Path: &worldPath{w, "a"}}})
			download(t, e, "one:80")
			for range 2 {
				time.Sleep(5 * time.Minute)
				w.change(func() { w.dead["a"] = true })
				time.Sleep(9 * time.Second)
				w.change(func() { w.dead["a"] = false })
			}
			for i, to := range w.to {
				if to != addrOf("one") {
					t.Errorf("the probe after %v is restricted to %s", w.sent[i], to)
				}
			}
			if len(w.to) < 40 {
				t.Errorf("%d probes", len(w.to))
			}
		})
	})
	for name, pause := range map[string]time.Duration{"hours ago": 2 * time.Hour, "just now": time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.kernel = true
				e := newWorldEngine(t, w, nil)
				resp, err := e.Get(t.Context(), &Request{Target: Target{Scheme: "http", Host: "one:80", Addr: "one:80", Path: "/"}, Header: http.Header{}})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				resp.Body.Close()
				time.Sleep(pause)
				w.change(func() { w.dead["a"] = true })
				began := time.Since(w.began)
				done := download(t, e, "one:80")
				becomesProbed(t, w)
				time.Sleep(5 * time.Second)
				w.change(func() { w.dead["a"] = false })
				<-done
				want := addrOf("one")
				if pause > addressLife {
					want = "invalid IP"
				}
				for i, at := range w.sent {
					if w.to[i] != want {
						t.Errorf("the probe after %v is restricted to %s, want %s", at-began, w.to[i], want)
					}
				}
				if len(w.sent) < 10 {
					t.Errorf("%d probes", len(w.sent))
				}
			})
		})
	}
}

// TestProbesGoOnlyWhereTransfersGo has two transfers from an origin, one after the other. The first one lost a metered link; the
// second one leaves the link and its radio alone as long as it does not use the link.
func TestProbesGoOnlyWhereTransfersGo(t *testing.T) {
	const quick, seldom = 10, 4 // probes in the first 10 s
	for _, tt := range []struct {
		name             string
		untrusted, first bool // the link may not see the second one's credentials; the first one keeps running
		least, most      int
	}{
		{"the first one runs on", false, true, quick, quick + 1},
		{"one that may use the link, and has not", false, false, 0, seldom},
		{"one that may not", true, false, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.kernel = true
				e := newWorldEngine(t, w, nil)
				e.SetLinks([]link.Link{
					{Name: "a", Metric: 1, Path: &worldPath{w, "a"}},
					{Name: "b", Metric: 2, Terms: policy.Terms{Metered: true, Untrusted: tt.untrusted}, Path: &worldPath{w, "b"}},
				})
				get := func(h http.Header) *Response {
					resp, err := e.Get(t.Context(), &Request{Target: Target{Scheme: "http", Host: "one:80", Addr: "one:80", Path: "/"}, Header: h})
					if err != nil {
						t.Fatal(err)
					}
					go io.Copy(io.Discard, resp.Body)
					return resp
				}
				first := get(http.Header{})
				time.Sleep(time.Second)
				w.change(func() { w.dead["b"] = true })
				becomesProbed(t, w)
				if !tt.first {
					first.Body.Close()
				}
				second := get(http.Header{"Cookie": {"a=b"}})
				synctest.Wait()
				w.probes()
				time.Sleep(10 * time.Second)
				if n := len(w.probes()); n < tt.least || n > tt.most {
					t.Errorf("%d probes, want %d to %d", n, tt.least, tt.most)
				}
				first.Body.Close()
				second.Body.Close()
			})
		})
	}
}

// TestBannedLinkIsProbedForWhomItServes: while a link is banned for everybody, transfers that may not use it are not involved in
// finding out whether it is back.
func TestBannedLinkIsProbedForWhomItServes(t *testing.T) {
	barred := http.Header{"Cookie": {"a=b"}} // the link may not see it
	for _, tt := range []struct {
		name string
		gets map[string]http.Header // by origin, in any order
		want []string               // hosts that are asked about the link
	}{
		{"one that may not use it", map[string]http.Header{"two:80": barred}, nil},
		{"one that may", map[string]http.Header{"one:80": {}}, []string{"one:80 over a"}},
		{"both", map[string]http.Header{"one:80": {}, "two:80": barred}, []string{"one:80 over a"}},
		{"none", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.dead["a"] = true
				var asked atomic.Int32
				w.answers = func(context.Context, string) bool {
					asked.Add(1)
					return false
				}
				e := newWorldEngine(t, w, nil)
				e.SetLinks([]link.Link{
					{Name: "a", Metric: 1, Terms: policy.Terms{Untrusted: true}, Path: &worldPath{w, "a"}},
					{Name: "b", Metric: 2, Path: &worldPath{w, "b"}},
				})
				e.fleet.change(func(now time.Time) { e.fleet.boards.Failed(now, 0, health.Silence) })
				for _, addr := range slices.Sorted(maps.Keys(tt.gets)) {
					resp, err := e.Get(t.Context(), &Request{Target: Target{Scheme: "http", Host: addr, Addr: addr, Path: "/"}, Header: tt.gets[addr]})
					if err != nil {
						t.Fatal(err)
					}
					go io.Copy(io.Discard, resp.Body)
					defer resp.Body.Close()
				}
				time.Sleep(20 * time.Second)
				probed := w.probes()
				slices.Sort(probed)
				if got := slices.Compact(probed); !slices.Equal(got, tt.want) {
					t.Errorf("probes of %v, want %v", got, tt.want)
				}
				if n := asked.Load(); (n > 0) != (tt.want != nil) {
					t.Errorf("DNS servers are asked %d times", n)
				}
			})
		})
	}
}

// becomesProbed waits for the first probe.
func becomesProbed(t *testing.T, w *world) {
	t.Helper()
	for range 5000 {
		w.mu.Lock()
		n := len(w.probed)
		w.mu.Unlock()
		if n > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("nothing is probed")
}

// TestSilenceOfSeveral lets a link die that delivers bytes to transfers from two origins, to one of them a moment later than to the
// other. That moment does not keep anybody from finding the link dead.
func TestSilenceOfSeveral(t *testing.T) {
	for later := time.Duration(0); later < chunkTime; later += 7 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.kernel = true
			e := newWorldEngine(t, w, nil)
			one := download(t, e, "one:80")
			time.Sleep(later)
			two := download(t, e, "two:80")
			time.Sleep(2 * time.Second)
			w.change(func() { w.dead["a"] = true })
			time.Sleep(time.Second)
			probed := map[string]bool{}
			for _, p := range w.probes() {
				probed[p] = true
			}
			if !probed["one:80 over a"] || !probed["two:80 over a"] {
				t.Errorf("started %v apart: after a second only these were probed: %v", later, probed)
			}
			w.change(func() { w.dead["a"] = false })
			<-one
			<-two
		})
	}
}

// TestExcusedLink: a transfer that expects nothing more of a link does not accuse it, whatever it reported before. Another one that
// still waits does.
func TestExcusedLink(t *testing.T) {
	for name, nothingDue := range map[string]bool{"nothingDue": true, "not nothingDue": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newWorldEngine(t, newWorld(), nil)
				var runs []*run
				for _, addr := range []string{"one:80", "two:80", "three:80"} {
					r := &run{e: e, req: &Request{Target: Target{Addr: addr}}, used: map[int8]bool{}, mailbox: mailbox{posted: make(chan struct{}, 1)}}
					e.fleet.join(r)
					runs = append(runs, r)
				}
				a := e.fleet.linkAt(0)
				a.lastByte.Store(e.fleet.clock(time.Now())) // the third one's, so the others have to wait for a while
				a.lastRun.Store(runs[2])
				for _, r := range runs[:2] {
					r.carryOut(time.Now(), transfer.Action{Kind: transfer.ReportSilent, Link: 0})
				}
				if nothingDue {
					runs[0].carryOut(time.Now(), transfer.Action{Kind: transfer.ReportNothingDue, Link: 0})
				}
				time.Sleep(health.SuspectAfter + 10*time.Millisecond)
				synctest.Wait()
				e.fleet.mu.Lock()
				defer e.fleet.mu.Unlock()
				for i, want := range []health.State{map[bool]health.State{true: health.Up, false: health.Suspect}[nothingDue], health.Suspect, health.Up} {
					if got, _ := runs[i].site.board.State(0); got != want {
						t.Errorf("for %s it is %v, want %v", runs[i].site.addr, got, want)
					}
				}
			})
		})
	}
}
