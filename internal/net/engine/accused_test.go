package engine

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/net/link"
)

var (
	linkA = link.Link{Name: "a", Metric: 1, Prefixes: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}
	linkB = link.Link{Name: "b"}
)

// stays fails the test if a link leaves a state within d.
func stays(t *testing.T, e *Engine, name, state string, d time.Duration) {
	t.Helper()
	for began := time.Now(); time.Since(began) < d; time.Sleep(10 * time.Millisecond) {
		if got := linkState(e, name); got != state {
			t.Errorf("after %v %s is %s, want %s", time.Since(began), name, got, state)
			return
		}
	}
}

// becomes fails the test if a link does not reach a state within most.
func becomes(t *testing.T, e *Engine, name, state string, most time.Duration) {
	t.Helper()
	for began := time.Now(); linkState(e, name) != state; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > most {
			t.Fatalf("after %v %s is %s, not %s", most, name, linkState(e, name), state)
		}
	}
}

// carried returns the bytes that a link delivered for anybody.
func carried(e *Engine, name string) int64 {
	for _, l := range e.Status().Links {
		if l.Name == name {
			return l.Bytes
		}
	}
	return 0
}

// next fails the test unless the next tunnel goes over a link.
func next(t *testing.T, e *Engine, name string) {
	t.Helper()
	if best := e.Ranked(); len(best) == 0 || best[0].Name != name {
		t.Errorf("the next tunnel goes over %v, want %s", best, name)
	}
}

// met reports a tunnel to an origin to the engine.
func met(e *Engine, l link.Link, addr string) {
	to, err := netip.ParseAddr(hostOf(addr))
	if err != nil {
		to = netip.MustParseAddr(addrOf(hostOf(addr)))
	}
	e.Connected(l, addr, to)
}

// TestOneOriginAccuses lets one origin starve its connections over a link, or accept none there. That concerns only its own
// transfers: others, tunnels and pass-through still use the link.
func TestOneOriginAccuses(t *testing.T) {
	starve := func(w *world) { w.starved["evil:80"] = "a" }
	planted := func(w *world) {
		starve(w)
		w.shut["p1:80"], w.shut["p2:80"], w.shut["p3:80"] = "a", "a", "a"
	}
	tests := []struct {
		name  string
		set   func(w *world)
		heard bool     // bytes of tunnels arrive over the link
		dns   bool     // its DNS servers answer
		met   []string // hosts that were connected to over the link
		asked []string // hosts that are asked about it

		upstream bool // the link has an upstream: the addresses of those hosts are unknown
	}{
		{name: "R207 it sends nothing over a", set: starve},
		{name: "R207 it cannot be connected to over a", set: func(w *world) { w.shut["evil:80"] = "a" }},
		{name: "R207 it sends hardly anything over a", set: func(w *world) { w.slow["evil:80"] = "a" }},
		{name: "R207 another origin is reached over a", set: starve, met: []string{"good:443"}, asked: []string{"good:443"}},
		{name: "R207 one of the others is reached over a", set: func(w *world) {
			starve(w)
			w.shut["down:80"], w.shut["gone:80"] = "a", "a"
		}, met: []string{"old:80", "good:80", "down:80", "gone:80"}, asked: []string{"down:80", "gone:80", "good:80"}},
		{name: "R207 the link's DNS servers answer", set: starve, dns: true},
		{name: "R207 it has planted the last witnesses, DNS servers answer", set: planted, dns: true, met: []string{
			"good1:80", "good2:80", "good3:80", "p1:80", "p2:80", "p3:80",
		}, asked: []string{"p1:80", "p2:80", "p3:80"}},
		{name: "R207 it has planted the last witnesses, earlier ones answer", set: planted, met: []string{
			"good1:80", "good2:80", "good3:80", "p1:80", "p2:80", "p3:80",
		}, asked: []string{"good1:80", "good2:80", "good3:80", "p1:80", "p2:80", "p3:80"}},
		{name: "R207 a tunnel's bytes come over a", set: func(w *world) {
			starve(w)
			w.shut["accomplice:80"] = "a"
		}, heard: true, met: []string{"accomplice:80"}},
		{name: "R207 its second name is no witness", set: func(w *world) {
			w.shut["evil:80"], w.shut["www.evil:80"] = "a", "a"
		}, met: []string{"www.evil:80"}},
		{name: "R207 others are reached over a, by names that an upstream resolves", set: starve, upstream: true, met: []string{"good:443", "fair:80"}, asked: []string{"fair:80", "good:443"}},
		{name: "R207 only web servers are asked", set: func(w *world) {
			starve(w)
			w.shut["mail:993"] = "a"
		}, met: []string{"mail:993"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				tt.set(w)
				e := newWorldEngine(t, w, func(c *Config) {
					c.SlowLinks = health.SlowGuarded
					c.Heard = func(name string, _ time.Duration) bool { return tt.heard && name == "a" }
					if tt.dns {
						w.answers = func(context.Context, string) bool { return true }
					}
				})
				for _, addr := range tt.met {
					if tt.upstream {
						e.Connected(linkA, addr, netip.Addr{})
						continue
					}
					met(e, linkA, addr)
				}
				done := download(t, e, "evil:80")
				stays(t, e, "a", "up", 15*time.Second)
				next(t, e, "a")
				before := carried(e, "a")
				download(t, e, "stranger:80")
				time.Sleep(time.Second)
				if n := carried(e, "a") - before; n < 100<<10 {
					t.Errorf("a brings a stranger %d bytes", n)
				}
				<-done
				var asked []string
				for _, p := range w.probes() {
					addr, over, _ := strings.Cut(p, " over ")
					if over == "a" && !strings.Contains(addr, "evil") && !slices.Contains(asked, addr) {
						asked = append(asked, addr)
					}
				}
				slices.Sort(asked)
				if !slices.Equal(asked, tt.asked) {
					t.Errorf("about a were asked %v, want %v", asked, tt.asked)
				}
			})
		})
	}
}

