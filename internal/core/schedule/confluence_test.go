package schedule_test

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// settled returns a Confluence that saw the links of v leave slow start, and the time then.
func settled(v *schedule.View) (*schedule.Confluence, time.Time) {
	c := &schedule.Confluence{}
	idle := *v
	idle.Free = nil
	idle.Links = nil
	for _, l := range v.Links {
		l.Got = 10 * mb
		idle.Links = append(idle.Links, l)
	}
	v.Links = idle.Links
	c.Next(start, &idle)
	c.Next(start.Add(time.Second), &idle)
	return c, start.Add(time.Second)
}

// layOut applies the decisions of c at one moment and returns them.
func layOut(c *schedule.Confluence, now time.Time, v *schedule.View) (all []schedule.Decision) {
	for range 1000 {
		d := c.Next(now, v)
		if d.Do == schedule.Wait {
			break
		}
		all = append(all, d)
		apply(v, d)
	}
	return all
}

func TestConfluenceKeepsLinksBusy(t *testing.T) {
	v := newView(50*mb, 16*mib, link(80*mbit, 80*mbit, 10*ms), link(40*mbit, 40*mbit, 50*ms))
	c, now := settled(v)
	layOut(c, now, v)
	for i, want := range []float64{80 * mbit * 0.080, 40 * mbit * 0.160} { // 2 RTT + 60 ms
		if got := float64(v.Links[i].Asked); got < want || got > want+0.081*v.Links[i].Rate+16*kib {
			t.Errorf("link %d: %.0f bytes asked, want %.0f and at most a range more", i, got, want)
		}
		if v.Links[i].Running > 8 {
			t.Errorf("link %d: %d requests outstanding", i, v.Links[i].Running)
		}
	}
	if d := c.Next(now, v); d.Do != schedule.Wait {
		t.Errorf("asks for more: %s", show(d))
	}
}

// TestConfluenceSkipsAhead checks that the range of a link that answers later begins where the other link will be by then.
func TestConfluenceSkipsAhead(t *testing.T) {
	v := newView(50*mb, 16*mib, link(80*mbit, 80*mbit, 10*ms), link(80*mbit, 80*mbit, 110*ms))
	c, now := settled(v)
	ask(v, 0, rng(0, 900*kb), 0) // busy: it is link 1's turn
	d := c.Next(now, v)
	// The first byte of link 1 arrives in 110 ms. Link 0 delivers its 900 kB in 90 ms and continues, so 20 ms of its bytes lie
	// between.
	if ahead := d.Range.Start - 900*kb; d.Link != 1 || ahead < 100*kb || ahead > 200*kb {
		t.Errorf("%s", show(d))
	}
}

// TestConfluenceEndsTogether checks that the rest is divided so that all links end at the same instant.
func TestConfluenceEndsTogether(t *testing.T) {
	for _, links := range [][]schedule.Link{
		{link(80*mbit, 80*mbit, 10*ms), link(10*mbit, 10*mbit, 60*ms)},
		{link(10*mbit, 10*mbit, 60*ms), link(80*mbit, 80*mbit, 10*ms)},
		{link(20*mbit, 20*mbit, 20*ms), link(30*mbit, 30*mbit, 40*ms), link(40*mbit, 40*mbit, 50*ms)},
	} {
		v := newView(50*mb, 16*mib, links...)
		c, now := settled(v)
		take(v, rng(0, 48_000*kb))
		v.Offset, v.Limit = 48_000*kb, 50*mb
		ends := make([]time.Duration, len(links))
		for step := 0; len(v.Free) > 0; step++ {
			if step > 1000 {
				t.Fatal("does not end")
			}
			for _, d := range layOut(c, now, v) {
				l := v.Links[d.Link]
				at := now.Sub(start) + max(l.RTT, time.Duration(float64(l.Asked-d.Range.Len())/l.Rate*1e9))
				ends[d.Link] = max(ends[d.Link], at+time.Duration(float64(d.Range.Len())/l.Rate*1e9))
			}
			now = now.Add(5 * ms)
			for i := range v.Links { // every link delivers its bytes
				left := int64(v.Links[i].Rate * 0.005)
				for k := range v.Attempts {
					if a := &v.Attempts[k]; int(a.Link) == i {
						n := min(left, a.Left())
						a.Cursor += n
						left -= n
						v.Links[i].Asked -= n
					}
				}
			}
		}
		first, last := ends[0], ends[0]
		for _, e := range ends {
			first, last = min(first, e), max(last, e)
		}
		if last-first > 60*ms {
			t.Errorf("%v: links end at %v", links, ends)
		}
	}
}

// TestConfluenceLeavesALateLink checks that the slow link is not asked for bytes that the fast one delivers before the slow one
// could answer.
func TestConfluenceLeavesALateLink(t *testing.T) {
	v := newView(10*mb, 16*mib, link(80*mbit, 80*mbit, 10*ms), link(10*mbit, 10*mbit, 200*ms))
	c, now := settled(v)
	take(v, rng(0, 9_500*kb))
	v.Offset, v.Limit = 9_500*kb, 10*mb
	for _, d := range layOut(c, now, v) {
		if d.Link != 0 {
			t.Errorf("%s", show(d))
		}
	}
}

