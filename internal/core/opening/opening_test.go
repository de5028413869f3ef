package opening

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/core/transfer"
)

const (
	small = 64 << 10 // threshold of these tests
	big   = 1 << 20
)

// header returns fields from names and values.
func header(pairs ...string) map[string][]string {
	h := map[string][]string{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
	}
	return h
}

// asking returns fields whose first request asks for our own range if ranged, and is sent unchanged otherwise.
func asking(ranged bool, pairs ...string) map[string][]string {
	h := header(pairs...)
	if !ranged {
		h["Accept-Encoding"] = []string{"gzip"}
	}
	return h
}

// begun returns an Opening whose first request was sent.
func begun(h map[string][]string) *Opening {
	o := New("http", "/object", h, small)
	o.Begin(Memory{})
	return o
}

// step calls a method of an Opening and compares the result.
type step struct {
	what string
	do   func(o *Opening) string
	want string
}

// after is Opening.First.
func after(m Memory, want string) step {
	return step{"first", func(o *Opening) string {
		p := o.Begin(m)
		s := "own"
		if p.Initial > 0 {
			s = fmt.Sprintf("%d bytes from %d", p.Initial, p.Requested.Start)
		}
		if p.Warm {
			s += ", warm"
		}
		return s
	}, want}
}

func asks(want string) step { return after(Memory{}, want) }

// answer is Opening.Answer when no earlier request can still be answered.
func answer(h Head, want string) step {
	return step{"answer", func(o *Opening) string { return o.Answer(h, "a", false).String() }, want}
}

// answerToCopy is Opening.Answer, while an earlier request may still be answered.
func answerToCopy(h Head, want string) step {
	return step{"answer to a copy", func(o *Opening) string { return o.Answer(h, "b", true).String() }, want}
}

func lost(outcome fault.Outcome, seen bool, again bool) step {
	return step{"lost", func(o *Opening) string { o.Lost(outcome, seen); return fmt.Sprint(o.Again()) }, fmt.Sprint(again)}
}

func ended(link string, outcome fault.Outcome) step {
	return step{"ended", func(o *Opening) string { return fmt.Sprint(o.Ended(link, outcome)) }, "false"}
}

func refused(link string, outcome fault.Outcome) step {
	return step{"refused", func(o *Opening) string { return fmt.Sprint(o.Ended(link, outcome)) }, "true"}
}

func served(link string) step {
	return step{"served", func(o *Opening) string { o.Served(link); return "" }, ""}
}

func remembers(want Notes) step {
	return step{"remember", func(o *Opening) string { return fmt.Sprintf("%+v", o.Remember()) }, fmt.Sprintf("%+v", want)}
}

func (v Verdict) String() string {
	s := [...]string{"join", "stream", "repeat", "drop"}[v.Do]
	if v.ClientsHead {
		s = "first " + s
	}
	if v.Outcome != 0 {
		s += " " + v.Outcome.String()
	}
	if v.Reason != None {
		s += ": " + string(v.Reason)
	}
	return s
}

func reply(status int, from, to, total int64, unfit Reason) Head {
	return Head{Status: status, Range: segment.Range{Start: from, End: to}, ID: Identity{Total: total}, Unfit: unfit}
}

func mismatch(h Head) Head { h.Mismatch = true; return h }

func version(h Head, tag string) Head { h.ID.ETag = tag; return h }

func fields(h Head, pairs ...string) Head { h.Fields = header(pairs...); return h }

