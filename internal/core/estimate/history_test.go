package estimate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
)

func origin(i int) estimate.Origin { return estimate.Origin(fmt.Sprintf("http://o%d.example", i)) }

func TestHistory(t *testing.T) {
	b := estimate.NewHistory()
	if e := b.Link(start, "wlan0", origin(1)); e != (estimate.Entry{}) {
		t.Errorf("an empty book knows %+v", e)
	}
	if _, ok := b.Origin(start, origin(1)); ok {
		t.Error("an empty book knows an origin")
	}
	b.SetLink(start, "wlan0", origin(1), estimate.Entry{
		Rate: mb, Peak: 2 * mb, RTT: 20 * ms, Pipelining: estimate.Works, MaxConns: 3,
	})
	b.SetLink(start, "wwan0", origin(1), estimate.Entry{Rate: 3 * mb})
	b.SetOrigin(start, origin(1), estimate.Visit{Large: true})
	e := b.Link(start, "wlan0", origin(1))
	if e.Rate != mb || e.Peak != 2*mb || e.RTT != 20*ms || e.Pipelining != estimate.Works || e.MaxConns != 3 {
		t.Errorf("got %+v", e)
	}
	if e := b.Link(start, "wwan0", origin(1)); e.Rate != 3*mb || e.Peak != 0 {
		t.Errorf("the other link: %+v", e)
	}
	if e := b.Link(start, "wlan0", origin(2)); e.Rate != 0 {
		t.Errorf("another origin: %+v", e)
	}
	if v, ok := b.Origin(start, origin(1)); !ok || !v.Large {
		t.Errorf("got %+v, %v", v, ok)
	}
}

func TestHistoryLifetime(t *testing.T) {
	b := estimate.NewHistory()
	b.SetLink(start, "wlan0", origin(1), estimate.Entry{Rate: mb})
	b.SetOrigin(start, origin(1), estimate.Visit{Large: true})
	known := func(after time.Duration) (link, o bool) {
		_, o = b.Origin(start.Add(after), origin(1))
		return b.Link(start.Add(after), "wlan0", origin(1)).Rate > 0, o
	}
	if l, o := known(10 * time.Minute); !l || !o {
		t.Errorf("after 10 minutes: %v, %v", l, o)
	}
	if l, o := known(10*time.Minute + ms); l || o {
		t.Errorf("after more than 10 minutes: %v, %v", l, o)
	}
	b.SetLink(start.Add(9*time.Minute), "wlan0", origin(1), estimate.Entry{Rate: mb})
	b.SetOrigin(start.Add(9*time.Minute), origin(1), estimate.Visit{Large: true})
	if l, o := known(15 * time.Minute); !l || !o {
		t.Errorf("6 minutes after it was renewed: %v, %v", l, o)
	}
}

func TestHistoryBound(t *testing.T) {
	const size, extra = 512, 100
	for _, step := range []time.Duration{0, ms} { // the order of entry decides even at equal times
		t.Run(step.String(), func(t *testing.T) {
			b := estimate.NewHistory()
			now := start
			write := func(i int) {
				b.SetLink(now, "wlan0", origin(i), estimate.Entry{Rate: mb})
				b.SetOrigin(now, origin(i), estimate.Visit{Large: true})
				now = now.Add(step)
			}
			for i := range size {
				write(i)
			}
			write(0) // renewed: now the youngest
			for i := range extra {
				write(size + i)
			}
			for i := range size + extra {
				want := i == 0 || i > extra
				_, o := b.Origin(now, origin(i))
				if l := b.Link(now, "wlan0", origin(i)).Rate > 0; l != want || o != want {
					t.Fatalf("entry %d of %d: link %v, origin %v, want %v", i, size+extra, l, o, want)
				}
			}
		})
	}
}

