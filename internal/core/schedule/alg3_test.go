package schedule_test

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// The links of the example of Skjolden 2019 section 4.3.5 (see formula_test.go).
func paperLinks() []schedule.Link {
	return []schedule.Link{link(1600*kb, 30_000*kb, 20*ms), link(400*kb, 30_000*kb, 40*ms)}
}

func TestAlg3First(t *testing.T) {
	const n = schedule.FirstSize
	v := newView(250*mb, 16*mib, link(0, 0, 0), link(0, 0, 0), link(0, 0, 0))
	v.Links[1].Usable = false
	ds, last := drain(t, &schedule.Alg3{}, v)
	sameDecisions(t, ds,
		fetch(0, rng(0, n), schedule.First), fetch(2, rng(n, 2*n), schedule.First))
	expect(t, last, schedule.Decision{})

	// A link that joins a running transfer is tried in the same way.
	v = newView(250*mb, huge, link(8*mb, 8*mb, 20*ms), link(0, 0, 0))
	ask(v, 0, rng(0, 50*mb), 10*mb)
	expect(t, (&schedule.Alg3{}).Next(start, v), fetch(1, rng(50*mb, 50*mb+n), schedule.First))
}

func TestAlg3Sizes(t *testing.T) {
	first := func(v *schedule.View) schedule.Decision { return (&schedule.Alg3{}).Next(start, v) }

	t.Run("the share of what is left", func(t *testing.T) {
		for _, left := range []int64{400_000, 300_000, 200_000} {
			v := newView(100*mb, huge, link(1*mb, 1*mb, 0), link(1*mb, 1*mb, 0))
			take(v, rng(0, 100*mb-left))
			expect(t, first(v), fetch(0, rng(100*mb-left, 100*mb-left+left/4), schedule.Share))
		}
	})
	t.Run("at least 2.5 x BDP", func(t *testing.T) {
		v := newView(250_000*kb, huge, paperLinks()...)
		v.Links[0].CanAsk = false
		expect(t, first(v), fetch(1, rng(0, 3000*kb), schedule.Floor))
	})
	t.Run("a link that is lost has no share", func(t *testing.T) {
		v := newView(300_000, huge, link(1*mb, 2*mb, 0), link(7*mb, 8*mb, 0))
		v.Links[1].Usable = false
		expect(t, first(v), fetch(0, rng(0, 150_000), schedule.Share))
	})
	t.Run("no longer than its goodput of a short time", func(t *testing.T) {
		v := newView(250*mb, huge, link(6*mb, 6*mb, 20*ms), link(3*mb, 3*mb, 40*ms))
		a, b := int64(6*mb*schedule.Longest.Seconds()), int64(3*mb*schedule.Longest.Seconds())
		ds, _ := drain(t, &schedule.Alg3{}, v)
		sameDecisions(t, ds, fetch(0, rng(0, a), schedule.Window), fetch(1, rng(a, a+b), schedule.Window))
	})
	t.Run("but as long as keeps it busy", func(t *testing.T) {
		v := newView(250*mb, huge, link(1*mb, 1*mb, time.Second))
		expect(t, first(v), fetch(0, rng(0, 2_500_000), schedule.Window))
	})
	t.Run("no longer than the share of a part of the window", func(t *testing.T) {
		v := newView(250*mb, 1500*kb, link(6*mb, 6*mb, 0), link(3*mb, 3*mb, 0))
		ds, _ := drain(t, &schedule.Alg3{}, v)
		n := int64(1500 * kb / schedule.WindowDiv / 3)
		if len(ds) < 2 || ds[0].Range != rng(0, 2*n) || ds[0].Rule != schedule.Window {
			t.Fatalf("want %d bytes: %v", 2*n, ds)
		}
		for _, d := range ds {
			if most := max(n*int64(2-d.Link), schedule.HedgeMin); d.Range.Len() > most {
				t.Errorf("more than %d bytes: %s", most, show(d))
			}
		}
	})
	t.Run("a very slow link still gets a range worth a request", func(t *testing.T) {
		v := newView(250*mb, 12*mib, link(60*mb, 60*mb, 20*ms), link(0.1*mb, 0.1*mb, 40*ms))
		v.Links[0].CanAsk = false
		expect(t, first(v), fetch(1, rng(0, schedule.HedgeMin), schedule.Window))
	})
	t.Run("a peak from before is the capacity", func(t *testing.T) {
		v := newView(400_000, huge, link(1*mb, 4*mb, 0)) // a quarter of its capacity
		expect(t, first(v), fetch(0, rng(0, 100_000), schedule.Share))
	})
	t.Run("a rate above the peak is the capacity", func(t *testing.T) {
		v := newView(360_000, huge, link(8*mb, 2*mb, 0), link(2*mb, 10*mb, 0))
		expect(t, first(v), fetch(0, rng(0, 80_000), schedule.Share)) // P/n x 10/18 x 8/10
	})
}