// TestOpening walks through the states of package opening's diagram.
func TestOpening(t *testing.T) {
	const (
		ownWarm = "own, warm"
		ranged  = "65536 bytes from 0, warm"
	)
	first := version(reply(206, 0, small, big, None), "a")
	all := version(reply(200, 0, big, big, None), "a")
	status := func(code int) Head { return reply(code, 0, 0, -1, Status) }
	tests := []struct {
		name  string
		h     map[string][]string
		steps []step
	}{
		// One response decides.
		{"R87 200", asking(false), []step{asks(ownWarm), answer(all, "first join")}},
		{"R86 200 of the threshold", asking(false), []step{asks(ownWarm), answer(reply(200, 0, small, small, None), "stream: small")}},
		{"R86 200 of one byte more", asking(false), []step{asks(ownWarm), answer(reply(200, 0, small+1, small+1, None), "first join")}},
		{"R87 200 that is unfit", asking(false), []step{asks(ownWarm), answer(reply(200, 0, big, big, Vary), "stream: vary")}},
		{"R77 206", asking(true), []step{asks(ranged), answer(first, "first join")}},
		{"R86 206 that is the whole object", asking(true), []step{asks(ranged), answer(reply(206, 0, small, small, None), "stream: small")}},
		{"R86 206 that is the whole object, though unfit", asking(true), []step{asks(ranged), answer(reply(206, 0, 10, 10, Vary), "stream: small")}},
		{"R77 200 to our range", asking(true), []step{asks(ranged), answer(all, "first join")}},
		{"R77 200 to our range that is unfit", asking(true), []step{asks(ranged), answer(reply(200, 0, big, big, Vary), "stream: vary")}},
		{"R117 302 passes", asking(true), []step{asks(ranged), answer(status(302), "stream: status")}},
		{"R76 404 passes", asking(false), []step{asks(ownWarm), answer(status(404), "stream: status")}},
		{"R76 a 206 that the client did not get by asking", asking(false), []step{asks(ownWarm), answer(reply(206, 0, 10, big, None), "stream: status")}},

		// The client's own range.
		{"R79 416 to the client's range passes", asking(true, "Range", "bytes=9-"), []step{asks("65536 bytes from 9, warm"), answer(status(416), "stream: status")}},
		{"R79 206 to all of the client's range", asking(true, "Range", "bytes=9-18"), []step{asks("own"), answer(reply(206, 9, 19, big, None), "stream: small")}},
		{"R79 206 that is a part of the client's range", asking(true, "Range", "bytes=9-"), []step{asks("65536 bytes from 9, warm"), answer(reply(206, 9, 9+small, big, None), "first join")}},
		{"R79 206 that is all of it, though more was asked for", asking(true, "Range", "bytes=9-"), []step{asks("65536 bytes from 9, warm"), answer(reply(206, 9, big, big, None), "stream: small")}},
		{"R80 200 to the client's range", asking(true, "Range", "bytes=9-"), []step{asks("65536 bytes from 9, warm"), answer(all, "stream: no_ranges")}},
		{"R77 206 to the client's range that is unfit: without ours", asking(true, "Range", "bytes=9-"), []step{
			asks("65536 bytes from 9, warm"), answer(reply(206, 9, 9+small, big, Vary), "repeat: vary"), asks(ownWarm),
			answer(reply(206, 9, big, big, Vary), "stream: small"),
		}},

		// Our own range may be to blame: once more without it.
		{"R77 206 that is unfit", asking(true), []step{
			asks(ranged), answer(reply(206, 0, small, big, Vary), "repeat: vary"), asks(ownWarm), answer(reply(200, 0, big, big, Vary), "stream: vary"),
			remembers(Notes{Whole: true}),
		}},
		{"R98 206 without a total", asking(true), []step{
			asks(ranged), answer(reply(206, 0, small, -1, UnknownLength), "repeat: unknown_length"), asks(ownWarm), answer(all, "first join"),
		}},
		{"R96 206 that was not asked for", asking(true), []step{
			asks(ranged), answer(mismatch(reply(206, 5, small, big, Status)), "repeat: bad_range"), asks(ownWarm), answer(all, "first join"),
		}},
		{"R77 403 to our range, and to the client's own", asking(true), []step{
			asks(ranged), answer(mismatch(status(403)), "repeat: status"), asks(ownWarm), answer(status(403), "stream: status"),
		}},

		// Copies of the first request.
		{"a copy of the same version joins", asking(true), []step{asks(ranged), answer(first, "first join"), answer(first, "join")}},
		{"R88 a copy of another version is dropped", asking(true), []step{asks(ranged), answer(first, "first join"), answer(version(first, "b"), "drop changed")}},
		{"a copy that is not the range asked for is dropped", asking(true), []step{asks(ranged), answer(first, "first join"), answer(mismatch(first), "drop changed")}},
		{"R119 an error in answer to a copy waits for the request that it repeats", asking(false), []step{
			asks(ownWarm), answerToCopy(status(503), "drop unwanted: status"), answer(all, "first join"),
		}},
		{"R119 a range that a copy's node refuses", asking(true), []step{
			asks(ranged), answerToCopy(mismatch(status(416)), "drop unwanted: status"), answer(first, "first join"),
		}},
		{"R119 what a copy brings whole is taken", asking(true), []step{asks(ranged), answerToCopy(reply(206, 0, 10, 10, None), "stream: small")}},

		// Memory.
		{"R137 the object was served whole", asking(true), []step{after(Memory{Whole: true}, "own"), answer(all, "stream: no_ranges"), remembers(Notes{})}},
		{"R137 a small origin", asking(true), []step{after(Memory{Small: true}, "65536 bytes from 0")}},
		{"R137 200 to our range", asking(true), []step{asks(ranged), answer(all, "first join"), remembers(Notes{Large: true, Whole: true})}},
		{"R137 200 to our range, but another node serves ranges", asking(true), []step{
			asks(ranged), answer(all, "first join"), served("b"), ended("b", fault.NoRange), remembers(Notes{Large: true}),
		}},
		{"R137 the other nodes ignore ranges", asking(false), []step{
			asks(ownWarm), answer(all, "first join"), ended("b", fault.NoRange), remembers(Notes{Large: true, Whole: true}),
		}},
		{"R137 no ranges announced", asking(false), []step{
			asks(ownWarm), answer(fields(reply(200, 0, big, big, NoRanges), "Accept-Ranges", " None"), "stream: no_ranges"), remembers(Notes{Whole: true}),
		}},
		{"R137 HTTP/1.0", asking(false), []step{asks(ownWarm), answer(reply(200, 0, big, big, HTTP10), "stream: http_1_0"), remembers(Notes{Whole: true})}},
		{"R137 nothing known of ranges", asking(false), []step{asks(ownWarm), answer(reply(200, 0, big, big, Vary), "stream: vary"), remembers(Notes{})}},
		{"R137 200 to the client's range", asking(true, "Range", "bytes=9-"), []step{
			asks("65536 bytes from 9, warm"), answer(all, "stream: no_ranges"), remembers(Notes{Whole: true}),
		}},
		{"R137 200 to If-Range tells of another version", asking(true, "Range", "bytes=9-", "If-Range", `"x"`), []step{
			asks("65536 bytes from 9, warm"), answer(all, "stream: no_ranges"), remembers(Notes{}),
		}},
		{"R118 a link that is refused what another one got", asking(true), []step{
			asks(ranged), ended("b", fault.Unwanted), answer(first, "first join"), refused("a", fault.Unwanted), ended("b", fault.Unwanted),
			ended("b", fault.Unwanted), ended("c", fault.Changed), served("a"), remembers(Notes{Large: true, Excluded: []string{"b"}}),
		}},
		{"R252 a link that is refused after it was served", asking(true), []step{
			asks(ranged), answer(first, "first join"), served("b"), refused("b", fault.Unwanted), refused("b", fault.Busy),
			remembers(Notes{Large: true}),
		}},
		{"R252 a link that is refused after a copy of the first request", asking(true), []step{
			asks(ranged), answer(first, "first join"), answerToCopy(first, "join"), refused("b", fault.Unwanted), remembers(Notes{Large: true}),
		}},
		{"R252 a busy origin did not refuse what it served", asking(true), []step{
			asks(ranged), answer(first, "first join"), ended("b", fault.Busy), remembers(Notes{Large: true}),
		}},
		{"a link whose bytes differ after it was served", asking(true), []step{
			asks(ranged), answer(first, "first join"), served("b"), ended("a", fault.Differs), ended("b", fault.Differs),
			remembers(Notes{Large: true, Excluded: []string{"b"}}),
		}},

		// The version that joined is lost.
		{"R107 replaced before the client saw it: once more", asking(true), []step{
			asks(ranged), answer(first, "first join"), lost(fault.Changed, false, true), asks(ranged), answer(version(first, "b"), "first join"),
			lost(fault.Changed, false, false),
		}},
		{"R107 once more as the request went out", asking(true), []step{
			asks(ranged), answer(mismatch(status(500)), "repeat: status"), asks(ownWarm), answer(all, "first join"),
			lost(fault.Changed, false, true), asks(ownWarm),
		}},
		{"R107 the client saw it", asking(true), []step{
			asks(ranged), answer(first, "first join"), lost(fault.Changed, true, false), remembers(Notes{Large: true, Whole: true}),
		}},
		{"R107 gone for another reason", asking(true), []step{asks(ranged), answer(first, "first join"), lost(fault.Reset, false, false)}},
		{"R137 a busy origin serves ranges", asking(true), []step{
			asks(ranged), answer(first, "first join"), lost(fault.Busy, true, false), remembers(Notes{Large: true}),
		}},
		{"R137 a dead link says nothing of ranges", asking(true), []step{
			asks(ranged), answer(first, "first join"), lost(fault.Reset, true, false), remembers(Notes{Large: true}),
		}},
		{"lost before anything joined", asking(true), []step{asks(ranged), lost(fault.Changed, false, false), remembers(Notes{})}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := New("http", "/object", tt.h, small)
			for i, s := range tt.steps {
				if got := s.do(o); got != s.want {
					t.Fatalf("step %d, %s: %q, want %q", i+1, s.what, got, s.want)
				}
			}
		})
	}
}

