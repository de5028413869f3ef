package engine

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/net/link"
)

const (
	atHome = "wlan0 192.168.1.0/24 192.168.1.1"
	known  = estimate.Origin("http://o:80")
	other  = estimate.Origin("http://other:80")
)

// movable is link "a" in a network.
func movable(w *world, network string) link.Link {
	return link.Link{Name: "a", Network: network, Path: &worldPath{w, "a"}}
}

// later returns the record that another process begins with.
func later(e *Engine) *estimate.Record {
	r := estimate.NewRecord(estimate.Salt{1})
	for _, add := range e.Findings() {
		add(r)
	}
	return r
}

// getting returns a GET that has only started, for remember.
func getting(e *Engine, o estimate.Origin, path string) *run {
	r := &run{e: e, origin: o, req: &Request{Target: Target{Path: path}}}
	for _, l := range e.fleet.links() {
		r.links = append(r.links, newRunLink(health.Up, l))
	}
	return r
}

// TestRemember: the findings of a transfer about a network apply there, whatever the link's name is, also in another process.
func TestRemember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		e := newWorldEngine(t, w, nil)
		b := link.Link{Name: "b", Path: &worldPath{w, "b"}}
		e.SetLinks([]link.Link{movable(w, atHome), b})
		<-download(t, e, "o:80")
		for name, at := range map[string]link.Link{"its network": movable(w, atHome), "another name": {Name: "c", Network: atHome}, "no network": b} {
			if e.lookUp(at, known).Pipelining != estimate.Works || e.lookUp(at, other).Rate == 0 {
				t.Errorf("%s: %+v, another origin %+v", name, e.lookUp(at, known), e.lookUp(at, other))
			}
		}
		if got := e.lookUp(movable(w, "elsewhere"), known); got != (estimate.Entry{}) {
			t.Errorf("another network: %+v", got)
		}

		next := newWorldEngine(t, w, nil)
		if got := next.lookUp(movable(w, atHome), known); got != (estimate.Entry{}) {
			t.Errorf("a new engine knows %+v", got)
		}
		next.SetRecord(later(e))
		const pace = float64(chunk) / 0.080
		for _, o := range []estimate.Origin{known, other} {
			if got := next.lookUp(movable(w, atHome), o); got.Rate < pace/2 || got.Rate > 1.01*pace { // between two answers a link of this world rests
				t.Errorf("%s in another process: %.0f, the link carries %.0f at most", o, got.Rate, pace)
			}
		}
		if got := next.Remembered(movable(w, atHome)); got < pace/2 || next.Remembered(movable(w, "elsewhere")) != 0 {
			t.Errorf("%.0f remembered of the network, the link carries %.0f at most", got, pace)
		}
		// A process's own findings count more.
		next.remember(getting(next, known, "/"), opening.Notes{}, []linkNotes{{network: atHome, entry: estimate.Entry{Rate: 7}}})
		if got := next.lookUp(movable(w, atHome), known); got.Rate != 7 {
			t.Errorf("seen just now: %+v", got)
		}
		if len(e.Findings()) > 0 {
			t.Error("findings are taken twice")
		}
	})
}

// TestRememberNothingOfTwoNetworks: a link that is in another network at the end of a transfer says nothing about either.
func TestRememberNothingOfTwoNetworks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		e := newWorldEngine(t, w, nil)
		b := link.Link{Name: "b", Path: &worldPath{w, "b"}}
		e.SetLinks([]link.Link{movable(w, atHome), b})
		done := download(t, e, "o:80")
		time.Sleep(5 * time.Second)
		e.SetLinks([]link.Link{movable(w, "a train"), b})
		<-done
		r := later(e)
		for _, network := range []string{atHome, "a train"} {
			if got := r.Link(time.Now(), network, known); got != (estimate.Entry{}) {
				t.Errorf("%s: %+v", network, got)
			}
			if got := e.lookUp(movable(w, network), known); got != (estimate.Entry{}) {
				t.Errorf("%s: %+v", network, got)
			}
		}
		if r.Link(time.Now(), "b", known).Rate == 0 {
			t.Error("nothing is known of the other link")
		}
	})
}

