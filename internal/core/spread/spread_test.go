package spread

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// start is any moment: the package reads no clock.
var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const mb = 1 << 20

// bench is a Table whose time the test sets.
type bench struct {
	t       *testing.T
	table   *Table
	now     time.Time
	links   []Link
	carried map[ID]int64
}

func newBench(t *testing.T, p Policy, links ...Link) *bench {
	return &bench{t: t, table: New(p), now: start, links: links, carried: map[ID]int64{}}
}

// shows lets divided downloads measure links.
func (b *bench) shows(goodput map[string]float64) *bench {
	for link, perSecond := range goodput {
		b.table.Goodput(b.now, link, perSecond)
	}
	return b
}

// open places a connection and returns it with the link that it takes first.
func (b *bench) open(f Flow) (ID, string) {
	b.t.Helper()
	if f.Domain == "" {
		f.Domain = f.Host
	}
	p := b.table.Place(b.now, f, b.links)
	sorted := slices.Sorted(slices.Values(p.Order))
	for i := range b.links {
		if len(sorted) != len(b.links) || sorted[i] != i {
			b.t.Fatalf("the order %v does not name each of %d links once", p.Order, len(b.links))
		}
	}
	return p.ID, b.links[p.Order[0]].Name
}

// many places n connections and returns how many take each link first.
func (b *bench) many(n int, f Flow) map[string]int {
	b.t.Helper()
	got := map[string]int{}
	for range n {
		_, link := b.open(f)
		got[link]++
	}
	return got
}

func (b *bench) end(id ID) { b.table.End(b.now, id, b.carried[id]) }

// endAll ends every connection.
func (b *bench) endAll() {
	for id := range b.table.flows {
		b.end(id)
	}
}

// run lets the links carry these many bytes per second, divided among their connections, for a time.
func (b *bench) run(d time.Duration, rates map[string]float64) {
	const step = 500 * time.Millisecond
	for range d / step {
		b.now = b.now.Add(step)
		on := map[string]int{}
		for _, f := range b.table.flows {
			on[f.link]++
		}
		for id, f := range b.table.flows {
			b.carried[id] += int64(rates[f.link] * step.Seconds() / float64(on[f.link]))
		}
		b.table.Measure(b.now, func(id ID) int64 { return b.carried[id] }, nil)
	}
}

func auto() Policy { return Policy{Mode: Auto} }

func two() []Link { return []Link{{Name: "wifi"}, {Name: "lte"}} }

var aria2 = Flow{User: "1000", Program: "aria2/1.36.0", Host: "cdn.example.com", Domain: "example.com"}