func TestHistoryExclusions(t *testing.T) {
	const link = "wlan0"
	b := estimate.NewHistory()
	path := estimate.PathOf("/a/b.iso?signature=1")
	if path != estimate.PathOf("/a/b.iso?signature=2") || path == estimate.PathOf("/a/c.iso?signature=1") {
		t.Error("R137 a path is what comes before the query")
	}
	b.SetWhole(start, origin(1), path)
	b.SetExcluded(start, link, origin(1))
	for _, c := range []struct {
		name           string
		after          time.Duration
		link           string
		origin         int
		path           string
		whole, refused bool
	}{
		{"at once", 0, link, 1, "/a/b.iso", true, true},
		{"another path", 0, link, 1, "/a", false, true},
		{"another link", 0, "wwan0", 1, "/a/b.iso", true, false},
		{"another origin", 0, link, 2, "/a/b.iso", false, false},
		{"R118 after 2 minutes", 2 * time.Minute, link, 1, "/a/b.iso", true, true},
		{"R118 and no longer", 2*time.Minute + ms, link, 1, "/a/b.iso", true, false},
		{"R137 after 10 minutes", 10 * time.Minute, link, 1, "/a/b.iso", true, false},
		{"R137 and no longer", 10*time.Minute + ms, link, 1, "/a/b.iso", false, false},
	} {
		whole := b.Whole(start.Add(c.after), origin(c.origin), estimate.PathOf(c.path))
		if refused := b.Excluded(start.Add(c.after), c.link, origin(c.origin)); whole != c.whole || refused != c.refused {
			t.Errorf("%s: whole %v, refused %v", c.name, whole, refused)
		}
	}
	for i := range 512 { // bound: the first entries are evicted
		b.SetWhole(start, origin(1), estimate.PathOf(fmt.Sprint("/", i)))
		b.SetExcluded(start, link, origin(i+2))
	}
	if b.Whole(start, origin(1), path) || b.Excluded(start, link, origin(1)) || !b.Whole(start, origin(1), estimate.PathOf("/0")) {
		t.Error("R137 the bound of 512 entries does not hold")
	}
}

func TestSizes(t *testing.T) {
	h := estimate.NewHistory()
	now := time.Unix(1000, 0)
	o, p := estimate.Origin("http://a"), estimate.PathOf("/object?sig=1")
	if n := h.Size(now, o, p); n != 0 {
		t.Errorf("%d bytes of an unknown object", n)
	}
	h.SetSize(now, o, p, 5000)
	for _, c := range []struct {
		at     time.Duration
		origin estimate.Origin
		path   string
		want   int64
	}{
		{0, o, "/object", 5000},
		{10 * time.Minute, o, "/object?sig=2", 5000},
		{10*time.Minute + 1, o, "/object", 0},
		{0, "http://b", "/object", 0},
		{0, o, "/other", 0},
	} {
		if n := h.Size(now.Add(c.at), c.origin, estimate.PathOf(c.path)); n != c.want {
			t.Errorf("%s%s after %v: %d bytes, want %d", c.origin, c.path, c.at, n, c.want)
		}
	}
	for i := range 600 { // at most 512 are kept, the newest
		h.SetSize(now, o, estimate.PathOf(fmt.Sprint(i)), int64(i))
	}
	if h.Size(now, o, p) != 0 || h.Size(now, o, estimate.PathOf("599")) != 599 {
		t.Error("it does not forget the oldest")
	}
}

func TestHistoryRefusals(t *testing.T) {
	b := estimate.NewHistory()
	b.SetRefuses(start, origin(1))
	for _, c := range []struct {
		name    string
		after   time.Duration
		origin  int
		refuses bool
	}{
		{"R252 after 10 minutes", 10 * time.Minute, 1, true},
		{"R252 and no longer", 10*time.Minute + ms, 1, false},
		{"R252 another origin", 0, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := b.Refuses(start.Add(c.after), origin(c.origin)); got != c.refuses {
				t.Error(got)
			}
		})
	}
}