// TestRememberConnections: how many connections paid off, and how many an origin allows, counts in another process.
func TestRememberConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		e, next := newWorldEngine(t, w, nil), newWorldEngine(t, w, nil)
		e.remember(getting(e, known, "/"), opening.Notes{}, []linkNotes{{atHome, estimate.Entry{Rate: 1e6, Conns: 3}, 1e6}})
		e.remember(getting(e, other, "/"), opening.Notes{}, []linkNotes{{atHome, estimate.Entry{Rate: 1e6, Conns: 2, MaxConns: 1}, 1e6}})
		next.SetRecord(later(e))
		for o, want := range map[estimate.Origin][2]int8{known: {3, 0}, other: {2, 1}, "http://third:80": {}} {
			if got := next.lookUp(movable(w, atHome), o); [2]int8{got.Conns, got.MaxConns} != want || got.Rate == 0 {
				t.Errorf("%s: %+v, want %v", o, got, want)
			}
		}
	})
}

// TestLimitsAreTriedAgain: however often an origin is asked, a limit that it showed once is tried again after a day. Rates are those
// of the last minutes meanwhile.
func TestLimitsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		e := newWorldEngine(t, w, nil)
		a := movable(w, atHome)
		get := func(l estimate.Entry) {
			e.remember(getting(e, known, "/"), opening.Notes{}, []linkNotes{{atHome, l, 3e6}})
		}
		began := time.Now()
		get(estimate.Entry{Rate: 1e6, RTT: 50 * time.Millisecond, Pipelining: estimate.Broken, Conns: 3, MaxConns: 1})
		for time.Since(began) < 23*time.Hour {
			time.Sleep(9 * time.Minute)
			if got := e.lookUp(a, known); got.MaxConns != 1 || got.Pipelining != estimate.Broken || got.Conns != 3 {
				t.Fatalf("after %v: %+v", time.Since(began), got)
			}
			get(estimate.Entry{Rate: 2e6, Peak: 4e6})
			if got := e.lookUp(a, known); got.Rate != 2e6 || got.Peak != 4e6 || got.RTT != 50*time.Millisecond {
				t.Fatalf("after %v: %+v", time.Since(began), got)
			}
		}
		for time.Since(began) < 25*time.Hour {
			time.Sleep(9 * time.Minute)
			get(estimate.Entry{Rate: 2e6, Peak: 4e6, RTT: 30 * time.Millisecond})
		}
		if got := e.lookUp(a, known); got.MaxConns != 0 || got.Pipelining != estimate.Untried || got.Conns != 0 || got.RTT != 30*time.Millisecond {
			t.Errorf("after a day: %+v", got)
		}
		time.Sleep(11 * time.Minute)
		if got := e.lookUp(a, known); math.Abs(got.Rate-3e6) > 1e5 || got.Peak != 0 || got.RTT != 30*time.Millisecond {
			t.Errorf("after some minutes without a GET: %+v", got)
		}
	})
}

// counting counts the bytes that are requested over each link of a world.
type counting struct {
	*world
	asked map[string]int64 // under the world's lock
}

type countingConn struct {
	Conn
	a    *counting
	link string
}

func (a *counting) Open(ctx context.Context, l link.Link, t Target) (Conn, error) {
	c, err := a.world.Open(ctx, l, t)
	if err != nil {
		return nil, err
	}
	return &countingConn{c, a, l.Name}, nil
}

func (c *countingConn) Send(r RangeRequest) error {
	c.a.mu.Lock()
	c.a.asked[c.link] += r.Range.Len()
	c.a.mu.Unlock()
	return c.Conn.Send(r)
}

// TestRememberedSplit: before a link has shown a rate in this process, it is asked for its share by the rates that an earlier
// process has seen, within 10 %.
func TestRememberedSplit(t *testing.T) {
	for name, c := range map[string]struct {
		a, b       float64 // rates
		remembered bool
	}{
		"the fast link is asked first": {4.5e6, 1.25e6, true},
		"the slow link is asked first": {2e6, 4e6, true},
		"nothing is remembered":        {4.5e6, 1.25e6, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &counting{newWorld(), map[string]int64{}}
				e := newWorldEngine(t, w.world, func(cfg *Config) {
					cfg.Opener, cfg.Scheduler, cfg.Window, cfg.Threshold = w, scheduler(schedule.Default), 16*mib, 128<<10
				})
				e.SetLinks([]link.Link{{Name: "a", Metric: 1, Path: &worldPath{w.world, "a"}}, {Name: "b", Metric: 2, Path: &worldPath{w.world, "b"}}})
				if r := estimate.NewRecord(estimate.Salt{1}); c.remembered {
					entry := estimate.Entry{Pipelining: estimate.Works, Conns: 1}
					r.SetLink(time.Now(), "a", known, entry, c.a)
					r.SetLink(time.Now(), "b", known, entry, c.b)
					e.SetRecord(r)
				}
				done := download(t, e, "o:80")
				time.Sleep(chunkTime) // heads have arrived, and no more
				w.mu.Lock()
				asked, want := float64(w.asked["a"])/float64(w.asked["b"]), c.a/c.b
				w.mu.Unlock()
				if within := math.Abs(math.Log(asked/want)) <= math.Log(1.1); within != c.remembered {
					t.Errorf("the links carry %.2f to 1 and are asked for %v: %.2f to 1", want, w.asked, asked)
				}
				<-done
			})
		})
	}
}