// TestSpreads places eight connections at once, before any of them has carried a byte.
func TestSpreads(t *testing.T) {
	with := func(change func(f *Flow)) Flow {
		f := aria2
		change(&f)
		return f
	}
	three := []Link{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	metered := []Link{{Name: "wifi"}, {Name: "lte", Metered: true}}
	for _, c := range []struct {
		name    string
		policy  Policy
		flow    Flow
		links   []Link
		want    map[string]int
		goodput map[string]float64
	}{
		{"nothing is known: evenly", auto(), aria2, two(), map[string]int{"wifi": 4, "lte": 4}, nil},
		{"a program that does not name itself", auto(), with(func(f *Flow) { f.Program = "" }), two(), map[string]int{"wifi": 4, "lte": 4}, nil},
		{"three links", auto(), aria2, three, map[string]int{"a": 3, "b": 3, "c": 2}, nil},
		{"by goodput", auto(), aria2, two(), map[string]int{"wifi": 6, "lte": 2}, map[string]float64{"wifi": 6, "lte": 2}},
		{"unknown is the mean", auto(), aria2, three, map[string]int{"a": 4, "b": 1, "c": 3}, map[string]float64{"a": 9, "b": 3}},
		{"the best link is slow", auto(), aria2, two(), map[string]int{"wifi": 1, "lte": 7}, map[string]float64{"wifi": 1, "lte": 10}},
		{"far slower", auto(), aria2, two(), map[string]int{"wifi": 8}, map[string]float64{"wifi": 66, "lte": 8}},
		{"a fifth is enough", auto(), aria2, two(), map[string]int{"wifi": 7, "lte": 1}, map[string]float64{"wifi": 10, "lte": 2}},
		{"remembered", auto(), aria2, []Link{{Name: "wifi", Remembered: 1 * mb}, {Name: "lte", Remembered: 8 * mb}}, map[string]int{"wifi": 1, "lte": 7}, nil},
		{"measured counts more", auto(), aria2, []Link{{Name: "wifi", Remembered: 1 * mb}, {Name: "lte", Remembered: 8 * mb}}, map[string]int{"wifi": 4, "lte": 4}, map[string]float64{"wifi": 8 * mb}},
		{"overtaken lately", auto(), aria2, []Link{{Name: "wifi"}, {Name: "lte", Lost: true}}, map[string]int{"wifi": 8}, nil},
		{"all overtaken lately", auto(), aria2, []Link{{Name: "wifi", Lost: true}, {Name: "lte", Lost: true}}, map[string]int{"wifi": 8}, nil},
		{"one link", auto(), aria2, two()[:1], map[string]int{"wifi": 8}, nil},
		{"metered: joins last, then takes part", auto(), aria2, metered, map[string]int{"wifi": 4, "lte": 4}, nil},
		{"off", Policy{Mode: Off}, aria2, two(), map[string]int{"wifi": 8}, nil},
		{"no mode", Policy{}, aria2, two(), map[string]int{"wifi": 8}, nil},
		{"a browser", auto(), with(func(f *Flow) { f.Program = "Mozilla/5.0 (X11)" }), two(), map[string]int{"wifi": 8}, nil},
		{"a browser, but all", Policy{Mode: All}, with(func(f *Flow) { f.Program = "Mozilla/5.0 (X11)" }), two(), map[string]int{"wifi": 4, "lte": 4}, nil},
		{"a sticky host", Policy{Mode: Auto, Sticky: []string{"cdn.example.com"}}, aria2, two(), map[string]int{"wifi": 8}, nil},
		{"below a sticky domain, even if all", Policy{Mode: All, Sticky: []string{"example.com"}}, aria2, two(), map[string]int{"wifi": 8}, nil},
		{"a name that only ends like a sticky one", Policy{Mode: Auto, Sticky: []string{"ample.com"}}, aria2, two(), map[string]int{"wifi": 4, "lte": 4}, nil},
		{"redirected, unknown", auto(), with(func(f *Flow) { f.Program, f.Redirected = "", true }), two(), map[string]int{"wifi": 8}, nil},
		{"redirected, named", auto(), with(func(f *Flow) { f.Program, f.Redirected = "steam", true }), two(), map[string]int{"wifi": 4, "lte": 4}, nil},
		{"redirected, unknown, but all", Policy{Mode: All}, with(func(f *Flow) { f.Program, f.Redirected = "", true }), two(), map[string]int{"wifi": 4, "lte": 4}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := newBench(t, c.policy, c.links...).shows(c.goodput).many(8, c.flow); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// TestOneAtATime opens connections one after the other: the program stays where it is.
func TestOneAtATime(t *testing.T) {
	b := newBench(t, auto(), two()...).shows(map[string]float64{"wifi": 1, "lte": 100})
	for i := range 20 {
		id, link := b.open(aria2)
		if link != "wifi" {
			t.Fatalf("connection %d goes over %s", i, link)
		}
		b.now = b.now.Add(time.Second)
		b.end(id)
	}
}

// TestTogether checks which connections belong together.
func TestTogether(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(f *Flow)
		want   string
	}{
		{"the same", func(*Flow) {}, "lte"},
		{"another user", func(f *Flow) { f.User = "1001" }, "wifi"},
		{"another program", func(f *Flow) { f.Program = "curl/8" }, "wifi"},
		{"another host", func(f *Flow) { f.Host = "www.example.com" }, "wifi"},
	} {
		b := newBench(t, auto(), two()...)
		b.open(aria2)
		f := aria2
		c.change(&f)
		if _, link := b.open(f); link != c.want {
			t.Errorf("%s: %s, want %s", c.name, link, c.want)
		}
	}
	b := newBench(t, auto(), two()...)
	b.open(aria2)
	b.run(fresh, map[string]float64{"wifi": mb})
	b.run(idle, nil)
	if _, link := b.open(aria2); link != "wifi" {
		t.Errorf("the other connection has been idle for %v: %s", idle, link)
	}
	b = newBench(t, auto(), two()...)
	b.open(aria2)
	b.run(time.Minute, map[string]float64{"wifi": mb})
	if _, link := b.open(aria2); link != "lte" {
		t.Errorf("the other connection runs: %s", link)
	}
	b = newBench(t, auto(), two()...)
	b.open(aria2)
	b.run(time.Minute, map[string]float64{"wifi": 100})
	if _, link := b.open(aria2); link != "wifi" {
		t.Errorf("the other connection leaves the best link to this one: %s", link)
	}
}

// TestLoad lets other connections run on a link.
func TestLoad(t *testing.T) {
	other := Flow{User: "7", Program: "Mozilla/5.0", Host: "video.example.net", Domain: "example.net"}
	b := newBench(t, auto(), two()...)
	b.many(5, other)
	if got := b.many(8, aria2); got["wifi"] != 4 {
		t.Errorf("page loads that may carry nothing count: %v", got)
	}
	b = newBench(t, auto(), two()...)
	b.many(5, other)
	b.run(time.Second, map[string]float64{"wifi": mb})
	if got := b.many(8, aria2); got["wifi"] != 2 || got["lte"] != 6 {
		t.Errorf("running connections of others do not count: %v", got)
	}
	b.run(idle, nil)
	if got := b.many(8, aria2); got["wifi"] != 4 {
		t.Errorf("idle connections count: %v", got)
	}
}

// TestMeasuredGoodput measures links with eight connections of a program, and places eight more by the result.
func TestMeasuredGoodput(t *testing.T) {
	for _, c := range []struct {
		name  string
		rates map[string]float64
		pause time.Duration
		want  map[string]int
	}{
		{"three to one", map[string]float64{"wifi": 6 * mb, "lte": 2 * mb}, 0, map[string]int{"wifi": 6, "lte": 2}},
		{"far slower", map[string]float64{"wifi": 66 * mb, "lte": 8 * mb}, 0, map[string]int{"wifi": 8}},
		{"a trickle", map[string]float64{"wifi": mb, "lte": 1 << 10}, 0, map[string]int{"wifi": 8}},
		{"still known", map[string]float64{"wifi": 66 * mb, "lte": 8 * mb}, known, map[string]int{"wifi": 8}},
		{"forgotten, and tried again", map[string]float64{"wifi": 66 * mb, "lte": 8 * mb}, known + time.Second, map[string]int{"wifi": 4, "lte": 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, auto(), two()...)
			b.many(8, aria2)
			b.run(4*time.Second, c.rates)
			b.endAll()
			b.now = b.now.Add(c.pause)
			if got := b.many(8, aria2); fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	t.Run("what one program asks of one link says nothing", func(t *testing.T) {
		b := newBench(t, auto(), two()...)
		b.shows(map[string]float64{"lte": 5 * mb})
		b.many(2, Flow{User: "1", Program: "Mozilla/5.0", Host: "radio.example", Domain: "radio.example"})
		b.run(10*time.Second, map[string]float64{"wifi": 40 << 10})
		b.endAll()
		if got := b.many(8, aria2); got["wifi"] != 4 {
			t.Errorf("got %v", got)
		}
	})
	t.Run("a link that got slower", func(t *testing.T) {
		b := newBench(t, auto(), two()...)
		b.many(8, aria2)
		b.run(4*time.Second, map[string]float64{"wifi": 10 * mb, "lte": 10 * mb})
		b.run(2*goodputSpan+time.Second, map[string]float64{"wifi": 10 * mb, "lte": mb})
		b.endAll()
		if got := b.many(8, aria2); got["wifi"] != 8 {
			t.Errorf("got %v", got)
		}
	})
}

// TestDistance gives the links round-trip times.
func TestDistance(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		wifi, lte time.Duration
		want      int // connections of 8 over lte
	}{
		{40 * ms, 121 * ms, 0},
		{40 * ms, 120 * ms, 4},
		{5 * ms, 60 * ms, 4}, // twelve times as far, and still near
		{0, 600 * ms, 4},
		{40 * ms, 0, 4},
	} {
		b := newBench(t, auto(), two()...)
		for _, worse := range []time.Duration{0, 500 * ms} { // the shortest counts
			if c.wifi > 0 {
				b.table.Connected(b.now, "wifi", c.wifi+worse)
			}
			if c.lte > 0 {
				b.table.Connected(b.now, "lte", c.lte+worse)
			}
		}
		if got := b.many(8, aria2); got["lte"] != c.want {
			t.Errorf("%v and %v: %v", c.wifi, c.lte, got)
		}
	}
	b := newBench(t, auto(), Link{Name: "dsl"}, Link{Name: "satellite"}).shows(map[string]float64{"dsl": 1, "satellite": 50})
	b.table.Connected(b.now, "dsl", 20*ms)
	b.table.Connected(b.now, "satellite", 600*ms)
	if got := b.many(8, aria2); got["satellite"] != 7 {
		t.Errorf("the best link is never too far: %v", got)
	}
}

// TestSession follows the link of a session.
func TestSession(t *testing.T) {
	page := Flow{User: "1000", Program: "Mozilla/5.0", Host: "shop.example.com", Domain: "example.com"}
	images := page
	images.Host = "img.example.com"
	lteFirst := []Link{{Name: "lte"}, {Name: "wifi"}}
	t.Run("sticks for ten minutes after its last connection", func(t *testing.T) {
		b := newBench(t, auto(), two()...)
		id, _ := b.open(page)
		b.end(id)
		b.links = lteFirst
		for range 5 {
			b.now = b.now.Add(sessionLife)
			id, link := b.open(images)
			if link != "wifi" {
				t.Fatalf("over %s after %v", link, b.now.Sub(start))
			}
			b.end(id)
		}
		b.now = b.now.Add(sessionLife + time.Second)
		if _, link := b.open(page); link != "lte" {
			t.Errorf("over %s long after", link)
		}
	})
	t.Run("settled, but not its first connection, nor those that are spread", func(t *testing.T) {
		b := newBench(t, auto(), two()...)
		for i, c := range []struct {
			flow Flow
			want bool
		}{{page, false}, {images, true}, {aria2, true}, {aria2, false}} {
			if got := b.table.Place(b.now, c.flow, b.links).Settled; got != c.want {
				t.Errorf("connection %d: %t", i, got)
			}
		}
	})
	t.Run("works while it carries something", func(t *testing.T) {
		b := newBench(t, auto(), two()...)
		id, _ := b.open(page)
		works := func(after time.Duration, want bool) {
			t.Helper()
			b.now = b.now.Add(after)
			if p := b.table.Place(b.now, images, b.links); p.Works != want || !p.Settled {
				t.Errorf("%+v", p)
			}
		}
		works(0, false)
		b.now = b.now.Add(time.Second)
		b.table.Measure(b.now, func(got ID) int64 {
			if got == id {
				return 1
			}
			return 0
		}, nil)
		works(lately, true)
		works(time.Millisecond, false)
		b.table.Goodput(b.now, "lte", 1e6)
		works(0, false)
		b.table.Goodput(b.now, "wifi", 1e6)
		works(0, true)
	})
	t.Run("as long as a connection is open", func(t *testing.T) {
		b := newBench(t, auto(), two()...)
		id, _ := b.open(page)
		b.now = b.now.Add(sessionLife)
		b.end(id)
		b.links = lteFirst
		b.now = b.now.Add(sessionLife)
		if _, link := b.open(page); link != "wifi" {
			t.Errorf("over %s", link)
		}
	})
	t.Run("follows the race", func(t *testing.T) {
		b := newBench(t, auto(), two()...)
		id, _ := b.open(page)
		b.table.Moved(b.now, id, "lte")
		if _, link := b.open(page); link != "lte" {
			t.Errorf("over %s", link)
		}
	})
	t.Run("not the spread connections", func(t *testing.T) {
		b := newBench(t, auto(), two()...)
		b.open(aria2)
		id, link := b.open(aria2)
		b.table.Moved(b.now, id, link)
		b.endAll()
		b.now = b.now.Add(time.Minute)
		if _, link := b.open(aria2); link != "wifi" {
			t.Errorf("over %s", link)
		}
	})
	t.Run("a link that is gone", func(t *testing.T) {
		b := newBench(t, auto(), two()...)
		b.open(page)
		b.links = two()[1:]
		b.open(page)
		b.links = two()
		if _, link := b.open(page); link != "lte" {
			t.Errorf("over %s", link)
		}
	})
	t.Run("never onto a link that costs", func(t *testing.T) {
		b := newBench(t, auto(), Link{Name: "lte", Metered: true})
		b.open(page)
		b.links = []Link{{Name: "wifi"}, {Name: "lte", Metered: true}}
		if _, link := b.open(page); link != "wifi" {
			t.Errorf("over %s", link)
		}
	})
	t.Run("a link that was overtaken elsewhere", func(t *testing.T) {
		b := newBench(t, auto(), two()...)
		b.open(page)
		b.links = []Link{{Name: "lte"}, {Name: "wifi", Lost: true}}
		if _, link := b.open(page); link != "wifi" {
			t.Errorf("over %s", link)
		}
	})
	t.Run("off", func(t *testing.T) {
		b := newBench(t, Policy{Mode: Off}, two()...)
		b.open(page)
		b.links = lteFirst
		if _, link := b.open(page); link != "lte" {
			t.Errorf("over %s", link)
		}
	})
	t.Run("of another user", func(t *testing.T) {
		b := newBench(t, auto(), two()...)
		b.open(page)
		b.links = lteFirst
		other := page
		other.User = "1001"
		if _, link := b.open(other); link != "lte" {
			t.Errorf("over %s", link)
		}
	})
}

// TestBounds: memory does not grow with the number of hosts or link names, and nobody makes others lose their sessions.
func TestBounds(t *testing.T) {
	b := newBench(t, auto(), two()...)
	mine := Flow{User: "1000", Program: "Mozilla/5.0", Host: "bank.example"}
	id, _ := b.open(mine)
	b.end(id)
	for i := range 3 * maxSessions {
		id, _ := b.open(Flow{User: "1001", Host: fmt.Sprintf("h%d.example", i)})
		b.end(id)
	}
	if n := len(b.table.sessions.of); n != maxSessions {
		t.Errorf("%d sessions", n)
	}
	if n := b.table.sessions.each; len(n) != 2 || n["1000"] != 1 || n["1001"] != maxSessions-1 {
		t.Errorf("sessions of users: %v", n)
	}
	b.links = []Link{{Name: "lte"}, {Name: "wifi"}}
	if _, link := b.open(mine); link != "wifi" {
		t.Errorf("a session was lost to another user: %s", link)
	}
	for i := range 2 * maxSessions { // many users with one session each
		id, _ := b.open(Flow{User: fmt.Sprint(i), Host: "h.example"})
		b.end(id)
	}
	if n := len(b.table.sessions.of); n != maxSessions {
		t.Errorf("%d sessions", n)
	}
	for i := range 3 * maxLinks {
		b.table.Connected(b.now, fmt.Sprintf("ppp%d", i), time.Second)
	}
	if n := len(b.table.links); n > maxLinks {
		t.Errorf("%d links", n)
	}
	if b.endAll(); len(b.table.flows) != 0 {
		t.Errorf("%d connections after their end", len(b.table.flows))
	}
}

// TestLoads: each byte counts once, on the link that carried it.
func TestLoads(t *testing.T) {
	b := newBench(t, auto(), two()...)
	first, _ := b.open(aria2)
	second, _ := b.open(aria2)
	b.run(2*time.Second, map[string]float64{"wifi": 3 * mb, "lte": mb})
	if l := b.table.Loads(); l["wifi"] != (Load{1, 6 * mb, 3 * mb}) || l["lte"] != (Load{1, 2 * mb, mb}) {
		t.Errorf("%+v", l)
	}
	if all, spread := b.table.Busy(); all != 2 || spread != 2 {
		t.Errorf("%d busy, %d of them may be spread", all, spread)
	}
	b.carried[first] += 5
	b.end(first)
	b.end(first) // again
	b.end(second)
	if l := b.table.Loads(); l["wifi"] != (Load{0, 6*mb + 5, 0}) || l["lte"] != (Load{0, 2 * mb, 0}) {
		t.Errorf("at the end %+v", l)
	}
	b.open(Flow{User: "1", Program: "Mozilla/5.0", Host: "h"})
	b.run(time.Second, map[string]float64{"wifi": mb})
	if all, spread := b.table.Busy(); all != 1 || spread != 0 {
		t.Errorf("a browser: %d busy, %d of them may be spread", all, spread)
	}
	b.table.Moved(b.now, 0, "wifi") // unknown ones are ignored
	b.table.End(b.now, 99, 1)
}

// TestRandom simulates random connections of some users and checks the invariants.
func TestRandom(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		all := []Link{
			{Name: "wifi"}, {Name: "lte", Metered: true}, {Name: "dsl"}, {Name: "sat"},
		}
		b := newBench(t, Policy{Mode: Auto, Sticky: []string{"bank.example"}}, all...)
		b.shows(map[string]float64{"wifi": 10 * mb, "lte": 5 * mb, "dsl": mb, "sat": 5 * mb})
		b.table.Connected(b.now, "wifi", 10*time.Millisecond)
		b.table.Connected(b.now, "sat", 600*time.Millisecond)
		var open []ID
		home := map[string]string{} // of users with a browser
		for range 300 {
			b.now = b.now.Add(time.Duration(r.IntN(1500)) * time.Millisecond)
			f := Flow{
				User: fmt.Sprint(r.IntN(3)), Program: []string{"", "aria2", "Mozilla/5.0"}[r.IntN(3)],
				Host: []string{"a.example", "b.example", "www.bank.example"}[r.IntN(3)],
			}
			f.Domain = f.Host
			switch r.IntN(4) {
			case 0, 1:
				id, link := b.open(f)
				open = append(open, id)
				never := strings.HasPrefix(f.Program, "Mozilla") || f.Host == "www.bank.example"
				if k := f.User + " " + f.Host; never && home[k] != "" && home[k] != link {
					t.Fatalf("seed %d: %+v goes over %s, its session is on %s", seed, f, link, home[k])
				} else if b.table.flows[id].leads {
					home[k] = link
				}
				if link == "dsl" || link == "sat" {
					t.Fatalf("seed %d: %+v goes over %s", seed, f, link)
				}
			case 2:
				if len(open) > 0 {
					i := r.IntN(len(open))
					b.end(open[i])
					open = slices.Delete(open, i, i+1)
				}
			case 3:
				b.run(time.Second, map[string]float64{"wifi": 10 * mb, "lte": 5 * mb})
			}
		}
		for _, id := range open {
			b.end(id)
		}
		var sum, want int64
		for _, n := range b.carried {
			want += n
		}
		for _, l := range b.table.Loads() {
			sum += l.Bytes
			if l.Open != 0 || l.Rate != 0 {
				t.Errorf("seed %d: %+v after the end", seed, l)
			}
		}
		if sum != want {
			t.Errorf("seed %d: %d bytes counted, %d carried", seed, sum, want)
		}
	}
}

// TestFar: a link whose goodput is far below that of the best one gets no further connections, however near it is.
func TestFar(t *testing.T) {
	table, links := New(Policy{}), []Link{{Name: "best"}, {Name: "other"}}
	for _, c := range []struct {
		goodput float64
		far     bool
	}{{0, true}, {farSlower*100 - 1, true}, {farSlower * 100, false}, {100, false}} {
		if got := table.far(start, links, []float64{100, c.goodput}, 1, 0); got != c.far {
			t.Errorf("%v of 100 bytes per second: %v", c.goodput, got)
		}
	}
}
