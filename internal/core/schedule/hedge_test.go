package schedule_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/schedule/scheduletest"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// silent returns a view in which link 0 fell silent at the next offset, owing [1 MB, 3 MB); all other bytes are requested.
func silent() *schedule.View {
	v := newView(100*mb, 16*mib, link(4*mb, 4*mb, 20*ms), link(2*mb, 2*mb, 20*ms), link(1*mb, 1*mb, 20*ms))
	a := ask(v, 0, rng(0, 3*mb), 1*mb)
	a.Silent, a.Asked = true, start
	v.Links[0].Usable, v.Links[0].Suspect = false, true
	v.Offset, v.Limit = 1*mb, 1*mb+16*mib
	take(v, v.Object)
	return v
}

func TestHedge(t *testing.T) {
	owed := rng(1*mb, 3*mb)
	copyOf := func(i int8, r segment.Range) schedule.Decision {
		d := fetch(i, r, schedule.HedgeCopy)
		d.From, d.Hedge = 1, true
		return d
	}
	yes := func(t *testing.T, v *schedule.View, owed segment.Range, want schedule.Decision) {
		t.Helper()
		d, ok := schedule.Hedge(start, v, &v.Attempts[0], owed)
		if !ok {
			t.Fatal("no rescue")
		}
		expect(t, d, want)
		if wrong := scheduletest.Lawful(v, d); wrong != "" {
			t.Error(wrong)
		}
	}
	no := func(t *testing.T, v *schedule.View, owed segment.Range) {
		t.Helper()
		if d, ok := schedule.Hedge(start, v, &v.Attempts[0], owed); ok {
			t.Error(show(d))
		}
	}
	busy := func(t *testing.T, v *schedule.View, until time.Time) {
		t.Helper()
		d, ok := schedule.Hedge(start, v, &v.Attempts[0], owed)
		if !ok || d.Do != schedule.Wait || d.Until.Sub(until).Abs() > time.Microsecond {
			t.Errorf("%v %s, want to wait until %v", ok, show(d), until)
		}
	}
	t.Run("60 ms of the rescuer's goodput", func(t *testing.T) {
		yes(t, silent(), owed, copyOf(1, rng(1*mb, 1*mb+120_000)))
	})
	t.Run("more of it the longer the silence lasts", func(t *testing.T) {
		for silence, part := range map[time.Duration]int64{300 * ms: 120_000, time.Second: 400_000, 2 * time.Second: 800_000} {
			v := silent()
			v.Attempts[0].Asked = start.Add(-silence)
			yes(t, v, owed, copyOf(1, rng(1*mb, 1*mb+part)))
			v.Attempts[0].Asked, v.Attempts[0].Last = start.Add(-time.Minute), start.Add(-silence)
			yes(t, v, owed, copyOf(1, rng(1*mb, 1*mb+part)))
		}
	})
	t.Run("at least what is worth a request", func(t *testing.T) {
		v := silent()
		v.Links[1].Rate = 0
		yes(t, v, owed, copyOf(1, rng(1*mb, 1*mb+schedule.HedgeMin)))
	})
	t.Run("no more than is owed, no less than all if little would be left", func(t *testing.T) {
		yes(t, silent(), rng(1*mb, 1*mb+500), copyOf(1, rng(1*mb, 1*mb+500)))
		const end, half = 1*mb + 120_000, schedule.HedgeMin / 2
		yes(t, silent(), rng(1*mb, end+half-1), copyOf(1, rng(1*mb, end+half-1)))
		yes(t, silent(), rng(1*mb, end+half), copyOf(1, rng(1*mb, end)))
	})
	t.Run("what is nearest the next offset comes first", func(t *testing.T) {
		v := silent()
		v.Free = []segment.Range{rng(2*mb, 2*mb+1)} // free bytes, but behind the owed bytes
		yes(t, v, owed, copyOf(1, rng(1*mb, 1*mb+120_000)))
		no(t, v, rng(2*mb+1, 3*mb)) // free bytes before it need no second copy
	})
	t.Run("free bytes beyond the window do not count", func(t *testing.T) {
		v := silent()
		v.Free = []segment.Range{rng(50*mb, 51*mb)}
		yes(t, v, owed, copyOf(1, rng(1*mb, 1*mb+120_000)))
	})
	t.Run("nothing beyond the window", func(t *testing.T) {
		v := silent()
		v.Limit = 1 * mb
		no(t, v, owed)
	})
	t.Run("by the link that brings it first", func(t *testing.T) {
		v := silent()
		ask(v, 1, rng(3*mb, 4*mb), 3*mb)
		yes(t, v, owed, copyOf(2, rng(1*mb, 1*mb+schedule.HedgeMin)))
		v.Links[1].Asked = 140_000 // 70 ms at 2 MB/s: within a round trip and 50 ms, but link 2 is idle
		yes(t, v, owed, copyOf(2, rng(1*mb, 1*mb+schedule.HedgeMin)))
		v.Links[2].Usable = false
		yes(t, v, owed, copyOf(1, rng(1*mb, 1*mb+120_000)))
	})
	t.Run("by a busy one, as long as something else is left to ask for", func(t *testing.T) {
		v := silent()
		v.Free = []segment.Range{rng(5*mb, 6*mb)}
		ask(v, 1, rng(3*mb, 4*mb), 3*mb) // 500 ms
		ask(v, 2, rng(4*mb, 5*mb), 4*mb) // 1 s
		yes(t, v, owed, copyOf(1, rng(1*mb, 1*mb+120_000)))
		v.Links[1].CanAsk, v.Links[2].CanAsk = false, false
		no(t, v, owed)
	})
	t.Run("by a link that waits for the window", func(t *testing.T) {
		v := silent()
		ask(v, 1, rng(20*mb, 30*mb), 20*mb)
		v.Links[1].Blocked = true
		yes(t, v, owed, copyOf(1, rng(1*mb, 1*mb+120_000)))
	})
	t.Run("not by the silent link, nor by one that cannot", func(t *testing.T) {
		v := silent()
		v.Links[0].Usable = true
		v.Links[1].Usable = false
		v.Links[2].Usable = false
		no(t, v, owed)
	})
	t.Run("busy links are kept for it", func(t *testing.T) {
		v := silent()
		ask(v, 1, rng(3*mb, 4*mb), 3*mb) // 500 ms
		ask(v, 2, rng(4*mb, 5*mb), 4*mb) // 1 s
		busy(t, v, start.Add(500*ms-20*ms-schedule.Lead))
		v.Links[1].Rate = 0 // the end of its ranges is unknown
		busy(t, v, start.Add(1000*ms-20*ms-schedule.Lead))
		v.Links[2].Usable = false
		busy(t, v, time.Time{})
	})
	t.Run("so are links of which no request can leave", func(t *testing.T) {
		v := silent()
		v.Links[1].CanAsk, v.Links[2].CanAsk = false, false
		busy(t, v, time.Time{})
	})
}