// states records the states of a link for one origin.
type states struct {
	mu  sync.Mutex
	all []string
}

func (s *states) Observe(e Event) {
	if e.Kind == EventOriginState && e.Link == "a" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, e.State)
	}
}

// TestProbeWithoutASlot: if no further connection to an origin may be made, none is made to test a link. The next transfer that may
// have one tests the link.
func TestProbeWithoutASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.shut["evil:80"] = "a"
		w.full = map[string]bool{"a": true}
		var seen states
		e := newWorldEngine(t, w, func(c *Config) { c.Observers = []Observer{&seen} })
		<-download(t, e, "evil:80")
		stays(t, e, "a", "up", time.Second)
		seen.mu.Lock()
		defer seen.mu.Unlock()
		for i, s := range seen.all {
			if s == "probing" && i+1 < len(seen.all) && seen.all[i+1] != "up" {
				t.Errorf("states %q: a probe that could not be made speaks against the link", seen.all)
			}
		}
		if !slices.Contains(seen.all, "probing") {
			t.Errorf("states %q: nothing is shown", seen.all)
		}
	})
}

// TestDeadLinkIsBannedForAll lets a link die and come back.
func TestDeadLinkIsBannedForAll(t *testing.T) {
	tests := []struct {
		name  string
		from  []string // origins of transfers
		met   []string // hosts that were connected to over the link
		dns   bool     // it has a DNS server
		limit time.Duration
	}{
		{"R207 its router answers", []string{"one:80"}, []string{"192.168.1.1:80", "169.254.1.1:80", "198.51.100.1:80", "x:80"}, false, 6 * time.Second},
		{"R207 two origins, DNS", []string{"one:80", "two:80"}, nil, true, 6 * time.Second},
		{"R207 one origin, others lately", []string{"one:80"}, []string{"x:80", "y:443"}, false, 6 * time.Second},
		{"R207 one origin, DNS", []string{"one:80"}, nil, true, 6 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				if tt.dns {
					w.answers = func(ctx context.Context, name string) bool {
						return w.wait(ctx.Done(), func() bool { return !w.dead[name] })
					}
				}
				e := newWorldEngine(t, w, nil)
				for _, addr := range tt.met {
					met(e, linkA, addr)
				}
				var done []<-chan struct{}
				for _, addr := range tt.from {
					done = append(done, download(t, e, addr))
				}
				stays(t, e, "a", "up", 2*time.Second)
				w.change(func() { w.dead["a"] = true })
				becomes(t, e, "a", "banned", tt.limit)
				next(t, e, "b")
				for range 2 { // two probes without an answer
					becomes(t, e, "a", "probing", 3*time.Second)
					becomes(t, e, "a", "banned", 3*time.Second)
				}
				before := carried(e, "a")
				w.change(func() { w.dead["a"] = false })
				becomes(t, e, "a", "up", 5*time.Second)
				next(t, e, "a")
				time.Sleep(time.Second)
				if n := carried(e, "a") - before; n < 100<<10 {
					t.Errorf("after its return a brings %d bytes", n)
				}
				for _, d := range done {
					<-d
				}
				if n := bans(e, "a"); n != 1 {
					t.Errorf("%d bans", n)
				}
			})
		})
	}
}

