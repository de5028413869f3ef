package origin

import (
	"net/http"
	"testing"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
)

func good200() Head {
	h := http.Header{}
	h.Set("Date", date)
	h.Set("ETag", strong)
	h.Set("Last-Modified", dayOld)
	h.Set("Content-Type", octets)
	h.Set("Accept-Ranges", "bytes")
	return Head{Status: 200, Header: h, Length: testSize}
}

// Each case drops one condition of R87.
func TestR087_Identify(t *testing.T) {
	set := func(name, value string) func(*Head) { return func(h *Head) { h.Header.Set(name, value) } }
	del := func(names ...string) func(*Head) {
		return func(h *Head) {
			for _, n := range names {
				h.Header.Del(n)
			}
		}
	}
	both := func(fs ...func(*Head)) func(*Head) {
		return func(h *Head) {
			for _, f := range fs {
				f(h)
			}
		}
	}
	tests := []struct {
		name      string
		mutate    func(*Head)
		unfit     opening.Reason
		validator string
	}{
		{"R87 all fulfilled", func(*Head) {}, opening.None, strong},
		{"R87 several range units", set("Accept-Ranges", "seconds, Bytes"), opening.None, strong},
		{"R87 ranges not announced", del("Accept-Ranges"), opening.NoRanges, strong},
		{"R137 Accept-Ranges: none", set("Accept-Ranges", "none"), opening.NoRanges, strong},
		{"R87 HTTP/1.0", func(h *Head) { h.HTTP10 = true }, opening.HTTP10, strong},
		{"R41 length and coding", func(h *Head) { h.Ambiguous, h.Length = true, -1 }, opening.Framing, strong},
		{"R87 unknown length", func(h *Head) { h.Length = -1 }, opening.UnknownLength, strong},
		{"R87 multipart", set("Content-Type", "multipart/byteranges; boundary=x"), opening.Multipart, strong},
		{"R115 trailer", func(h *Head) { h.Trailer = true }, opening.Trailer, strong},
		{"R84 Vary: *", set("Vary", "Accept, *"), opening.Vary, strong},
		{"R84 Vary on fields", set("Vary", "Accept-Encoding"), opening.None, strong},
		{"R93 gzip under a strong tag", set("Content-Encoding", "gzip"), opening.Coding, strong},
		{"R93 identity", set("Content-Encoding", "identity"), opening.None, strong},
		// RFC 9110 section 8.8.3: "An entity tag can be either a weak or strong validator, with strong being the default."
		{"R88 weak tag", set("ETag", `W/"a"`), opening.WeakValidator, ""},
		// Section 13.1.5: "A client MUST NOT generate an If-Range header field containing an entity tag that is marked as weak."
		{"R89 weak tag beside an old date", both(set("ETag", `W/"a"`), set("Last-Modified", dayOld)), opening.WeakValidator, ""},
		{"R88 tag without quotes", set("ETag", "a"), opening.NoValidator, ""},
		{"R88 tag with a space", set("ETag", `"a b"`), opening.NoValidator, ""},
		{"R88 tag with a quote", set("ETag", `"a"b"`), opening.NoValidator, ""},
		{"R88 half a tag", set("ETag", `"`), opening.NoValidator, ""},
		{"R88 empty tag", set("ETag", `""`), opening.NoValidator, ""},
		{"R88 two tags", func(h *Head) { h.Header.Add("ETag", `"b"`) }, opening.NoValidator, ""},
		// Section 8.8.2.2: Last-Modified is weak unless the Date is at least one second later; here, a minute.
		{"R90 date a day old", del("ETag"), opening.None, dayOld},
		{"R90 date a minute old", both(del("ETag"), set("Last-Modified", minOld)), opening.None, minOld},
		{"R90 date half a minute old", both(del("ETag"), set("Last-Modified", halfOld)), opening.WeakValidator, ""},
		{"R90 date of the answer", both(del("ETag"), set("Last-Modified", date)), opening.WeakValidator, ""},
		{"R90 no Date", del("ETag", "Date"), opening.WeakValidator, ""},
		{"R90 unreadable date", both(del("ETag"), set("Last-Modified", "yesterday")), opening.NoValidator, ""},
		{"R87 no validator", del("ETag", "Last-Modified"), opening.NoValidator, ""},
		{"R85 no-transform", set("Cache-Control", "no-transform"), opening.None, strong},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := good200()
			tt.mutate(&h)
			v := Identify(&engine.RangeRequest{}, h)
			if v.Err != nil || v.Unfit != tt.unfit || v.ID.Validator != tt.validator {
				t.Errorf("got %v, unfit %q, validator %q; want %v, %q", v.Err, v.Unfit, v.ID.Validator, tt.unfit, tt.validator)
			}
			if v.ID.Total != h.Length || v.Range != (segment.Range{End: h.Length}) {
				t.Errorf("total %d, range %v of %d bytes", v.ID.Total, v.Range, h.Length)
			}
		})
	}
}

