package schedule_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/schedule/scheduletest"
	"github.com/tributary-http/tributary/internal/core/segment"
)

func model(t testing.TB, name string) *energy.Radio {
	t.Helper()
	r, err := energy.FindRadio(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wifiAndLTE returns the view of a download with left bytes to go. Wi-Fi carries 2 MB/s; LTE is asleep and has a remembered rate of
// 8 MB/s.
func wifiAndLTE(t testing.TB, left int64) *schedule.View {
	return &schedule.View{
		Object: rng(0, left), Limit: left, Window: left, Free: []segment.Range{rng(256<<10, left)},
		Attempts: []schedule.Attempt{{ID: 1, Range: rng(0, 256<<10)}},
		Links: []schedule.Link{
			{Usable: true, CanAsk: true, Running: 1, Rate: 2e6, Optional: true, Radio: model(t, "galaxy-s3/wifi")},
			{Usable: true, CanAsk: true, Rate: 8e6, Recalled: true, Optional: true, Radio: model(t, "galaxy-s3/lte"), Silent: time.Hour},
		},
	}
}

// spared returns a goal's verdict on each link, now and after it has seen the same view for a while: goals consider the joules
// after 0.5 s, and judge the links that they woke after 3 s.
func spared(g schedule.Goal, v func() *schedule.View) (first, later []schedule.Spared) {
	for _, now := range []time.Duration{0, 200 * time.Millisecond, time.Second, 4 * time.Second} {
		x := v()
		g.Spare(start.Add(now), x)
		later = nil
		for _, l := range x.Links {
			later = append(later, l.Spared)
			if l.Usable == (l.Spared != schedule.NotSpared) {
				return nil, nil
			}
		}
		if first == nil {
			first = later
		}
	}
	return first, later
}

// Wi-Fi at -60 dBm takes 0.2812 W, LTE at -100 dBm 1.5355 W, the device an additional 0.7 W. M megabytes take
//
//	by Wi-Fi      0.9812 W * M/2 s = 0.49060 M joules
//	by both       0.36 + 1.65544 J for waking LTE and its tail, 2.5167 W * M/10 s = 2.01544 + 0.25167 M
//	by LTE        2.01544 + 2.2355 W * M/8 s = 2.01544 + 0.27944 M
//
// Both may take 2 % more than Wi-Fi alone: 2.01544 + 0.25167 M <= 1.02 * 0.49060 M from M = 8.103 on. Both always take less than
// LTE alone.
func TestFrugalBreakEven(t *testing.T) {
	for left, want := range map[int64]schedule.Spared{
		1e6: schedule.CostsMore, 4e6: schedule.CostsMore, 8.05e6: schedule.CostsMore, 8.15e6: schedule.NotSpared, 100e6: schedule.NotSpared,
	} {
		first, later := spared(&schedule.Frugal{}, func() *schedule.View { return wifiAndLTE(t, left) })
		if len(later) != 2 || first[0] != schedule.NotSpared || first[1] != schedule.TooEarly || later[0] != schedule.NotSpared || later[1] != want {
			t.Errorf("%d bytes: at first %v, later %v, want LTE %q", left, first, later, want)
		}
	}
}

func TestFrugal(t *testing.T) {
	const left = 100e6 // LTE is worth waking
	for _, c := range []struct {
		name   string
		change func(v *schedule.View)
		want   [2]schedule.Spared
	}{
		{"as it is", func(*schedule.View) {}, [2]schedule.Spared{}},
		{"no rate yet", func(v *schedule.View) { v.Links[0].Rate = 0 }, [2]schedule.Spared{1: schedule.TooEarly}},
		{"a remembered rate", func(v *schedule.View) { v.Links[0].Recalled = true }, [2]schedule.Spared{1: schedule.TooEarly}},
		{"a full window", func(v *schedule.View) { v.Limit = v.Free[0].Start }, [2]schedule.Spared{1: schedule.NoRoom}},
		{"LTE is to be used in any case", func(v *schedule.View) { v.Limit, v.Links[1].Optional = v.Free[0].Start, false }, [2]schedule.Spared{}},
		{"what LTE costs is not known", func(v *schedule.View) { v.Limit, v.Links[1].Radio = v.Free[0].Start, nil }, [2]schedule.Spared{}},
		{"another download uses LTE", func(v *schedule.View) { v.Free[0].End, v.Links[1].Silent = 6e6, 10*time.Millisecond }, [2]schedule.Spared{}},
		{"few bytes are left", func(v *schedule.View) { v.Free[0].End = 6e6 }, [2]schedule.Spared{1: schedule.CostsMore}},
		// LTE is unknown: 30 Mbit/s (3.75 MB/s) are assumed. 98 % of 30 MB by Wi-Fi are 14.7 J; both 2.01544 + 2.5167 W * 30/5.75 s
		// = 15.1 J, more than 102 % of it; of 100 MB 49.06 and 45.8 J.
		{"an unknown rate, 30 MB", func(v *schedule.View) { v.Free[0].End, v.Links[1].Rate, v.Links[1].Recalled = 30e6, 0, false }, [2]schedule.Spared{1: schedule.CostsMore}},
		{"an unknown rate, 100 MB", func(v *schedule.View) { v.Links[1].Rate, v.Links[1].Recalled = 0, false }, [2]schedule.Spared{}},
		// By both 2.5167 W * 100/8.2 s = 30.7 J, by LTE alone 2.2355 W * 100/8 s = 27.9 J.
		{"Wi-Fi is not worth its joules", func(v *schedule.View) {
			v.Links[0].Rate, v.Links[1].Running, v.Links[1].Recalled = 0.2e6, 1, false
		}, [2]schedule.Spared{0: schedule.CostsMore}},
		{"it may be, until LTE has shown its rate", func(v *schedule.View) { v.Links[0].Rate = 0.2e6 }, [2]schedule.Spared{}},
	} {
		_, later := spared(&schedule.Frugal{}, func() *schedule.View {
			v := wifiAndLTE(t, left)
			c.change(v)
			return v
		})
		if len(later) != 2 || [2]schedule.Spared(later) != c.want {
			t.Errorf("%s: %v, want %v", c.name, later, c.want)
		}
	}
}

// Frugal decides as soon as the rate of the links in use no longer grows, and after 0.5 s in any case.
func TestFrugalDecidesEarly(t *testing.T) {
	for _, c := range []struct {
		name  string
		rates []float64 // every 100 ms
		rtt   time.Duration
		want  time.Duration
	}{
		{"steady", []float64{2e6, 2e6, 2e6}, 20 * time.Millisecond, 100 * time.Millisecond},
		{"a short slow start", []float64{0, 1.2e6, 1.9e6, 2e6}, 20 * time.Millisecond, 300 * time.Millisecond},
		{"a long one", []float64{0.1e6, 0.2e6, 0.4e6, 0.8e6, 1.6e6, 2e6}, 20 * time.Millisecond, 500 * time.Millisecond},
		{"bursts and silence between them", []float64{0.2e6, 0.2e6, 0.15e6, 0.4e6, 0.4e6, 0.4e6}, 150 * time.Millisecond, 500 * time.Millisecond},
		{"a rate that falls", []float64{2e6, 1.5e6, 1.1e6, 0.8e6, 0.6e6, 0.6e6}, 20 * time.Millisecond, 500 * time.Millisecond},
		{"an unknown round trip", []float64{2e6, 2e6, 2e6, 2e6, 2e6, 2e6}, 0, 500 * time.Millisecond},
		{"nothing yet", []float64{0, 0, 0, 0, 0, 0, 0, 2e6}, 20 * time.Millisecond, 700 * time.Millisecond},
	} {
		var f schedule.Frugal
		for i, rate := range c.rates {
			now := time.Duration(i) * 100 * time.Millisecond
			v := wifiAndLTE(t, 100e6)
			v.Links[0].Rate, v.Links[0].RTT = rate, c.rtt
			f.Spare(start.Add(now), v)
			if early := v.Links[1].Spared == schedule.TooEarly; early != (now < c.want) {
				t.Errorf("%s: after %v %q", c.name, now, v.Links[1].Spared)
			}
		}
	}
}

// An unknown LTE link is assumed to have 30 Mbit/s (3.75 MB/s) and is woken for 100 MB. It is judged after 3 s, by the bytes that
// it delivered meanwhile: 2.5167 W / (2 + x) MB/s by both against 0.9812 W / 2 MB/s by Wi-Fi alone are equal at x = 3.13 MB/s, and
// 2 % less at 3.03. A slow start and a dip do not send it to sleep.
func TestFrugalJudges(t *testing.T) {
	for brings, want := range map[float64]schedule.Spared{1e6: schedule.CostsMore, 2.9e6: schedule.CostsMore, 3.5e6: schedule.NotSpared, 8e6: schedule.NotSpared} {
		var f schedule.Frugal
		wifi, lte := 0.0, 0.0
		for now := time.Duration(0); now <= 5*time.Second; now += 50 * time.Millisecond {
			v := wifiAndLTE(t, 100e6)
			wifi += 2e6 / 20
			v.Links[0].Got, v.Links[0].RTT = int64(wifi), 20*time.Millisecond
			l := &v.Links[1]
			l.Rate, l.Recalled = 0, false
			if now > 300*time.Millisecond { // woken at 100 ms; it sent a request
				rate := brings
				if now < 500*time.Millisecond || now > 4800*time.Millisecond {
					rate = 0.1e6
				}
				lte += rate / 20
				l.Running, l.Got, l.Rate, l.Silent = 1, int64(lte), rate, 0
			}
			f.Spare(start.Add(now), v)
			expect := schedule.NotSpared
			switch {
			case now < 100*time.Millisecond:
				expect = schedule.TooEarly
			case now > 3200*time.Millisecond:
				expect = want
			case now >= 3000*time.Millisecond:
				continue // it is about to be judged
			}
			if l.Spared != expect {
				t.Fatalf("%.1f MB/s, after %v: %q, want %q", brings/1e6, now, l.Spared, expect)
			}
		}
	}
}

// A silent link in use gets a second before another is woken; a lost one does not.
func TestFrugalSilence(t *testing.T) {
	for _, suspect := range []bool{true, false} {
		var f schedule.Frugal
		ask := func(after time.Duration, silent bool) (schedule.Spared, time.Time) {
			v := wifiAndLTE(t, 4e6)
			v.Links[0].Usable, v.Links[0].Suspect = !silent, silent && suspect
			again := f.Spare(start.Add(after), v)
			return v.Links[1].Spared, again
		}
		ask(0, false)
		ask(time.Second, false)
		got, again := ask(2*time.Second, true)
		if suspect && (got != schedule.JustSilent || !again.Equal(start.Add(3*time.Second))) || !suspect && got != schedule.NotSpared {
			t.Errorf("suspect %v: %q, again at %v", suspect, got, again)
		}
		if got, _ := ask(3*time.Second, true); got != schedule.NotSpared {
			t.Errorf("suspect %v, a second later: %q", suspect, got)
		}
	}
}

// Whatever the view, a goal only takes links out and changes nothing else, and leaves at least one usable link, if there is one,
// after a second at the latest.
func TestFrugalLeavesSomething(t *testing.T) {
	wifi, lte := model(t, "galaxy-s3/wifi"), model(t, "galaxy-s3/lte")
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		before := scheduletest.RandomView(rnd)
		usable := false
		for i := range before.Links {
			l := &before.Links[i]
			l.Optional, l.Silent = rnd.IntN(4) > 0, time.Duration(rnd.Int64N(int64(20*time.Second)))
			l.Radio = []*energy.Radio{nil, wifi, lte}[rnd.IntN(3)]
			usable = usable || l.Usable
		}
		var f schedule.Frugal
		for _, now := range []time.Duration{0, 600 * time.Millisecond, 2 * time.Second} {
			v := scheduletest.Clone(before)
			f.Spare(start.Add(now), v)
			some := false
			for i := range v.Links {
				some = some || v.Links[i].Usable
				if l := before.Links[i]; v.Links[i].Spared != schedule.NotSpared && (!l.Optional || l.Radio == nil || !l.Usable) {
					t.Fatalf("seed %d: link %d was taken out, %+v", seed, i, l)
				}
			}
			if usable && !some && now == 2*time.Second {
				t.Fatalf("seed %d: no link is left", seed)
			}
		}
	}
}

// everyGoal calls f with each kind of goal.
func everyGoal(f func(name string, g schedule.Goal)) {
	f("frugal", &schedule.Frugal{})
	f("cheapest", &schedule.Cheapest{PerPercent: schedule.DefaultPerPercent})
	f("within", &schedule.Deadline{Within: time.Hour})
	f("bitrate", &schedule.Deadline{Bitrate: 1e6, Startup: 2 * time.Second})
}

// TestGoalsAllocateNothing checks that a goal's decision does not allocate. BenchmarkGoal measures its time.
func TestGoalsAllocateNothing(t *testing.T) {
	everyGoal(func(name string, g schedule.Goal) {
		v := wifiAndLTE(t, 100e6)
		now := start
		if n := testing.AllocsPerRun(100, func() {
			now = now.Add(time.Second)
			v.Links[1].Usable, v.Links[1].Spared = true, schedule.NotSpared
			g.Spare(now, v)
		}); n != 0 {
			t.Errorf("%s: %g allocations", name, n)
		}
	})
}

// BenchmarkGoal reconsiders the joules, the bytes or the time in each decision.
func BenchmarkGoal(b *testing.B) {
	everyGoal(func(name string, g schedule.Goal) {
		b.Run(name, func(b *testing.B) {
			v := wifiAndLTE(b, 100e6)
			now := start
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Second)
				v.Links[1].Usable, v.Links[1].Spared = true, schedule.NotSpared
				g.Spare(now, v)
			}
		})
	})
}