// TestBanConcernsOthers: connections outside of transfers learn of a ban, and are a reason to probe the link.
func TestBanConcernsOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var mu sync.Mutex
		var down []string
		e := newWorldEngine(t, w, func(c *Config) {
			c.LinkDown = func(name string) { mu.Lock(); defer mu.Unlock(); down = append(down, name) }
		})
		met(e, linkA, "x:80")
		done := download(t, e, "one:80")
		time.Sleep(2 * time.Second)
		w.change(func() { w.dead["a"] = true })
		becomes(t, e, "a", "banned", 6*time.Second)
		synctest.Wait()
		mu.Lock()
		if len(down) != 1 || down[0] != "a" {
			t.Errorf("R145 connections over %q are dead, want a", down)
		}
		mu.Unlock()
		<-done
		w.change(func() { w.dead["a"] = false })
		for linkState(e, "a") == "probing" { // from the time of the transfer
			time.Sleep(10 * time.Millisecond)
		}
		stays(t, e, "a", "banned", time.Minute)
		e.Others(1)
		becomes(t, e, "a", "up", 5*time.Second)
	})
}

func bans(e *Engine, name string) int64 {
	for _, l := range e.Status().Links {
		if l.Name == name {
			return l.Bans
		}
	}
	return -1
}

// TestAllLinksDie lets both links die: one is banned, the last one is not, and each comes back.
func TestAllLinksDie(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		e := newWorldEngine(t, w, nil)
		met(e, linkA, "x:80")
		met(e, linkB, "x:80")
		done := download(t, e, "one:80")
		time.Sleep(2 * time.Second)
		w.change(func() { w.dead["a"], w.dead["b"] = true, true })
		time.Sleep(20 * time.Second)
		if a, b := linkState(e, "a"), linkState(e, "b"); (a == "suspect") == (b == "suspect") || a == "up" || b == "up" {
			t.Errorf("a is %s, b is %s", a, b)
		}
		w.change(func() { w.dead["b"] = false })
		becomes(t, e, "b", "up", 3*time.Second)
		w.change(func() { w.dead["a"] = false })
		becomes(t, e, "a", "up", 31*time.Second)
		<-done
	})
}

// TestTrialsAreSpaced lets many origins accuse a link at once, again and again. The hosts that are asked about it are contacted no
// more often than for a single origin.
func TestTrialsAreSpaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const evil, most = 6, 30 * time.Second
		w := newWorld()
		e := newWorldEngine(t, w, nil)
		for i := range evil {
			w.shut[fmt.Sprintf("evil%d:80", i)] = "a"
		}
		for i := range 2 * maxReached {
			met(e, linkA, fmt.Sprintf("good%d:80", i))
		}
		var done []<-chan struct{}
		for i := range evil {
			done = append(done, download(t, e, fmt.Sprintf("evil%d:80", i)))
			time.Sleep(most / evil)
		}
		asked := 0
		for _, p := range w.probes() {
			if strings.HasPrefix(p, "good") {
				asked++
			}
		}
		if allowed := maxWitnesses * int(most/trialEvery+1); asked == 0 || asked > allowed {
			t.Errorf("%d connections to origins that were not accusers, want 1 to %d", asked, allowed)
		}
		for _, d := range done {
			<-d
		}
	})
}

// TestTrialsAreBounded lets a link die over which more hosts were reached than are asked.
func TestTrialsAreBounded(t *testing.T) {
	t.Run("R207 six are asked in a trial", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			var asked atomic.Int32
			w.answers = func(ctx context.Context, name string) bool {
				if name == "a" {
					asked.Add(1)
				}
				<-ctx.Done()
				return false
			}
			e := newWorldEngine(t, w, nil)
			for i := range 2 * maxReached {
				met(e, linkA, fmt.Sprintf("good%d:80", i))
			}
			w.change(func() { w.shut["evil:80"] = "a" })
			for i := range 2 * maxReached {
				w.shut[fmt.Sprintf("good%d:80", i)] = "a"
			}
			done := download(t, e, "evil:80")
			becomes(t, e, "a", "banned", 10*time.Second)
			n := 0
			for _, p := range w.probes() {
				if strings.HasPrefix(p, "good") {
					n++
				}
			}
			if n != 2*maxWitnesses || asked.Load() != 1 {
				t.Errorf("%d others were asked and DNS %d times, want %d and 1", n, asked.Load(), 2*maxWitnesses)
			}
			<-done
		})
	})
}