func TestPlan(t *testing.T) {
	open := func(a int64) segment.Range { return segment.Range{Start: a, End: transfer.Unknown} }
	cases := []struct {
		name   string
		field  string // Range
		ranged bool
		window segment.Range
		bytes  int64
		own    segment.Range
		warm   bool
	}{
		{"R77 R78 R80 the client's own GET", "", false, open(0), 0, segment.Range{}, true},
		{"R77 R78 R80 a range first", "", true, open(0), small, segment.Range{}, true},
		{"R79 a-b, as it is", "bytes=100-999999", false, segment.Range{Start: 100, End: 1e6}, 0, segment.Range{Start: 100, End: 1e6}, true},
		{"R79 a-b, a range first", "bytes=100-999999", true, segment.Range{Start: 100, End: 1e6}, small, segment.Range{Start: 100, End: 1e6}, true},
		{"R86 a small window is one request", "bytes=100-199", true, segment.Range{Start: 100, End: 200}, 0, segment.Range{Start: 100, End: 200}, false},
		{"R79 a-", "bytes=5-", true, open(5), small, open(5), true},
		{"R79 -n goes out as it stands", "bytes=-5", true, open(0), 0, segment.Range{}, false},
		{"R79 several ranges go out as they stand", "bytes=0-1,3-4", true, open(0), 0, segment.Range{}, false},
		{"R79 nonsense goes out as it stands", "bytes=5-2", true, open(0), 0, segment.Range{}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := header("If-Range", `"x"`, "If-None-Match", `"y"`, "Cookie", "a")
			if c.field != "" {
				h["Range"] = []string{c.field}
			}
			before := maps.Clone(h)
			o := New("http", "/object", h, small)
			o.ranged = c.ranged // whatever the coding
			p := o.Begin(Memory{})
			if p != (Plan{Requested: c.window, Initial: c.bytes, Warm: c.warm}) || o.Own() != c.own || o.Content() != c.window {
				t.Errorf("%+v, own %v", p, o.Own())
			}
			first, ifRange := o.Fields()
			asItStands := c.field != "" && c.own == segment.Range{}
			want := `"x"`
			if asItStands {
				want = ""
			}
			if ifRange != want {
				t.Errorf("R80: the first request carries If-Range %q, want %q", ifRange, want)
			}
			if got := slices.Contains(first["Range"], c.field); got != asItStands || !asItStands && len(first["Range"]) > 0 {
				t.Errorf("the first request carries Range %q", first["Range"])
			}
			if first["If-None-Match"][0] != `"y"` {
				t.Error("R84: a condition is missing")
			}
			o.version = &Identity{Validator: `"v"`}
			joined, ifRange := o.Fields()
			if ifRange != `"v"` {
				t.Errorf("R95: later requests carry If-Range %q", ifRange)
			}
			for _, n := range []string{"Range", "If-Range", "If-None-Match"} {
				if len(joined[n]) > 0 {
					t.Errorf("R78: later requests carry %s", n)
				}
			}
			if joined["Cookie"][0] != "a" || first["Cookie"][0] != "a" {
				t.Error("R84: a field is missing")
			}
			if !reflect.DeepEqual(h, before) {
				t.Error("the caller's fields were changed")
			}
		})
	}
}

