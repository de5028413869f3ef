package origin

import (
	"net/http"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
)

const (
	date     = "Fri, 02 Jan 2026 15:04:05 GMT"
	dayOld   = "Thu, 01 Jan 2026 15:04:05 GMT"
	halfOld  = "Fri, 02 Jan 2026 15:03:35 GMT"
	minOld   = "Fri, 02 Jan 2026 15:03:05 GMT"
	strong   = `"a"`
	octets   = "application/octet-stream"
	testSize = 1000
)

func wantTag() *engine.Identity {
	return &engine.Identity{Total: testSize, Validator: strong, ETag: strong, Modified: dayOld, Type: octets}
}

// without returns wantTag with a change.
func without(change func(*engine.Identity)) *engine.Identity {
	w := wantTag()
	change(w)
	return w
}

func wantDate() *engine.Identity {
	return &engine.Identity{Total: testSize, Validator: dayOld, Modified: dayOld, Type: octets}
}

// good206 is an answer to bytes 100-199 of wantTag's version.
func good206() Head {
	h := http.Header{}
	h.Set("Date", date)
	h.Set("ETag", strong)
	h.Set("Last-Modified", dayOld)
	h.Set("Content-Type", octets)
	h.Set("Content-Range", "bytes 100-199/1000")
	return Head{Status: 206, Header: h, Length: 100}
}