func TestR077_IdentifyStatus(t *testing.T) {
	first := segment.Range{Start: 100, End: 200}
	open := segment.Range{Start: 100, End: byterange.Open}
	response := func(status int, contentRange string, length int64) Head {
		h := good200()
		h.Status, h.Length = status, length
		if contentRange != "" {
			h.Header.Set("Content-Range", contentRange)
		}
		return h
	}
	noAccept := response(206, "bytes 100-199/1000", 100)
	noAccept.Header.Del("Accept-Ranges")
	tests := []struct {
		name    string
		asked   segment.Range
		h       Head
		rng     segment.Range
		total   int64
		unfit   opening.Reason
		clause  string
		outcome fault.Outcome
	}{
		{"R77 206", first, response(206, "bytes 100-199/1000", 100), first, 1000, opening.None, "", 0},
		{"R87 206 proves ranges", first, noAccept, first, 1000, opening.None, "", 0},
		{"R97 206 ends early", first, response(206, "bytes 100-149/1000", 50), segment.Range{Start: 100, End: 150}, 1000, opening.None, "", 0},
		{"206 to an open range", open, response(206, "bytes 100-999/1000", 900), segment.Range{Start: 100, End: 1000}, 1000, opening.None, "", 0},
		{"206 chunked", first, response(206, "bytes 100-199/1000", -1), first, 1000, opening.None, "", 0},
		{"R98 206 of unknown total", first, response(206, "bytes 100-199/*", 100), first, -1, opening.UnknownLength, "", 0},
		{"R97 206 ends beyond", first, response(206, "bytes 100-200/1000", 101), segment.Range{End: 101}, -1, opening.Status, "end", fault.BadRange},
		{"R97 206 starts elsewhere", first, response(206, "bytes 0-99/1000", 100), segment.Range{End: 100}, -1, opening.Status, "start", fault.BadRange},
		{"R96 206 without Content-Range", first, response(206, "", 100), segment.Range{End: 100}, -1, opening.Status, "content_range", fault.BadRange},
		{"R77 200 to a range", first, response(200, "", 1000), segment.Range{End: 1000}, 1000, opening.None, "", 0},
		{"R77 416 to a range", first, response(416, "bytes */0", 0), segment.Range{}, -1, opening.Status, "status", fault.Unwanted},
		{"R77 403 to a range", first, response(403, "", 10), segment.Range{End: 10}, -1, opening.Status, "status", fault.Unwanted},
		{"404 without a range", segment.Range{}, response(404, "", 10), segment.Range{End: 10}, -1, opening.Status, "", 0},
		{"R78 304 passes", segment.Range{}, response(304, "", 0), segment.Range{}, -1, opening.Status, "", 0},
		{"206 nobody asked for", segment.Range{}, response(206, "bytes 0-9/10", 10), segment.Range{End: 10}, -1, opening.Status, "", 0},
		{"R109 empty object", segment.Range{}, response(200, "", 0), segment.Range{}, 0, opening.None, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := Identify(&engine.RangeRequest{Range: tt.asked}, tt.h)
			if v.Range != tt.rng || v.ID.Total != tt.total || v.Unfit != tt.unfit {
				t.Errorf("got %v of %d, unfit %q; want %v of %d, %v", v.Range, v.ID.Total, v.Unfit, tt.rng, tt.total, tt.unfit)
			}
			if (v.Err == nil) != (tt.clause == "") || v.Err != nil && (v.Err.Clause != tt.clause || v.Err.Outcome != tt.outcome) {
				t.Errorf("got %+v, want clause %q, %s", v.Err, tt.clause, tt.outcome)
			}
		})
	}
}