// TestOnce: the first request asks for everything if the origin may refuse all others.
func TestOnce(t *testing.T) {
	const all = transfer.Unknown
	refuses := Memory{Refuses: true}
	for _, c := range []struct {
		name, path string
		fields     map[string][]string
		memory     Memory
		want       int64
	}{
		{name: "R253 a plain path", path: "/a.iso", want: small},
		{name: "R252 a query", path: "/a?token=1", want: all},
		{name: "R252 a query, the rest of an object", path: "/a?token=1", fields: header("Range", "bytes=5-"), want: all},
		{name: "R252 a query, a large part", path: "/a?token=1", fields: header("Range", "bytes=5-999999"), want: all},
		{name: "R253 a query, a small part", path: "/a?token=1", fields: header("Range", "bytes=5-99")},
		{name: "R77 a query, any coding", path: "/a?token=1", fields: asking(false)},
		{name: "R253 a query, and the client knows the size", path: "/a?id=1", memory: Memory{Size: big, Sure: true}, want: small},
		{name: "R252 an origin that refused", path: "/a.iso", memory: refuses, want: all},
		{name: "R253 bytes cost something", path: "/a?token=1", memory: Memory{Refuses: true, Dear: true}, want: small},
		{name: "R137 the origin serves it whole", path: "/a?token=1", memory: Memory{Whole: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := New("http", c.path, c.fields, small).Begin(c.memory)
			if p.Initial != c.want || c.want == all && !p.Ahead.Empty() {
				t.Errorf("%+v, want %d", p, c.want)
			}
		})
	}
	for _, c := range []struct {
		name string
		head Head
		want string
	}{
		{"R252 all of it", reply(206, 0, big, big, None), "first join"},
		{"R252 a part of it", reply(206, 0, small, big, None), "first join"},
		{"R252 all of it, unfit", reply(206, 0, big, big, Vary), "stream: vary"},
		{"R252 a part of it, unfit", reply(206, 0, small, big, Vary), "repeat: vary"},
		{"R86 small", reply(206, 0, small, small, None), "stream: small"},
		{"R252 200", reply(200, 0, big, big, None), "first join"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := New("http", "/a?token=1", nil, small)
			o.Begin(Memory{})
			if v := o.Answer(c.head, "a", false).String(); v != c.want {
				t.Errorf("%s, want %s", v, c.want)
			}
		})
	}
}

