package schedule_test

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// metered returns the view of a download of size bytes that still lacks left bytes. Wi-Fi carries 2 MB/s; LTE, which is
// metered and delivered the brought bytes, carries 8 MB/s.
func metered(size, left, brought int64) *schedule.View {
	at := size - left
	return &schedule.View{
		Object: rng(0, size), Offset: at, Limit: size, Window: size, Free: []segment.Range{rng(at, size)},
		Links: []schedule.Link{
			{Usable: true, CanAsk: true, Running: 1, Rate: 2e6, Got: at - brought},
			{Usable: true, CanAsk: true, Rate: 8e6, Recalled: true, Optional: true, Got: brought},
		},
	}
}

// LTE delivers 0.8 of the rest. For S bytes, a percent costs (S-x)/100:
//
//	from the start        x = 0.8 S               0.002 S per percent: 1 MB for S = 500 MB
//	when half has arrived x = 0.4 S               0.006 S
//	the same, LTE delivered 0.3 S of that half: x = 0.7 S, 0.003 S, and links in use may cost 5 % more
func TestCheapest(t *testing.T) {
	const price = 1_000_000
	for name, c := range map[string]struct {
		size, left, brought int64
		before              bool // LTE was in use
		want                schedule.Spared
	}{
		"small":                      {10e6, 10e6, 0, false, schedule.NotSpared},
		"just worth it":              {499e6, 499e6, 0, false, schedule.NotSpared},
		"not quite worth it":         {501e6, 501e6, 0, false, schedule.CostsMoney},
		"large":                      {5e9, 5e9, 0, false, schedule.CostsMoney},
		"too late":                   {200e6, 100e6, 0, false, schedule.CostsMoney},
		"late, worth it":             {160e6, 80e6, 0, false, schedule.NotSpared},
		"in use, a bit dearer":       {345e6, 345e6 / 2, 345e6 * 3 / 10, true, schedule.NotSpared},
		"not in use, a bit dearer":   {345e6, 345e6 / 2, 345e6 * 3 / 10, false, schedule.CostsMoney},
		"in use, dearer":             {355e6, 355e6 / 2, 355e6 * 3 / 10, true, schedule.CostsMoney},
		"in use, the last kilobytes": {100e6, 10e3, 79e6, true, schedule.NotSpared},
	} {
		g := &schedule.Cheapest{PerPercent: price}
		g.Spare(start, metered(10e6, 10e6, 0))
		if c.before {
			g.Spare(start.Add(time.Second), metered(10e6, 10e6, 0))
		}
		v := metered(c.size, c.left, c.brought)
		if again := g.Spare(start.Add(2*time.Second), v); again.IsZero() {
			t.Errorf("%s: never asked again", name)
		}
		if got := v.Links[1].Spared; got != c.want || v.Links[1].Usable != (c.want == schedule.NotSpared) || !v.Links[0].Usable {
			t.Errorf("%s: %q, want %q; links %+v", name, got, c.want, v.Links)
		}
	}
}

// TestCheapestWaits checks that metered links rest until the others have shown their rates, and for a second while the others are
// silent, and that they carry everything when there is no other link.
func TestCheapestWaits(t *testing.T) {
	g := &schedule.Cheapest{PerPercent: 1}
	look := func(after time.Duration, change func(wifi *schedule.Link)) schedule.Spared {
		v := metered(10e6, 10e6, 0)
		change(&v.Links[0])
		g.Spare(start.Add(after), v)
		return v.Links[1].Spared
	}
	well := func(*schedule.Link) {}
	silent := func(l *schedule.Link) { l.Usable, l.Suspect = false, true }
	for _, step := range []struct {
		after  time.Duration
		change func(*schedule.Link)
		want   schedule.Spared
	}{
		{0, well, schedule.TooEarly},
		{400 * time.Millisecond, well, schedule.TooEarly},
		{time.Second, func(l *schedule.Link) { l.Recalled = true }, schedule.TooEarly},
		{time.Second, well, schedule.CostsMoney},
		{2 * time.Second, silent, schedule.JustSilent},
		{2900 * time.Millisecond, silent, schedule.JustSilent},
		{3 * time.Second, silent, schedule.NotSpared},
		{4 * time.Second, well, schedule.CostsMoney},
		{5 * time.Second, func(l *schedule.Link) { l.Usable = false }, schedule.NotSpared},
	} {
		if got := look(step.after, step.change); got != step.want {
			t.Errorf("after %v: %q, want %q", step.after, got, step.want)
		}
	}
}
