package schedule_test

import (
	"testing"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// atTheEnd returns a view with nothing left to request. Link 1, at 5 Mbit/s, still has to deliver left bytes; link 0, at 10 Mbit/s,
// is idle and takes 0.3 s to answer (the vectors of TestOffload).
func atTheEnd(left int64) *schedule.View {
	v := newView(10*mb, huge, link(10*mbit, 10*mbit, 300*ms), link(5*mbit, 5*mbit, 60*ms))
	ask(v, 1, rng(5*mb, 10*mb), 10*mb-left)
	take(v, v.Object)
	return v
}

func guarded(v *schedule.View) schedule.Decision { return (&schedule.Alg3{}).Next(start, v) }

func tailOf(i int8, from uint32, begin, end int64) schedule.Decision {
	d := fetch(i, rng(begin, end), schedule.Steal)
	d.From = from
	return d
}

func stays(t *testing.T, v *schedule.View) {
	t.Helper()
	if d := guarded(v); d.Do != schedule.Wait {
		t.Errorf("moved: %s", show(d))
	}
}

func TestTail(t *testing.T) {
	const end = 10 * mb
	t.Run("500,000 bytes left: 208,333 move", func(t *testing.T) {
		v := atTheEnd(500_000)
		ds, _ := drain(t, &schedule.Alg3{}, v)
		sameDecisions(t, ds, tailOf(0, 1, end-208_333, end))
	})
	t.Run("150,000 bytes left: moving costs more than it brings", func(t *testing.T) { stays(t, atTheEnd(150_000)) })
	t.Run("break-even", func(t *testing.T) { stays(t, atTheEnd(187_500)) })
	t.Run("not worth a request", func(t *testing.T) { stays(t, atTheEnd(230_000)) }) // 28,333 would move
	t.Run("worth a request", func(t *testing.T) {
		expect(t, guarded(atTheEnd(240_000)), tailOf(0, 1, end-35_000, end))
	})
	t.Run("only once at a time", func(t *testing.T) {
		v := atTheEnd(500_000)
		v.Attempts[0].Stolen = true
		stays(t, v)
	})
	t.Run("not of one that has a second copy, or is itself to take a tail", func(t *testing.T) {
		v := atTheEnd(500_000)
		v.Attempts[0].Hedged = true
		stays(t, v)
	})
	t.Run("not of a second copy", func(t *testing.T) {
		v := atTheEnd(500_000)
		v.Attempts[0].Hedge = true
		stays(t, v)
	})
	t.Run("all of it, if next to nothing would be left of an unanswered request", func(t *testing.T) {
		v := newView(10*mb, huge, link(10*mb, 10*mb, 10*ms), link(0.1*mb, 0.1*mb, 10*ms))
		ask(v, 1, rng(end-400_000, end), end-400_000)
		take(v, v.Object)
		expect(t, guarded(v), tailOf(0, 1, end-400_000, end))
	})
	t.Run("never what was delivered", func(t *testing.T) { // the link owes more than its newest range does
		v := newView(10*mb, huge, link(10*mb, 10*mb, 10*ms), link(1*mb, 1*mb, 10*ms))
		ask(v, 1, rng(0, 4*mb), 0)
		ask(v, 1, rng(4*mb, 5*mb), 4*mb+300_000)
		take(v, v.Object)
		expect(t, guarded(v), tailOf(0, 2, 4*mb+300_000, 5*mb))
	})
	t.Run("a busy link begins when it is done", func(t *testing.T) {
		v := atTheEnd(500_000)
		ask(v, 0, rng(4*mb, 5*mb), 5*mb-400_000) // 0.32 s: a little more than its round trip
		n := int64(schedule.Offload(500_000, 10*mbit, 5*mbit, 320*ms))
		expect(t, guarded(v), tailOf(0, 1, end-n, end))
	})
	t.Run("of the link that ends last", func(t *testing.T) {
		v := newView(10*mb, huge, link(4*mb, 4*mb, 20*ms), link(2*mb, 2*mb, 20*ms), link(1*mb, 1*mb, 20*ms))
		ask(v, 1, rng(2*mb, 4*mb), 2*mb) // 1 s
		ask(v, 2, rng(4*mb, 6*mb), 4*mb) // 2 s
		take(v, v.Object)
		if d := guarded(v); d.From != 2 || d.Link != 0 {
			t.Error(show(d))
		}
	})
	t.Run("not of a silent link: Rescue does that", func(t *testing.T) {
		v := atTheEnd(500_000)
		v.Links[1].Usable, v.Links[1].Suspect, v.Attempts[0].Silent = false, true, true
		stays(t, v)
	})
	t.Run("of a link that gets no new requests", func(t *testing.T) {
		v := atTheEnd(500_000)
		v.Links[1].Usable = false
		if d := guarded(v); d.Rule != schedule.Steal {
			t.Error(show(d))
		}
	})
	t.Run("rates unknown", func(t *testing.T) {
		for i := range 2 {
			v := atTheEnd(500_000)
			v.Links[i].Rate = 0
			stays(t, v)
		}
	})
	t.Run("no request can leave", func(t *testing.T) {
		v := atTheEnd(500_000)
		v.Links[0].CanAsk = false
		stays(t, v)
	})
	t.Run("beyond the window", func(t *testing.T) {
		v := atTheEnd(500_000)
		v.Attempts[0].HasHead = false
		v.Limit = end - 208_333
		stays(t, v)
		v.Limit = end - 208_332
		expect(t, guarded(v), tailOf(0, 1, end-208_333, end))
	})
	t.Run("not while bytes are free", func(t *testing.T) {
		v := atTheEnd(500_000)
		v.Object.End += 1
		v.Free = append(v.Free, rng(end, end+1))
		v.Limit = end
		stays(t, v)
	})
}

// The client's own GET covers the whole object before anything is known.
func TestOversize(t *testing.T) {
	const size = 250 * mb
	own := func(window int64, links ...schedule.Link) *schedule.View {
		v := newView(size, window, links...)
		a := ask(v, 0, v.Object, 0)
		a.Cursor, a.HasHead = 1*mb, true
		v.Links[0].Asked -= 1 * mb
		v.Offset, v.Limit = 1*mb, 1*mb+window
		return v
	}
	t.Run("the other link gets a range ahead of the cursor", func(t *testing.T) {
		v := own(16*mib, link(10*mb, 10*mb, 20*ms), link(0, 0, 0))
		d := guarded(v)
		if d.Rule != schedule.Oversize || d.Link != 1 || d.From != 1 || d.Hedge {
			t.Fatal(show(d))
		}
		// Time to connect again and send a request: three round trips and 100 ms.
		if ahead := d.Range.Start - 1*mb; ahead < 1_600_000 || d.Range.Len() != schedule.FirstSize {
			t.Errorf("%d bytes ahead, %d long", ahead, d.Range.Len())
		}
		apply(v, d)
		if d := guarded(v); d.Do != schedule.Wait {
			t.Errorf("cut twice: %s", show(d))
		}
	})
	t.Run("its share, when it is known", func(t *testing.T) {
		v := own(16*mib, link(10*mb, 10*mb, 20*ms), link(10*mb, 10*mb, 20*ms))
		if d := guarded(v); d.Rule != schedule.Oversize || d.Range.Len() != 16*mib/schedule.WindowDiv/2 {
			t.Error(show(d))
		}
	})
	t.Run("not of a silent link", func(t *testing.T) {
		v := own(16*mib, link(10*mb, 10*mb, 20*ms), link(10*mb, 10*mb, 20*ms))
		v.Links[0].Usable, v.Attempts[0].Silent = false, true
		stays(t, v)
	})
	t.Run("not before the head of the answer", func(t *testing.T) {
		v := own(16*mib, link(10*mb, 10*mb, 20*ms), link(10*mb, 10*mb, 20*ms))
		v.Attempts[0].HasHead, v.Attempts[0].Cursor = false, 0
		v.Offset, v.Limit = 0, 16*mib
		if d := guarded(v); d.Rule == schedule.Oversize {
			t.Error(show(d))
		}
	})
	t.Run("not beyond the window", func(t *testing.T) {
		v := own(1*mib, link(10*mb, 10*mb, 20*ms), link(10*mb, 10*mb, 20*ms))
		stays(t, v)
	})
	t.Run("a range of ordinary length is not cut", func(t *testing.T) {
		v := newView(4*mb, huge, link(10*mb, 10*mb, 20*ms), link(10*mb, 10*mb, 20*ms))
		ask(v, 0, v.Object, 3*mb+600_000)
		if d := guarded(v); d.Rule == schedule.Oversize {
			t.Error(show(d))
		}
	})
}