func TestDue(t *testing.T) {
	l := link(1*mb, 1*mb, 50*ms)
	if !l.Due() {
		t.Error("an idle link is not due")
	}
	l.Running = 1
	for asked, want := range map[int64]bool{0: true, 100_000: true, 100_001: false} {
		if l.Asked = asked; l.Due() != want {
			t.Errorf("with %d bytes to come: %v", asked, !want)
		}
	}
	if l.Blocked = true; !l.Due() {
		t.Error("a link that waits for the window is not due")
	}
	l.Blocked, l.Rate, l.Asked = false, 0, 1
	if l.Due() {
		t.Error("a link of unknown rate is due")
	}
}

func TestHedgeRandom(t *testing.T) {
	fetches := 0
	for seed := range uint64(3000) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		v := scheduletest.RandomView(rnd)
		for i := range v.Attempts {
			from := &v.Attempts[i]
			owed := rng(from.Cursor+int64(rnd.IntN(int(from.Left()))), from.Range.End)
			before := scheduletest.Clone(v)
			d, ok := schedule.Hedge(start, v, from, owed)
			if e, _ := schedule.Hedge(start, before, from, owed); e != d || !reflect.DeepEqual(before, v) {
				t.Fatalf("seed %d: another answer, or the view was changed: %s, %s", seed, show(d), show(e))
			}
			if wrong := scheduletest.Lawful(v, d); wrong != "" || !ok && d != (schedule.Decision{}) {
				t.Fatalf("seed %d: %v %s: %s", seed, ok, wrong, show(d))
			}
			if d.Do != schedule.Fetch {
				continue
			}
			fetches++
			if !d.Hedge || d.Range.Start != owed.Start || d.Range.End > owed.End || d.From != from.ID {
				t.Fatalf("seed %d: %v is owed by %d: %s", seed, owed, from.ID, show(d))
			}
			if len(v.Free) > 0 && v.Free[0].Start < owed.Start {
				t.Fatalf("seed %d: %v is free and nearer the next offset: %s", seed, v.Free[0], show(d))
			}
		}
	}
	if fetches < 1000 {
		t.Errorf("only %d second copies", fetches)
	}
}