func TestAlg3LastPiece(t *testing.T) {
	// The floor is 500,000 bytes, the share is less.
	at := func(left int64) schedule.Decision {
		v := newView(100*mb, huge, link(10*mb, 40*mb, 5*ms), link(10*mb, 40*mb, 5*ms))
		take(v, rng(0, 100*mb-left))
		return (&schedule.Alg3{}).Next(start, v)
	}
	end := int64(100 * mb)
	expect(t, at(1), fetch(0, rng(end-1, end), schedule.Rest))
	expect(t, at(500_000), fetch(0, rng(end-500_000, end), schedule.Rest))
	expect(t, at(600_000), fetch(0, rng(end-600_000, end), schedule.Rest)) // less than a quarter would remain
	expect(t, at(700_000), fetch(0, rng(end-700_000, end-200_000), schedule.Floor))
}

func TestAlg3SeveralPieces(t *testing.T) {
	v := newView(100*mb, huge, link(10*mb, 10*mb, 20*ms), link(10*mb, 10*mb, 20*ms))
	take(v, rng(0, 10*mb))
	take(v, rng(11*mb, 50*mb)) // a lost attempt left a megabyte near the next offset
	ds, _ := drain(t, &schedule.Alg3{}, v)
	sameDecisions(t, ds, fetch(0, rng(10*mb, 11*mb), schedule.Rest), fetch(1, rng(50*mb, 52*mb), schedule.Window))
}