// TestConfluenceSmallWindow checks that ranges shrink to stay inside a small window.
func TestConfluenceSmallWindow(t *testing.T) {
	v := newView(50*mb, 1*mib, link(80*mbit, 80*mbit, 10*ms), link(60*mbit, 60*mbit, 45*ms))
	c, now := settled(v)
	ds := layOut(c, now, v)
	for _, d := range ds {
		if d.Range.End > v.Limit {
			t.Errorf("reaches beyond the window: %s", show(d))
		}
	}
	if v.Links[0].Running < 2 || v.Links[1].Running < 1 {
		t.Errorf("%d ranges: %v", len(ds), ds)
	}
}

// TestConfluenceStartsUp checks that each unknown link is asked for one short range.
func TestConfluenceStartsUp(t *testing.T) {
	v := newView(50*mb, 16*mib, link(0, 0, 0), link(0, 0, 50*ms))
	c := &schedule.Confluence{}
	layOut(c, start, v)
	for i, l := range v.Links {
		if l.Asked != 128*kib {
			t.Errorf("link %d is asked for %d bytes in %d requests", i, l.Asked, l.Running)
		}
	}
}

// TestConfluenceTakesALateTail checks that a link that ends long after the others loses its missing bytes, but not for a small
// gain.
func TestConfluenceTakesALateTail(t *testing.T) {
	for _, p := range []struct {
		left int64
		want bool
	}{{80 * kb, false}, {800 * kb, true}} {
		v := newView(10*mb, huge, link(20*mbit, 20*mbit, 20*ms), link(5*mbit, 5*mbit, 60*ms))
		c, now := settled(v)
		ask(v, 1, rng(9*mb, 10*mb), 10*mb-p.left)
		take(v, v.Object)
		if d := c.Next(now, v); (d.Do == schedule.Fetch) != p.want || p.want && (d.Link != 0 || d.From != 1) {
			t.Errorf("%d bytes left: %s", p.left, show(d))
		}
	}
}

// TestConfluenceSitsOutAPause checks that a link does not lose its tail because its goodput falls in a short pause.
func TestConfluenceSitsOutAPause(t *testing.T) {
	v := newView(10*mb, huge, link(20*mbit, 20*mbit, 20*ms), link(5*mbit, 5*mbit, 60*ms))
	c, now := settled(v)
	ask(v, 1, rng(9*mb, 10*mb), 10*mb-80*kb)
	take(v, v.Object)
	v.Links[1].Rate = 2 * mbit // 320 ms for the rest, 128 ms at its earlier rate
	if d := c.Next(now.Add(50*ms), v); d.Do != schedule.Wait {
		t.Errorf("after 50 ms: %s", show(d))
	}
	if d := c.Next(now.Add(time.Second), v); d.Do != schedule.Fetch {
		t.Errorf("after 1 s: %s", show(d))
	}
}

// TestConfluenceFirstSplit checks that links whose rates are known from earlier transfers are first asked for bytes in the ratio of
// these rates, whatever their round-trip times. The first link got the first request before the others could be asked.
func TestConfluenceFirstSplit(t *testing.T) {
	for _, links := range [][]schedule.Link{
		{link(20*mbit, 20*mbit, 20*ms), link(10*mbit, 10*mbit, 20*ms)},
		{link(79*mbit, 79*mbit, 20*ms), link(61*mbit, 61*mbit, 50*ms)},
		{link(67*mbit, 67*mbit, 50*ms), link(7.5*mbit, 7.5*mbit, 15*ms)},
		{link(10*mbit, 10*mbit, 50*ms), link(5*mbit, 5*mbit, 70*ms)},
		{link(30*mbit, 30*mbit, 10*ms), link(20*mbit, 20*mbit, 40*ms), link(8*mbit, 8*mbit, 60*ms)},
		{link(400*mbit, 400*mbit, 5*ms), link(20*mbit, 20*mbit, 30*ms)},
	} {
		v := newView(50*mb, 16*mib, links...)
		var rates, asked float64
		for i := range v.Links {
			v.Links[i].Recalled, v.Links[i].Got = true, 0
			rates += v.Links[i].Rate
		}
		ask(v, 0, rng(0, 128*kib), 0)
		take(v, rng(0, 128*kib))
		layOut(&schedule.Confluence{}, start, v)
		for _, l := range v.Links {
			asked += float64(l.Asked)
		}
		for i, l := range v.Links {
			if got, want := float64(l.Asked)/asked, l.Rate/rates; got < 0.9*want || got > 1.1*want {
				t.Errorf("%v of %v: %.3f of the bytes, %.3f of the rate: %d of %.0f", i, links, got, want, l.Asked, asked)
			}
		}
	}
}