// TestRememberRefusals: a process does not immediately ask for what an origin refused to an earlier one.
func TestRememberRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		e, next := newWorldEngine(t, w, nil), newWorldEngine(t, w, nil)
		e.remember(getting(e, known, "/a"), opening.Notes{Whole: true, Excluded: []string{"b"}}, nil)
		recall := func(e *Engine, o estimate.Origin, path string) (opening.Memory, map[string]bool) {
			return e.recall(o, &Request{Target: Target{Path: path}}, e.fleet.links())
		}
		if m, refused := recall(next, known, "/a"); m.Whole || len(refused) > 0 {
			t.Errorf("before: %+v, %v", m, refused)
		}
		next.SetRecord(later(e))
		for _, e := range []*Engine{e, next} {
			if m, refused := recall(e, known, "/a"); !m.Whole || !refused["b"] || refused["a"] {
				t.Errorf("%+v, %v", m, refused)
			}
			if m, refused := recall(e, known, "/b"); m.Whole || !refused["b"] {
				t.Errorf("another object: %+v", m)
			}
			if m, refused := recall(e, other, "/a"); m.Whole || len(refused) > 0 {
				t.Errorf("another origin: %+v", m)
			}
		}
	})
}

// TestRefusalsOfTwoNetworks: a refusal over a link that is in another network at the end says nothing about either network.
func TestRefusalsOfTwoNetworks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		e := newWorldEngine(t, w, nil)
		b := link.Link{Name: "b", Path: &worldPath{w, "b"}}
		excluded := func() map[string]bool {
			_, refused := e.recall(known, &Request{Target: Target{Path: "/a"}}, e.fleet.links())
			return refused
		}
		e.SetLinks([]link.Link{movable(w, atHome), b})
		r := getting(e, known, "/a")
		e.SetLinks([]link.Link{movable(w, "a train"), b, {Name: "c", Path: &worldPath{w, "c"}}})
		e.remember(r, opening.Notes{Excluded: []string{"a", "b", "c"}}, nil)
		if x := excluded(); x["a"] || !x["b"] || x["c"] {
			t.Errorf("in the new network: %v", x)
		}
		e.SetLinks([]link.Link{movable(w, atHome), b})
		if x := excluded(); x["a"] || !x["b"] {
			t.Errorf("at home again: %v", x)
		}
		r = getting(e, known, "/a")
		e.remember(r, opening.Notes{Excluded: []string{"a"}}, nil)
		if x := excluded(); !x["a"] {
			t.Errorf("refused at home: %v", x)
		}
	})
}

// TestFindings: findings do not pile up if nobody takes them, and none is lost when the record is replaced.
func TestFindings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWorldEngine(t, newWorld(), nil)
		note := func(i int) {
			e.remember(getting(e, estimate.Origin(fmt.Sprint(i)), "/"), opening.Notes{}, []linkNotes{{"a", estimate.Entry{Rate: 1, RTT: time.Millisecond}, 1e6}})
		}
		for i := range 3000 {
			note(i)
		}
		if n := len(e.Findings()); n != maxFindings {
			t.Errorf("%d findings", n)
		}
		note(1)
		e.SetRecord(estimate.NewRecord(estimate.Salt{}))
		if e.record.Link(time.Now(), "a", "1").RTT == 0 || e.record.Link(time.Now(), "a", "2").RTT > 0 {
			t.Error("the new record does not begin with what was not taken")
		}
	})
}
