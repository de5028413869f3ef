package engine

import (
	"slices"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/transfer"
	"github.com/tributary-http/tributary/internal/net/link"
)

// TestSoleLinks: while memory is scarce, transfers are shared out among the links that cost nothing in proportion to what these
// deliver, and begin with the link that they got.
func TestSoleLinks(t *testing.T) {
	e := newFakeEngine(t, &fakeOrigin{})
	e.SetLinks([]link.Link{{Name: "a"}, {Name: "b"}, {Name: "m"}})
	links := []transfer.LinkConfig{{State: health.Up}, {State: health.Up}, {State: health.Up, Metered: true}}
	now := e.fleet.clock(time.Now())
	for at := now - int64(2*time.Second); at < now; at += int64(100 * time.Millisecond) {
		e.fleet.all[0].meter.add(at, 300_000)
		e.fleet.all[1].meter.add(at, 100_000)
	}
	begin := func(of ...transfer.LinkConfig) transfer.Config {
		r := &run{e: e, req: &Request{Target: Target{Scheme: "https", Addr: "a.example:443"}}, used: map[int8]bool{}, sole: -1}
		e.fleet.join(r)
		cfg := transfer.Config{Warm: true, Links: slices.Clone(of), Order: []int8{2, 0, 1}}
		r.chooseSole(&cfg)
		return cfg
	}
	got := map[int]int{}
	for range 40 {
		cfg := begin(links...)
		got[slices.IndexFunc(cfg.Links, func(l transfer.LinkConfig) bool { return l.Sole })]++
		if !cfg.Warm || cfg.Scarce || cfg.Order[0] != 2 {
			t.Fatalf("memory is not scarce: %+v", cfg)
		}
	}
	if got[0] < 28 || got[0] > 32 || got[0]+got[1] != 40 {
		t.Errorf("transfers by link: %v, want three times as many over the first as over the second", got)
	}
	if cfg := begin(transfer.LinkConfig{State: health.Down}, transfer.LinkConfig{State: health.Up, Resort: true}, links[2]); !cfg.Links[2].Sole {
		t.Error("the metered link does not serve though no other can")
	}
	for e.budget.Join(0, perSecureTransfer, func(int64) {}); !e.budget.Scarce(perSecureTransfer); {
		e.budget.Join(0, perSecureTransfer, func(int64) {})
	}
	cfg := begin(links...)
	if sole := cfg.Order[0]; cfg.Warm || !cfg.Scarce || !cfg.Links[sole].Sole || len(cfg.Order) != 3 {
		t.Errorf("memory is scarce: %+v", cfg)
	}
}
