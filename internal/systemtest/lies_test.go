package systemtest

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/tributary-http/tributary/internal/net/origin/origintest"
)

// outcome is the result that a client of the proxy must see.
type outcome uint8

const (
	same    outcome = iota // what the client sees without the proxy: status, fields, bytes
	right                  // the whole object, although direct clients fail
	either                 // same, or a visible error after correct bytes
	broken                 // a visible error after correct bytes
	noticed                // same, or a visible error, but the client may have some wrong bytes by then
)

// use defines whether the second link must carry bytes.
type use uint8

const (
	any2  use = iota // it may
	both             // it must
	alone            // it must not carry a byte that counts
)

// lie is an origin, a request, and the required outcome.
type lie struct {
	name   string // with the number of the tested rule
	object Object // Size 0 stands for mid
	empty  bool   // Size really is 0
	faults []Fault
	header http.Header // of the request
	want   outcome
	use    use
	// offered is the outcome for a client that offers codings, so that the transfer starts with its own GET (R77); nil = the same.
	offered *expect
	check   func(t *testing.T, seen []Request)
}

type expect struct {
	want outcome
	use  use
}

func faults(f ...Fault) []Fault { return f }

func second(f ...Fault) []Fault { return []Fault{OnNode(1, f...)} }

func ranged(r *Request) bool { return r.Range != "" }

func get(kv ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(kv); i += 2 {
		h.Set(kv[i], kv[i+1])
	}
	return h
}

// between returns a header that requests the bytes from start up to end.
func between(start, end int64) http.Header {
	return get("Range", fmt.Sprintf("bytes=%d-%d", start, end-1))
}

// perRequest adds a different cookie to each answer.
func perRequest(x *Exchange) { Add("Set-Cookie", fmt.Sprintf("n=%d", x.N))(x) }

// aligned answers with a range that begins at a multiple of n.
func aligned(n int64) Fault {
	return func(x *Exchange) {
		var a int64
		if _, err := fmt.Sscanf(x.Range, "bytes=%d-", &a); err == nil {
			x.ShiftStart = -(a % n)
		}
	}
}

// sameTag serves other bytes under the same ETag and date, and applies further faults.
func sameTag(more ...Fault) Fault {
	return func(x *Exchange) {
		OtherBytes()(x)
		for _, f := range more {
			f(x)
		}
	}
}