// TestMeteredTrials lets origins starve their connections over a metered link: checking whether it is dead costs little.
func TestMeteredTrials(t *testing.T) {
	const evil, most = 6, 30 * time.Second
	for _, tt := range []struct {
		name          string
		answers, told bool // of its DNS servers
		dark          bool // no host that was reached over it is still reachable
		want          int  // connections to other hosts
	}{
		{"R207 DNS servers answer", true, true, false, 0},
		{"R207 DNS servers are silent, others answer", false, true, false, 1},
		{"R207 no DNS servers, others answer", false, false, false, 1},
		{"R207 DNS servers are silent, others are not reached", false, true, true, maxWitnesses},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				if tt.told {
					w.answers = func(context.Context, string) bool { return tt.answers }
				}
				e := newWorldEngine(t, w, nil)
				for i := range evil {
					if addr := fmt.Sprintf("evil%d:80", i); tt.dark {
						w.shut[addr] = "b"
					} else {
						w.starved[addr] = "b"
					}
				}
				for i := range maxReached {
					addr := fmt.Sprintf("good%d:80", i)
					if met(e, linkB, addr); tt.dark {
						w.shut[addr] = "b"
					}
				}
				var done []<-chan struct{}
				for i := range evil {
					done = append(done, download(t, e, fmt.Sprintf("evil%d:80", i)))
					if tt.dark {
						becomes(t, e, "b", "banned", most)
						break // probes follow
					}
					time.Sleep(most / evil)
				}
				n := 0
				for _, p := range w.probes() {
					if strings.HasPrefix(p, "good") {
						n++
					}
				}
				if state := linkState(e, "b"); n != tt.want || (state == "up") == tt.dark {
					t.Errorf("%d connections to others in %v, want %d; b is %s", n, most, tt.want, state)
				}
				for _, d := range done {
					<-d
				}
			})
		})
	}
}

// TestSitesAreBounded keeps few of the origins that nobody downloads from.
func TestSitesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newFakeEngine(t, &fakeOrigin{size: 1})
		for i := range 3 * maxIdle {
			req := fakeRequest(true)
			req.Target.Addr = fmt.Sprintf("host%d:80", i)
			resp, err := e.Get(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		synctest.Wait() // the last transfer ends after its answer
		e.fleet.mu.Lock()
		defer e.fleet.mu.Unlock()
		if n := len(e.fleet.sites); n != maxIdle {
			t.Fatalf("%d origins are kept, want %d", n, maxIdle)
		}
		if newest := e.fleet.sites[maxIdle-1].addr; newest != fmt.Sprintf("host%d:80", 3*maxIdle-1) {
			t.Errorf("the newest origin kept is %s", newest)
		}
	})
}

// TestBehindNAT64: all of the IPv4 internet has one IPv6 prefix behind a NAT64. Origins there are strangers to each other unless their
// IPv4 addresses are neighbors.
func TestBehindNAT64(t *testing.T) {
	prefix := netip.MustParsePrefix("2001:db8:64::/96")
	e := newWorldEngine(t, newWorld(), func(c *Config) {
		c.Behind = func(l link.Link, a netip.Addr) netip.Addr {
			if b := a.As16(); l.Name == "a" && prefix.Contains(a) {
				return netip.AddrFrom4([4]byte(b[12:]))
			}
			return a
		}
	})
	for i, addr := range []string{"2001:db8:64::192.0.2.1", "2001:db8:64::203.0.113.1", "2001:db8:64::203.0.113.9", "2001:db8:9::1", "2001:db8:9:1::1"} {
		e.Connected(linkA, fmt.Sprintf("o%d.test:443", i), netip.MustParseAddr(addr))
	}
	e.fleet.mu.Lock()
	defer e.fleet.mu.Unlock()
	accuser := []accuser{{"evil.test", []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}}}
	if got, want := e.fleet.witnesses(0, accuser, maxAsked), []string{"o4.test:443", "o0.test:443"}; !slices.Equal(got, want) {
		t.Errorf("%q may speak for the link, want %q", got, want)
	}
}
