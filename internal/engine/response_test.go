package engine

import (
	"errors"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/tributary-http/tributary/internal/segment"
	"github.com/tributary-http/tributary/internal/transfer"
)

const small = 64 << 10 // threshold of these tests

func TestPlan(t *testing.T) {
	open := func(a int64) segment.Range { return segment.Range{Start: a, End: transfer.Unknown} }
	cases := []struct {
		name   string
		field  string // Range
		ranged bool
		window segment.Range
		first  int64
		own    segment.Range
		warm   bool
	}{
		{"R77 the client's own GET", "", false, open(0), 0, segment.Range{}, true},
		{"R77 a range first", "", true, open(0), small, segment.Range{}, true},
		{"R79 a-b", "bytes=100-999999", false, segment.Range{Start: 100, End: 1e6}, 0, segment.Range{Start: 100, End: 1e6}, true},
		{"R79 a-b, a range first", "bytes=100-999999", true, segment.Range{Start: 100, End: 1e6}, small, segment.Range{Start: 100, End: 1e6}, true},
		{"R86 a small window is one request", "bytes=100-199", true, segment.Range{Start: 100, End: 200}, 0, segment.Range{Start: 100, End: 200}, false},
		{"R79 a-", "bytes=5-", true, open(5), small, open(5), true},
		{"R79 -n goes out as it stands", "bytes=-5", true, open(0), 0, segment.Range{}, false},
		{"R79 several ranges go out as they stand", "bytes=0-1,3-4", true, open(0), 0, segment.Range{}, false},
		{"R79 nonsense goes out as it stands", "bytes=5-2", true, open(0), 0, segment.Range{}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{"If-Range": {`"x"`}, "If-None-Match": {`"y"`}, "Cookie": {"a"}}
			if c.field != "" {
				h.Set("Range", c.field)
			}
			p := newPlan(&Request{Header: h}, c.ranged, small)
			if p.window != c.window || p.first != c.first || p.own != c.own || p.warm != c.warm || p.asked != (c.field != "") {
				t.Errorf("%+v", p)
			}
			for _, n := range []string{"Range", "If-Range", "If-None-Match"} {
				if p.joined.Get(n) != "" {
					t.Errorf("R78: later requests carry %s", n)
				}
			}
			if p.joined.Get("Cookie") != "a" || p.header.Get("Cookie") != "a" || p.header.Get("If-None-Match") != `"y"` {
				t.Error("R84: a field is missing")
			}
			asItStands := c.field != "" && p.own == segment.Range{}
			if got := p.header.Get("Range"); asItStands && got != c.field || !asItStands && got != "" {
				t.Errorf("the first request carries Range %q", got)
			}
			if h.Get("Range") != c.field || h.Get("If-Range") != `"x"` {
				t.Error("the caller's fields were changed")
			}
		})
	}
}

func TestJudge(t *testing.T) {
	unfit := errors.New("unfit")
	bad := errors.New("bad")
	reply := func(status int, from, to, total int64, splice error) *Reply {
		return &Reply{Response: &http.Response{StatusCode: status}, Range: segment.Range{Start: from, End: to}, ID: Identity{Total: total}, Splice: splice}
	}
	const big = 1 << 20
	cases := []struct {
		name   string
		field  string
		ranged bool
		reply  *Reply
		err    error
		reason string
		again  bool
	}{
		{"R87 200", "", false, reply(200, 0, big, big, nil), nil, "", false},
		{"R86 200 of the threshold", "", false, reply(200, 0, small, small, nil), nil, "small", false},
		{"R86 200 of one byte more", "", false, reply(200, 0, small+1, small+1, nil), nil, "", false},
		{"R87 200 that is unfit", "", false, reply(200, 0, big, big, unfit), nil, "unfit", false},
		{"R77 206", "", true, reply(206, 0, small, big, nil), nil, "", false},
		{"R86 206 that is the whole object", "", true, reply(206, 0, small, small, nil), nil, "small", false},
		{"R86 206 that is the whole object, though unfit", "", true, reply(206, 0, 10, 10, unfit), nil, "small", false},
		{"R77 206 that is unfit", "", true, reply(206, 0, small, big, unfit), nil, "unfit", true},
		{"R98 206 without a total", "", true, reply(206, 0, small, -1, nil), nil, "unknown_length", true},
		{"R96 206 that was not asked for", "", true, reply(206, 5, small, big, nil), bad, "bad_range", true},
		{"R77 200 to our range", "", true, reply(200, 0, big, big, nil), nil, "", false},
		{"R77 200 to our range that is unfit", "", true, reply(200, 0, big, big, unfit), nil, "unfit", false},
		{"R117 302 passes", "", true, reply(302, 0, 0, -1, unfit), nil, "status", false},
		{"R76 404 passes", "", false, reply(404, 0, 0, -1, unfit), nil, "status", false},
		{"R79 416 to the client's range passes", "bytes=9-", true, reply(416, 0, 0, -1, unfit), nil, "status", false},
		{"R79 206 of the client's range", "bytes=9-", false, reply(206, 9, big, big, nil), nil, "small", false},
		{"R79 first part of the client's range", "bytes=9-", true, reply(206, 9, 9+small, big, nil), nil, "", false},
		{"R79 all of the client's range", "bytes=9-18", false, reply(206, 9, 19, big, nil), nil, "small", false},
		{"R80 200 to the client's range", "bytes=9-", false, reply(200, 0, big, big, nil), nil, "no_ranges", false},
		{"R76 a 206 that the client did not get by asking", "", false, reply(206, 0, 10, big, nil), nil, "status", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{}
			if c.field != "" {
				h.Set("Range", c.field)
			}
			r := &run{e: &Engine{cfg: Config{Threshold: small}}, plan: newPlan(&Request{Header: h}, c.ranged, small)}
			reason, again := r.judge(c.reply, c.err)
			if reason != c.reason || again != c.again {
				t.Errorf("%q, again %v; want %q, again %v", reason, again, c.reason, c.again)
			}
		})
	}
}