// TestAgainByStatus checks that the GET is made again only if our range may be the reason for the status.
func TestAgainByStatus(t *testing.T) {
	again := map[int]bool{400: true, 403: true, 416: true, 500: true, 501: true, 304: true, 412: true}
	for _, condition := range []string{"", "If-None-Match", "If-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		t.Run("R77 R117 condition "+condition, func(t *testing.T) {
			for status := 204; status < 600; status++ {
				if status == 206 {
					continue
				}
				want := again[status]
				var pairs []string
				if condition != "" {
					pairs = []string{condition, "x"}
					want = want && status != 304 && status != 412
				}
				head := reply(status, 0, 0, -1, Status)
				o := begun(asking(true, pairs...))
				if v := o.Answer(head, "a", false); v.Reason != Status || (v.Do == Repeat) != want || o.Again() != want {
					t.Errorf("%d: %v; want it again: %v", status, v, want)
				}
				o = begun(asking(false, pairs...))
				if v := o.Answer(head, "a", false); v.Do != Stream {
					t.Errorf("%d: the client's own GET: %v", status, v)
				}
			}
		})
	}
}

func TestRewrite(t *testing.T) {
	of := func() map[string][]string {
		return header(
			"Content-Range", "bytes 100-199/1000", "Content-Length", "100", "Content-Digest", "x", "Content-Md5", "x",
			"Repr-Digest", "y", "Set-Cookie", "a", "Set-Cookie", "b", "Connection", "keep-alive", "Accept-Ranges", "bytes",
		)
	}
	cases := []struct {
		name    string
		h       map[string][]string
		joins   bool
		status  int
		end     int64
		want    int
		length  string
		content string // Content-Range
		digest  bool
	}{
		{"R110 200 as it is", header(), true, 200, 1000, 200, "1000", "bytes 100-199/1000", true},
		{"R76 R110 our 206 becomes a 200", header(), true, 206, 1000, 200, "1000", "", false},
		{"R110 R112 the client's 206 covers its window", header("Range", "bytes=100-899"), true, 206, 900, 206, "800", "bytes 100-899/1000", false},
		{"R76 our 206 of a small object becomes a 200", header(), false, 206, 1000, 200, "100", "", false},
		{"R76 a 206 that nobody asked for stays", asking(false), false, 206, 1000, 206, "100", "bytes 100-199/1000", true},
		{"R76 the client's 206 stays", header("Range", "bytes=100-199"), false, 206, 1000, 206, "100", "bytes 100-199/1000", true},
		{"R76 an error stays", header(), false, 404, 1000, 404, "100", "bytes 100-199/1000", true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o := begun(c.h)
			head := Head{Status: c.status, Fields: of(), ID: Identity{Total: 1000}}
			if c.joins {
				o.version = &head.ID
				if o.Content().End != c.end {
					t.Errorf("content %v", o.Content())
				}
			}
			if got := o.Rewrite(head); got != c.want {
				t.Errorf("status %d, want %d", got, c.want)
			}
			h := head.Fields
			if got := first(h, "Content-Length"); got != c.length {
				t.Errorf("Content-Length %q, want %q", got, c.length)
			}
			if got := first(h, "Content-Range"); got != c.content {
				t.Errorf("Content-Range %q, want %q", got, c.content)
			}
			for _, name := range []string{"Content-Digest", "Content-Md5"} {
				if got := len(h[name]) > 0; got != c.digest {
					t.Errorf("R112: %s, of the message, kept: %v", name, got)
				}
			}
			if first(h, "Repr-Digest") != "y" || !slices.Equal(h["Set-Cookie"], []string{"a", "b"}) {
				t.Error("R112, R111: a field of the representation or a cookie is missing")
			}
		})
	}
}