var lies = []lie{
	// An honest origin.
	{name: "R76 R94 R95 R134 R138 honest", use: both, check: honest},
	{name: "R109 empty object", empty: true, use: alone},
	{name: "R109 one byte", object: Object{Size: 1}, use: alone},
	{name: "R86 threshold-1", object: Object{Size: threshold - 1}, use: alone, check: one},
	{name: "R86 threshold", object: Object{Size: threshold}, use: alone, check: one},
	{name: "R86 threshold+1", object: Object{Size: threshold + 1}},
	{name: "R108 twice the threshold", object: Object{Size: 2 * threshold}},
	{name: "R108 up to the edge", header: between(0, threshold)},
	{name: "R108 up to a byte before the edge", header: between(0, threshold-1)},
	{name: "R108 up to a byte behind the edge", header: between(0, threshold+1)},
	{name: "R108 from edge to edge", header: between(threshold, 3*threshold)},
	{name: "R108 from a byte before an edge to a byte behind one", header: between(threshold-1, 3*threshold+1)},
	{name: "R108 from a byte behind an edge to a byte before one", header: between(threshold+1, 3*threshold-1)},
	{name: "R109 3 MB", object: Object{Size: 3e6}, use: both},
	{name: "R111 cookie per answer", faults: faults(perRequest), use: both},
	{
		name: "R84 the client's fields", faults: faults(Set("Vary", "Accept-Language")),
		header: get("Accept-Language", "de", "Cookie", "a=b"),
		use:    both, check: sameFields,
	},
	{name: "R112 digest per message", faults: faults(If(ranged, Set("Content-Digest", "sha-256=:AAAA:"))), use: both},
	{name: "R85 no-transform", faults: faults(Set("Cache-Control", "no-transform")), use: both},
	{name: "R97 caps ranges", faults: faults(CapsRanges(50_001)), use: both},
	{name: "R87 chunked 206", faults: faults(If(ranged, InChunks())), use: both},

	// The client's own range and conditions.
	{name: "R79 a-b", header: get("Range", "bytes=100001-900000"), use: both},
	{name: "R79 a-", header: get("Range", "bytes=200003-"), use: both},
	{name: "R79 0-", header: get("Range", "bytes=0-"), use: both},
	{name: "R79 0-0", header: get("Range", "bytes=0-0"), use: alone, check: one},
	{name: "R79 end beyond the object", header: get("Range", "bytes=100-99999999"), use: both},
	{name: "R79 beyond the end", header: get("Range", "bytes=99999999-"), use: alone},
	{name: "R79 suffix", header: get("Range", "bytes=-300001"), use: any2},
	{name: "R79 several ranges", header: get("Range", "bytes=0-9,20-29"), use: alone, check: one},
	{name: "R79 5-2", header: get("Range", "bytes=5-2"), use: alone, check: one},
	{name: "R81 too many digits", header: get("Range", "bytes=0-99999999999999999999"), use: alone, check: one},
	{name: "R80 If-Range matches", header: get("Range", "bytes=100-900000", "If-Range", `"v1"`), use: both},
	{name: "R80 If-Range does not match", header: get("Range", "bytes=100-900000", "If-Range", `"v0"`)},
	{name: "R78 If-None-Match matches", header: get("If-None-Match", `"v1"`), use: alone, check: one},
	{name: "R78 If-None-Match does not match", header: get("If-None-Match", `"v0"`), use: both, check: conditions},

	// No ranges, or not for everything.
	{name: "R137 no ranges", faults: faults(NoRanges()), use: alone, check: one},
	{name: "R137 Accept-Ranges: none", faults: faults(RangesNone()), use: alone, check: one},
	{name: "R137 HTTP/1.0", faults: faults(HTTP10()), use: alone},
	{name: "R102 ignores ranges that it announces", faults: faults(IgnoresRange()), use: alone},
	{name: "R102 one node ignores ranges", faults: second(IgnoresRange()), use: alone},
	{name: "R77 403 to ranged requests", faults: faults(If(ranged, Status(403))), use: alone},
	{name: "R77 416 to ranged requests", faults: faults(If(ranged, Status(416))), use: alone},
	{name: "R77 500 to ranged requests", faults: faults(If(ranged, Status(500))), use: alone},
	{name: "R87 chunked", faults: faults(InChunks()), want: same, offered: &expect{same, alone}},
	{name: "R87 until close", faults: faults(CloseDelimited()), want: same, offered: &expect{same, alone}},
	{name: "R115 trailer", faults: faults(InChunks(), Set("Trailer", "X-Sum")), use: alone},
	{name: "R84 Vary: *", faults: faults(Set("Vary", "*")), use: alone},
	{name: "R93 gzip for who accepts it", faults: faults(Gzip()), use: both, offered: &expect{same, alone}},

	// Validators.
	{name: "R89 weak tag", faults: faults(WeakETag()), use: alone},
	{name: "R87 no validator", faults: faults(NoValidator()), use: alone},
	{name: "R90 Last-Modified = Date", faults: faults(LastModifiedOnly(0)), use: alone},
	{name: "R90 Last-Modified 1 s before Date", faults: faults(LastModifiedOnly(time.Second)), use: alone},
	{name: "R90 Last-Modified long before Date", faults: faults(LastModifiedOnly(time.Hour)), use: both},
	{name: "R90 Last-Modified without Date", faults: faults(LastModifiedOnly(time.Hour), NoDate()), use: alone},
	{
		name:   "R100 206 without Last-Modified",
		faults: faults(LastModifiedOnly(time.Hour), OnNode(1, Del("Last-Modified"))), use: alone,
	},
	{name: "R100 206 without ETag", faults: second(Del("ETag")), use: alone},
	{name: "R116 other tag on one link", faults: second(OtherETag(`"v1-node2"`)), use: alone},
	{name: "R92 other version on one link", faults: second(NewVersion()), use: alone},
	{
		name: "R204 other version on one link, If-Range ignored", faults: second(IgnoresIfRange(), NewVersion()),
		use: alone,
	},
	{name: "R92 other bytes on one link, same tag, other date", faults: second(sameTag(Set("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT"))), use: alone},
	{name: "R92 other bytes on one link, same tag, no date", faults: second(sameTag(Del("Last-Modified"))), use: alone},
	{name: "R92 other bytes on one link, same tag, a date", faults: faults(OnNode(0, Del("Last-Modified")), OnNode(1, sameTag())), use: alone},
	{name: "R92 other bytes on one link, same tag, other place", faults: second(sameTag(Set("Content-Location", "/other"))), use: alone},
	{name: "R92 other bytes on one link, same tag, no type", faults: second(sameTag(Del("Content-Type"))), use: alone},
	{
		name:   "R92 other bytes in mid-transfer, same tag, no date any more",
		faults: faults(AfterBytes(mid/10, sameTag(Del("Last-Modified")))), want: broken, offered: &expect{either, any2},
	},
	{name: "R210 other bytes on one link, same headers", faults: second(sameTag()), want: noticed},
	{name: "R210 bytes shifted by one on one link", faults: second(ShiftsBody(1)), want: noticed},
	{name: "R92 smaller on one link", faults: second(Truncated(mid / 2)), use: alone},
	{
		name: "R107 changes in mid-transfer", faults: faults(AfterBytes(mid/10, NewVersion())), want: broken,
		offered: &expect{either, any2},
	},
	{
		name:   "R204 changes in mid-transfer, If-Range ignored",
		faults: faults(AfterBytes(mid/10, IgnoresIfRange(), NewVersion())), want: broken,
		offered: &expect{either, any2},
	},
	{
		name: "R103 shrinks in mid-transfer", faults: faults(AfterBytes(mid/10, Truncated(mid/2))), want: broken,
		offered: &expect{either, any2},
	},
	{
		name: "R107 changes after the first answer", faults: faults(AfterRequests(1, NewVersion())), want: broken,
		offered: &expect{same, alone},
	},

	// Answers to a range that do not fit.
	{name: "R96 wrong start on one link", faults: second(WrongStart(1)), use: alone},
	{name: "R96 earlier start on one link", faults: second(WrongStart(-1)), use: alone},
	{name: "R96 wrong start", faults: faults(If(ranged, WrongStart(7))), use: alone},
	{name: "R97 ends beyond on one link", faults: second(EndsBeyond(1)), use: alone},
	{name: "R97 aligns ranges", faults: faults(aligned(4096)), want: either},
	{name: "R97 aligns ranges on one link", faults: second(aligned(1 << 30)), use: alone},
	{name: "R96 wrong total on one link", faults: second(WrongTotal(mid + 1)), use: alone},
	{name: "R96 no Content-Range on one link", faults: second(NoContentRange()), use: alone},
	{name: "R96 no Content-Range", faults: faults(If(ranged, NoContentRange())), use: alone},
	{name: "R98 unknown total on one link", faults: second(WrongTotal(-1)), use: alone},
	{name: "R98 unknown total", faults: faults(If(ranged, WrongTotal(-1))), use: alone},
	{name: "R99 last < first on one link", faults: second(ContentRange("bytes 5-4/10")), use: alone},
	{name: "R99 nonsense on one link", faults: second(ContentRange("bytes a-b/c")), use: alone},
	{name: "R104 multipart on one link", faults: second(Multipart()), use: alone},
	{name: "R104 multipart", faults: faults(If(ranged, Multipart())), use: alone},
	{name: "R114 html on one link", faults: second(Set("Content-Type", "text/html")), use: alone},
	{name: "R93 coding on one link", faults: second(Set("Content-Encoding", "gzip")), use: alone},

	// One link is refused.
	{name: "R105 401 on one link", faults: second(Status(401)), use: alone},
	{name: "R105 403 on one link", faults: second(Status(403)), use: alone},
	{name: "R105 404 on one link", faults: second(Status(404)), use: alone},
	{name: "R105 410 on one link", faults: second(Status(410)), use: alone},
	{name: "R105 451 on one link", faults: second(Status(451)), use: alone},
	{name: "R105 500 on one link", faults: second(Status(500)), use: alone},
	{name: "R105 511 on one link", faults: second(Status(511)), use: alone},
	{name: "R105 429 on one link", faults: second(Busy(429, 3600)), use: alone},
	{name: "R105 503 on one link", faults: second(Busy(503, 3600)), use: alone},
	{name: "R117 302 on one link", faults: second(Redirect("http://portal.invalid/")), use: alone},
	{name: "R105 login page on one link", faults: second(LoginPage()), use: alone},
	{name: "R105 204 on one link", faults: second(func(x *Exchange) { x.Status = 204 }), use: alone},
	{name: "R105 garbage on one link", faults: second(Garbage()), use: alone},
	{name: "R118 403 on one link after a while", faults: second(AfterBytes(mid/2, Status(403)))},
	{name: "R76 403", faults: faults(Status(403)), use: alone},
	{name: "R76 404", faults: faults(Status(404)), use: alone},
	{name: "R117 302", faults: faults(Redirect("http://elsewhere.invalid/")), use: alone, check: one},
	{name: "R119 one-shot URL", faults: faults(OneShot()), want: either, offered: &expect{same, alone}},

	// Bodies.
	{name: "R101 short on one link", faults: second(ShortBody(1)), want: right, use: both},
	{name: "R101 short by much on one link", faults: second(ShortBody(30_000)), want: right, use: both},
	{name: "R101 the last bytes of every answer are missing", faults: faults(If(ranged, ShortBody(1000))), want: either},
	{name: "R101 short first answer", faults: faults(UntilRequest(1, ShortBody(10_000))), want: right},
	{name: "R101 surplus on one link", faults: second(SurplusBody(1)), want: right},
	{name: "R101 surplus in chunks on one link", faults: second(If(ranged, InChunks(), SurplusBody(1))), want: right},
	{name: "R101 surplus", faults: faults(If(ranged, SurplusBody(3))), want: either},
	{name: "R106 reset in mid-body on one link", faults: second(ResetAfter(20_000)), want: right, use: both},
	{name: "R106 reset before the body on one link", faults: second(ResetAfter(0)), want: right, use: alone},
	{name: "R106 reset in mid-body", faults: faults(If(ranged, ResetAfter(50_000))), want: right},
	{
		name: "R106 reset in mid-body of the first answer", faults: faults(UntilRequest(1, ResetAfter(30_000))),
		want: right,
	},
	{name: "R49 every answer is cut off", faults: faults(NoRanges(), ResetAfter(30_000)), want: broken},

	// Connections.
	{name: "R134 Connection: close", faults: faults(ConnectionClose()), use: both},
	{name: "R136 closes after every answer", faults: faults(ClosesEarly()), use: both},
	{name: "R136 closes after 3 answers", faults: faults(OnSeq(3, ClosesEarly())), use: both},
	{name: "R136 announces the end after 3 answers", faults: faults(OnSeq(3, ConnectionClose())), use: both},
	{name: "R135 pipelined requests get no answer", faults: faults(OnPipelined(Ignored())), use: both},
	{name: "R135 closes after a pipelined request", faults: faults(OnPipelined(ClosesEarly())), use: both},
	{name: "R135 resets at pipelined requests", faults: faults(OnPipelined(ResetAfter(0))), want: same, use: both},
	{name: "R135 answers out of order", faults: faults(OnPipelined(OutOfOrder())), use: both},
	{name: "R135 garbage for pipelined requests", faults: faults(OnPipelined(Garbage())), use: both},
	{name: "R135 400 for pipelined requests", faults: faults(OnPipelined(Status(400))), use: both},
	{name: "R135 wrong range for pipelined requests", faults: faults(OnPipelined(WrongStart(100))), use: both},
	{name: "R135 whole object for pipelined requests", faults: faults(OnPipelined(IgnoresRange())), use: both},
	{name: "R135 503 for pipelined requests", faults: faults(OnPipelined(Busy(503, 1))), use: both},
	{
		name:   "R119 a copy of a slow first request is refused",
		faults: faults(UntilRequest(1, SlowStart(3500*time.Millisecond)), OnNode(1, Status(403))), use: alone,
	},
	{name: "slow first byte", faults: faults(OnNode(0, SlowStart(200*time.Millisecond)))},
	{name: "slow first byte on one link", faults: second(SlowStart(150 * time.Millisecond))},
}