// TestJudgeStatus: the GET is made again only where our range may be the reason for the status.
func TestJudgeStatus(t *testing.T) {
	again := map[int]bool{400: true, 403: true, 416: true, 500: true, 501: true, 304: true, 412: true}
	for _, condition := range []string{"", "If-None-Match", "If-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		t.Run("R77 R117 condition "+condition, func(t *testing.T) {
			for status := 204; status < 600; status++ {
				if status == http.StatusPartialContent {
					continue
				}
				h := http.Header{}
				want := again[status]
				if condition != "" {
					h.Set(condition, "x")
					want = want && status != 304 && status != 412
				}
				r := &run{e: &Engine{cfg: Config{Threshold: small}}, plan: newPlan(&Request{Header: h}, true, small)}
				reply := &Reply{Response: &http.Response{StatusCode: status}, ID: Identity{Total: -1}, Splice: errors.New("status")}
				if reason, got := r.judge(reply, nil); reason != "status" || got != want {
					t.Errorf("%d: %q, again %v; want %v", status, reason, got, want)
				}
				r.plan = newPlan(&Request{Header: h}, false, small)
				if _, got := r.judge(reply, nil); got {
					t.Errorf("%d: the client's own GET is made again", status)
				}
			}
		})
	}
}

func TestResponse(t *testing.T) {
	fields := func() http.Header {
		return http.Header{
			"Content-Range": {"bytes 100-199/1000"}, "Content-Length": {"100"}, "Content-Digest": {"x"}, "Content-Md5": {"x"},
			"Repr-Digest": {"y"}, "Set-Cookie": {"a", "b"}, "Connection": {"keep-alive"}, "Accept-Ranges": {"bytes"},
		}
	}
	cases := []struct {
		name    string
		field   string
		status  int
		end     int64
		want    int
		length  int64
		content string // Content-Range
		digest  bool
	}{
		{"R110 200 as it is", "", 200, 1000, 200, 1000, "bytes 100-199/1000", true},
		{"R76 our 206 becomes a 200", "", 206, 1000, 200, 1000, "", false},
		{"R110 the client's 206 covers its window", "bytes=100-899", 206, 900, 206, 800, "bytes 100-899/1000", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{}
			if c.field != "" {
				h.Set("Range", c.field)
			}
			r := &run{plan: newPlan(&Request{Header: h}, true, small)}
			out := r.response(&Reply{Response: &http.Response{StatusCode: c.status, Header: fields()}, ID: Identity{Total: 1000}}, c.end)
			if out.Status != c.want || out.ContentLength != c.length {
				t.Errorf("status %d, length %d", out.Status, out.ContentLength)
			}
			if got := out.Header.Get("Content-Range"); got != c.content {
				t.Errorf("Content-Range %q, want %q", got, c.content)
			}
			if got := out.Header.Get("Content-Digest") != "" && out.Header.Get("Content-Md5") != ""; got != c.digest {
				t.Errorf("R112: digests of the message kept: %v", got)
			}
			if out.Header.Get("Repr-Digest") != "y" || !slices.Equal(out.Header["Set-Cookie"], []string{"a", "b"}) {
				t.Error("R112, R111: a field of the representation or a cookie is missing")
			}
		})
	}
}

func TestR110WholeMakesTheAnswerWithoutARange(t *testing.T) {
	for name, tt := range map[string]struct{ from, want http.Header }{
		"nginx": {
			http.Header{"Content-Range": {"bytes 0-9/10"}, "Etag": {`"a"`}},
			http.Header{"Accept-Ranges": {"bytes"}, "Etag": {`"a"`}},
		},
		"an origin that repeats Accept-Ranges": {
			http.Header{"Content-Range": {"bytes 0-9/10"}, "Accept-Ranges": {"bytes, seconds"}},
			http.Header{"Accept-Ranges": {"bytes, seconds"}},
		},
		"digests of the part": {
			http.Header{"Content-Md5": {"x"}, "Content-Digest": {"y"}, "Repr-Digest": {"z"}},
			http.Header{"Accept-Ranges": {"bytes"}, "Repr-Digest": {"z"}},
		},
	} {
		out := &Response{Status: http.StatusPartialContent, Header: tt.from}
		if whole(out); out.Status != http.StatusOK || !reflect.DeepEqual(out.Header, tt.want) {
			t.Errorf("%s: %d %v, want 200 %v", name, out.Status, out.Header, tt.want)
		}
	}
}