func TestAlg3Due(t *testing.T) {
	// 1 MB/s and 150 ms: due when at most 200,000 bytes are in flight.
	at := func(size, cursor int64) schedule.Decision {
		v := newView(100*mb, huge, link(1*mb, 1*mb, 150*ms))
		ask(v, 0, rng(0, size), cursor)
		return (&schedule.Alg3{}).Next(start, v)
	}
	asks := func(d schedule.Decision) bool { return d.Do == schedule.Fetch }
	t.Run("at 60 %", func(t *testing.T) {
		if asks(at(10*mb, 6*mb-1)) || !asks(at(10*mb, 6*mb)) {
			t.Error("not at 60 %")
		}
	})
	t.Run("when it would run dry within a round trip and 50 ms", func(t *testing.T) {
		if asks(at(300_000, 99_999)) || !asks(at(300_000, 100_000)) {
			t.Error("not one round trip and 50 ms before the end")
		}
	})
	t.Run("until it would run dry", func(t *testing.T) {
		d := at(10*mb, 5*mb)
		if want := start.Add(5*time.Second - 200*ms); d.Do != schedule.Wait || d.Until.Sub(want).Abs() > time.Microsecond {
			t.Errorf("%s, want %v", show(d), want)
		}
	})
	t.Run("the earliest of the links counts", func(t *testing.T) {
		v := newView(100*mb, huge, link(1*mb, 1*mb, 50*ms), link(1*mb, 1*mb, 50*ms), link(0, 0, 0))
		ask(v, 0, rng(0, 9*mb), 0)
		ask(v, 1, rng(9*mb, 13*mb), 9*mb)
		ask(v, 2, rng(13*mb, 14*mb), 13*mb)
		d := (&schedule.Alg3{}).Next(start, v)
		if want := start.Add(4*time.Second - 100*ms); d.Do != schedule.Wait || d.Until.Sub(want).Abs() > time.Microsecond {
			t.Errorf("%s, want %v", show(d), want)
		}
	})
	t.Run("two at a time", func(t *testing.T) {
		v := newView(250_000*kb, huge, link(1600*kb, 30_000*kb, 20*ms))
		ask(v, 0, rng(0, 1_000_000), 500_000)
		ask(v, 0, rng(1_000_000, 2_000_000), 1_900_000) // on a second connection
		if d := (&schedule.Alg3{}).Next(start, v); d.Do != schedule.Wait {
			t.Error(show(d))
		}
	})
	t.Run("short ranges are asked for ahead, but not without bound", func(t *testing.T) {
		v := newView(100*mb, 64*kib, link(1*mb, 1*mb, 150*ms)) // a window far below the BDP
		v.Limit = v.Object.End
		ds, _ := drain(t, &schedule.Alg3{}, v)
		if len(ds) < 2 || len(ds) > 4 {
			t.Errorf("%d requests at once", len(ds))
		}
	})
	t.Run("a link that may not be asked is not", func(t *testing.T) {
		v := newView(100*mb, huge, link(1*mb, 1*mb, 50*ms))
		v.Links[0].CanAsk = false
		expect(t, (&schedule.Alg3{}).Next(start, v), schedule.Decision{})
	})
	t.Run("nor one whose tail is being moved", func(t *testing.T) {
		v := newView(100*mb, huge, link(1*mb, 1*mb, 50*ms))
		ask(v, 0, rng(0, 10*mb), 9*mb).Stolen = true
		if d := (&schedule.Alg3{}).Next(start, v); d.Do != schedule.Wait {
			t.Errorf("%s", show(d))
		}
	})
}

func TestAlg3Window(t *testing.T) {
	// Two equal links share a window of 16 MiB; the next offset is stuck at 0. A range has n bytes; less than a quarter of n is a
	// sliver.
	const n = 16 * mib / schedule.WindowDiv / 2
	full := func(asked int64) *schedule.View {
		v := newView(250*mb, 16*mib, link(10*mb, 10*mb, 20*ms), link(10*mb, 10*mb, 20*ms))
		ask(v, 0, rng(0, 8*mib), 0)
		take(v, rng(8*mib, asked))
		return v
	}
	next := func(v *schedule.View) schedule.Decision { return (&schedule.Alg3{}).Next(start, v) }
	t.Run("full: wait, and move nothing that is under way", func(t *testing.T) {
		d := next(full(16 * mib))
		if d.Do != schedule.Wait {
			t.Error(show(d))
		}
	})
	t.Run("nearly full: wait rather than ask for a sliver", func(t *testing.T) {
		d := next(full(16*mib - n/4 + 1))
		if d.Do != schedule.Wait {
			t.Error(show(d))
		}
	})
	t.Run("a quarter of a range is worth a request", func(t *testing.T) {
		expect(t, next(full(16*mib-n/4)), fetch(1, rng(16*mib-n/4, 16*mib), schedule.Window))
	})
	t.Run("the object's last bytes are no sliver", func(t *testing.T) {
		v := newView(16*mib, 16*mib, link(10*mb, 10*mb, 20*ms))
		take(v, rng(0, 16*mib-1))
		expect(t, next(v), fetch(0, rng(16*mib-1, 16*mib), schedule.Rest))
	})
	t.Run("a link that waits for the window fetches what lies within", func(t *testing.T) {
		v := newView(250*mb, 16*mib, link(10*mb, 10*mb, 20*ms))
		ask(v, 0, rng(16*mib, 18*mib), 16*mib)
		v.Links[0].Blocked = true
		take(v, rng(1*mib, 250*mb))
		expect(t, next(v), fetch(0, rng(0, 1*mib), schedule.Rest))
	})
}