func TestR110WholeMakesTheAnswerWithoutARange(t *testing.T) {
	for name, tt := range map[string]struct{ from, want map[string][]string }{
		"nginx": {
			header("Content-Range", "bytes 0-9/10", "Etag", `"a"`),
			header("Accept-Ranges", "bytes", "Etag", `"a"`),
		},
		"an origin that repeats Accept-Ranges": {
			header("Content-Range", "bytes 0-9/10", "Accept-Ranges", "bytes, seconds"),
			header("Accept-Ranges", "bytes, seconds"),
		},
		"digests of the part": {
			header("Content-Md5", "x", "Content-Digest", "y", "Repr-Digest", "z"),
			header("Accept-Ranges", "bytes", "Repr-Digest", "z"),
		},
	} {
		if whole(tt.from); !reflect.DeepEqual(tt.from, tt.want) {
			t.Errorf("%s: %v, want %v", name, tt.from, tt.want)
		}
	}
}

// TestExposed: what the fields say goes only over links whose operator may see it.
func TestExposed(t *testing.T) {
	for scheme, want := range map[string]bool{"http": true, "https": false} {
		o := New(scheme, "/object", header("Cookie", "a=b"), small)
		if o.Begin(Memory{}); o.Exposes() != want || New(scheme, "/object", header(), small).Exposes() {
			t.Errorf("%s: %v", scheme, o.Exposes())
		}
	}
}