// Each case changes one property of a good answer; every clause of R96 has its own error.
func TestR096_EachClause(t *testing.T) {
	set := func(name, value string) func(*Head) { return func(h *Head) { h.Header.Set(name, value) } }
	del := func(name string) func(*Head) { return func(h *Head) { h.Header.Del(name) } }
	add := func(name, value string) func(*Head) { return func(h *Head) { h.Header.Add(name, value) } }
	status := func(code int) func(*Head) { return func(h *Head) { h.Status = code } }
	ok := segment.Range{Start: 100, End: 200}
	tests := []struct {
		name    string
		want    *engine.Identity
		mutate  func(*Head)
		clause  string // "" = accepted
		outcome fault.Outcome
		rng     segment.Range
	}{
		{"R96 unchanged", wantTag(), func(*Head) {}, "", 0, ok},
		// RFC 9110 section 14.4: "If a 206 (Partial Content) response contains a Content-Range header field with a range unit
		// that the recipient does not understand, the recipient MUST NOT attempt to recombine it".
		{"R96 unit", wantTag(), set("Content-Range", "items 100-199/1000"), "content_range", fault.BadRange, ok},
		{"R96 no Content-Range", wantTag(), del("Content-Range"), "content_range", fault.BadRange, ok},
		{"R96 two Content-Range", wantTag(), add("Content-Range", "bytes 100-199/1000"), "content_range", fault.BadRange, ok},
		{"R96 unsatisfied form", wantTag(), set("Content-Range", "bytes */1000"), "content_range", fault.BadRange, ok},
		// "The recipient of an invalid Content-Range MUST NOT attempt to recombine the received content".
		{"R99 last before first", wantTag(), set("Content-Range", "bytes 100-99/1000"), "content_range", fault.BadRange, ok},
		{"R99 total at last", wantTag(), set("Content-Range", "bytes 100-199/199"), "content_range", fault.BadRange, ok},
		{"R97 starts late", wantTag(), set("Content-Range", "bytes 101-199/1000"), "start", fault.BadRange, ok},
		{"R97 starts early", wantTag(), set("Content-Range", "bytes 99-198/1000"), "start", fault.BadRange, ok},
		{"R97 ends beyond", wantTag(), set("Content-Range", "bytes 100-200/1000"), "end", fault.BadRange, ok},
		{"R97 ends early", wantTag(), func(h *Head) {
			h.Header.Set("Content-Range", "bytes 100-149/1000")
			h.Length = 50
		}, "", 0, segment.Range{Start: 100, End: 150}},
		{"R96 other total", wantTag(), set("Content-Range", "bytes 100-199/1001"), "total", fault.Changed, ok},
		{"R98 unknown total", wantTag(), set("Content-Range", "bytes 100-199/*"), "total", fault.BadRange, ok},
		{"R96 one byte more announced", wantTag(), func(h *Head) { h.Length = 101 }, "content_length", fault.BadRange, ok},
		{"R96 one byte less announced", wantTag(), func(h *Head) { h.Length = 99 }, "content_length", fault.BadRange, ok},
		{"R96 no Content-Length", wantTag(), func(h *Head) { h.Length = -1 }, "", 0, ok},
		{"R41 length and coding", wantTag(), func(h *Head) { h.Length = -1; h.Ambiguous = true }, "framing", fault.BadRange, ok},
		// Section 15.3.7.3: a client "MAY combine those responses into a larger continuous range if they share the same strong
		// validator".
		{"R88 other ETag", wantTag(), set("ETag", `"b"`), "etag", fault.Changed, ok},
		{"R88 other case", wantTag(), set("ETag", `"A"`), "etag", fault.Changed, ok},
		{"R88 became weak", wantTag(), set("ETag", `W/"a"`), "etag", fault.Changed, ok},
		{"R88 two ETags", wantTag(), add("ETag", strong), "etag", fault.Changed, ok},
		{"R100 ETag missing", wantTag(), del("ETag"), "etag", fault.Changed, ok},
		{"R100 Last-Modified missing beside ETag", wantTag(), del("Last-Modified"), "last_modified", fault.Changed, ok},
		{"R92 a second Last-Modified", wantTag(), add("Last-Modified", date), "last_modified", fault.Changed, ok},
		{"R92 Last-Modified appears", without(func(w *engine.Identity) { w.Modified = "" }), func(*Head) {}, "last_modified", fault.Changed, ok},
		{"R92 type appears", without(func(w *engine.Identity) { w.Type = "" }), func(*Head) {}, "type", fault.Changed, ok},
		{"R92 Content-Location is gone", without(func(w *engine.Identity) { w.Location = "/a" }), func(*Head) {}, "location", fault.Changed, ok},
		{
			"R92 the same Content-Location", without(func(w *engine.Identity) { w.Location = "/a" }), set("Content-Location", "/a"), "", 0, ok,
		},
		{
			"R92 other Content-Location", without(func(w *engine.Identity) { w.Location = "/a" }), set("Content-Location", "/b"), "location",
			fault.Changed, ok,
		},
		{
			"R92 Last-Modified differs beside ETag, whole", wantTag(), func(h *Head) { h.Status, h.Length = 200, testSize; set("Last-Modified", date)(h) },
			"last_modified", fault.Changed, ok,
		},
		{"R92 Content-Location appears", wantTag(), set("Content-Location", "/b"), "location", fault.Changed, ok},
		{"R92 Last-Modified differs beside ETag", wantTag(), set("Last-Modified", date), "last_modified", fault.Changed, ok},
		{"R100 by date", wantDate(), del("ETag"), "", 0, ok},
		{
			"R100 by date, date missing", wantDate(), func(h *Head) { del("ETag")(h); del("Last-Modified")(h) }, "last_modified",
			fault.Changed, ok,
		},
		{
			"R92 by date, other date", wantDate(), func(h *Head) { del("ETag")(h); set("Last-Modified", date)(h) }, "last_modified",
			fault.Changed, ok,
		},
		{"R100 by date, an ETag appears", wantDate(), func(*Head) {}, "etag", fault.Changed, ok},
		{
			"no strong validator known", &engine.Identity{Total: testSize, ETag: `W/"a"`}, set("ETag", `W/"a"`), "validator",
			fault.Changed, ok,
		},
		{"R104 multipart", wantTag(), set("Content-Type", "Multipart/ByteRanges; boundary=x"), "multipart", fault.BadRange, ok},
		{"R96 coding appears", wantTag(), set("Content-Encoding", "gzip"), "coding", fault.Changed, ok},
		{"R96 coding identity", wantTag(), set("Content-Encoding", "identity"), "", 0, ok},
		{"R114 other type", wantTag(), set("Content-Type", "text/html"), "type", fault.Changed, ok},
		{"R114 type left out", wantTag(), del("Content-Type"), "type", fault.Changed, ok},
		{"R102 same version, whole", wantTag(), func(h *Head) { h.Status, h.Length = 200, testSize }, "status", fault.NoRange, ok},
		{
			"R102 same version by date, whole", wantDate(), func(h *Head) { del("ETag")(h); h.Status, h.Length = 200, testSize },
			"status", fault.NoRange, ok,
		},
		{"R102 same version, chunked", wantTag(), func(h *Head) { h.Status, h.Length = 200, -1 }, "status", fault.NoRange, ok},
		{
			"R102 other version, whole", wantTag(), func(h *Head) { h.Status, h.Length = 200, testSize; set("ETag", `"b"`)(h) },
			"etag", fault.Changed, ok,
		},
		{"R102 other date, whole", wantDate(), func(h *Head) {
			h.Status, h.Length = 200, testSize
			del("ETag")(h)
			set("Last-Modified", date)(h)
		}, "last_modified", fault.Changed, ok},
		{"R102 other size, whole", wantTag(), func(h *Head) { h.Status, h.Length = 200, 999 }, "total", fault.Changed, ok},
		{
			"R105 login page", wantTag(), func(h *Head) { h.Status, h.Length = 200, 20; set("Content-Type", "text/html;charset=x")(h) },
			"type", fault.Unwanted, ok,
		},
		{"R103 416", wantTag(), status(416), "status", fault.Changed, ok},
		{
			"R103 416 to a guess", &engine.Identity{Total: -1, Validator: strong, ETag: strong}, status(416), "status",
			fault.Unwanted, ok,
		},
		{"R105 429", wantTag(), func(h *Head) { h.Status = 429; set("Retry-After", "7")(h) }, "status", fault.Busy, ok},
		{"R105 503", wantTag(), status(503), "status", fault.Busy, ok},
	}
	for _, code := range []int{201, 204, 301, 302, 304, 307, 400, 401, 403, 404, 410, 412, 451, 500, 502, 504, 511, 799} {
		tests = append(tests, struct {
			name    string
			want    *engine.Identity
			mutate  func(*Head)
			clause  string
			outcome fault.Outcome
			rng     segment.Range
		}{"R105 " + http.StatusText(code), wantTag(), status(code), "status", fault.Unwanted, ok})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := good206()
			tt.mutate(&h)
			a := &engine.RangeRequest{Range: ok, Want: tt.want}
			v := Check(a, h, time.Time{})
			if tt.clause == "" {
				if v.Err != nil || v.Range != tt.rng || v.ID != *tt.want {
					t.Fatalf("refused: %v; %v, %+v", v.Err, v.Range, v.ID)
				}
				return
			}
			if v.Err == nil || v.Err.Clause != tt.clause || v.Err.Outcome != tt.outcome {
				t.Fatalf("got %v (%+v), want clause %s, %s", v.Err, v.Err, tt.clause, tt.outcome)
			}
		})
	}
	t.Run("R97 open end", func(t *testing.T) {
		a := &engine.RangeRequest{Range: segment.Range{Start: 100, End: byterange.Open}, Want: wantTag()}
		if v := Check(a, good206(), time.Time{}); v.Err != nil || v.Range != ok {
			t.Fatalf("%v, %v", v.Err, v.Range)
		}
	})
}

func TestR105_RetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)
	tests := []struct {
		name, value, date string
		want              time.Duration
	}{
		// RFC 9110 section 10.2.3: "The Retry-After field value can be either an HTTP-date or a number of seconds".
		{"seconds", "120", "", 120 * time.Second},
		{"date, by our clock", "Fri, 02 Jan 2026 15:01:00 GMT", "", time.Minute},
		{"date, by the origin's clock", "Fri, 02 Jan 2026 15:05:05 GMT", date, time.Minute},
		{"past", "Fri, 02 Jan 2026 14:00:00 GMT", "", 0},
		{"none", "", "", 0},
		{"negative", "-5", "", 0},
		{"beyond any plan", "99999999999999999999", "", 0},
		{"words", "soon", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := Head{Status: 503, Header: http.Header{"Retry-After": {tt.value}}}
			if tt.date != "" {
				h.Header.Set("Date", tt.date)
			}
			v := Check(&engine.RangeRequest{Range: segment.Range{End: 10}, Want: wantTag()}, h, now)
			if v.Err == nil || v.Err.Outcome != fault.Busy || v.Err.RetryAfter != tt.want {
				t.Errorf("got %+v, want %v", v.Err, tt.want)
			}
		})
	}
}
