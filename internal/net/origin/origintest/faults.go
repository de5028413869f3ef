package origintest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// Fault changes the plan of an answer.
type Fault func(*Exchange)

// If applies the faults to the requests that satisfy cond.
func If(cond func(*Request) bool, faults ...Fault) Fault {
	return func(x *Exchange) {
		if cond(x.Request) {
			for _, f := range faults {
				f(x)
			}
		}
	}
}

// OnNode applies the faults on one listener.
func OnNode(node int, faults ...Fault) Fault {
	return If(func(r *Request) bool { return r.Node == node }, faults...)
}

// OnConn applies the faults on one connection, counted from 1.
func OnConn(conn int, faults ...Fault) Fault {
	return If(func(r *Request) bool { return r.Conn == conn }, faults...)
}

// OnSeq applies the faults to the request of this number on its connection, counted from 1.
func OnSeq(seq int, faults ...Fault) Fault {
	return If(func(r *Request) bool { return r.Seq == seq }, faults...)
}

// OnPipelined applies the faults to requests that arrived before the previous answer of the connection was complete.
func OnPipelined(faults ...Fault) Fault {
	return If(func(r *Request) bool { return r.Pipelined }, faults...)
}

// AfterRequests applies the faults from request n+1 on.
func AfterRequests(n int, faults ...Fault) Fault {
	return If(func(r *Request) bool { return r.N > n }, faults...)
}

// UntilRequest applies the faults to the first n requests.
func UntilRequest(n int, faults ...Fault) Fault {
	return If(func(r *Request) bool { return r.N <= n }, faults...)
}

// AfterBytes applies the faults to requests that arrive after n body bytes were sent.
func AfterBytes(n int64, faults ...Fault) Fault {
	return If(func(r *Request) bool { return r.Sent >= n }, faults...)
}

// edit adds a change of the head's fields to those of other faults.
func edit(f func(x *Exchange, h http.Header)) Fault {
	return func(x *Exchange) {
		before := x.Edit
		x.Edit = func(h http.Header) {
			if before != nil {
				before(h)
			}
			f(x, h)
		}
	}
}

// Set sets a field of the head.
func Set(name, value string) Fault {
	return edit(func(_ *Exchange, h http.Header) { h.Set(name, value) })
}

// Add adds a field line to the head.
func Add(name, value string) Fault {
	return edit(func(_ *Exchange, h http.Header) { h.Add(name, value) })
}

// Del removes a field of the head.
func Del(name string) Fault {
	return edit(func(_ *Exchange, h http.Header) { h.Del(name) })
}

// NoRanges answers 200 to range requests and announces no ranges.
func NoRanges() Fault {
	return func(x *Exchange) { x.IgnoreRange = true; Del("Accept-Ranges")(x) }
}

// RangesNone is NoRanges with an explicit Accept-Ranges: none.
func RangesNone() Fault {
	return func(x *Exchange) { x.IgnoreRange = true; Set("Accept-Ranges", "none")(x) }
}

// IgnoresRange answers 200 to range requests though it announces ranges.
func IgnoresRange() Fault { return func(x *Exchange) { x.IgnoreRange = true } }

// IgnoresIfRange answers 206 whatever If-Range says.
func IgnoresIfRange() Fault { return func(x *Exchange) { x.IgnoreIfRange = true } }

// Always206 answers every request, even one without a Range, with 206 and the bytes [start, end).
func Always206(start, end int64) Fault {
	return func(x *Exchange) { x.Always, x.IgnoreIfRange = segment.Range{Start: start, End: end}, true }
}

// CapsRanges answers at most n bytes of a range, which is legal.
func CapsRanges(n int64) Fault { return func(x *Exchange) { x.MaxRange = n } }

// WrongStart sends and announces a range that begins by bytes later (or earlier) than the one asked for.
func WrongStart(by int64) Fault { return func(x *Exchange) { x.ShiftStart += by } }

// EndsBeyond sends and announces a range that ends by bytes later than the one asked for.
func EndsBeyond(by int64) Fault { return func(x *Exchange) { x.ShiftEnd += by } }

// ShiftsBody sends bytes that lie by bytes behind the announced ones: all headers are right.
func ShiftsBody(by int64) Fault { return func(x *Exchange) { x.ShiftBody = by } }

// OtherBytes sends another object under the same headers.
func OtherBytes() Fault { return func(x *Exchange) { x.Object.Seed += 0x5eed } }

// WrongTotal announces another size in Content-Range.
func WrongTotal(total int64) Fault {
	return edit(func(_ *Exchange, h http.Header) {
		if c, err := byterange.ParseContentRange(h.Get("Content-Range")); err == nil {
			c.Total = total
			h.Set("Content-Range", c.String())
		}
	})
}

// NoContentRange answers 206 without Content-Range.
func NoContentRange() Fault { return Del("Content-Range") }

// ContentRange announces this Content-Range.
func ContentRange(value string) Fault { return Set("Content-Range", value) }

// NewVersion serves another version of the object: other bytes, another ETag and a later date.
func NewVersion() Fault {
	return func(x *Exchange) {
		x.Object.Seed += 0x5eed
		if x.Object.ETag != NoETag {
			x.Object.ETag = `"v2-` + strings.Trim(strings.TrimPrefix(x.Object.ETag, "W/"), `"`) + `"`
		}
		if !x.Object.Modified.Equal(NoModified) {
			x.Object.Modified = x.Object.Modified.Add(time.Hour)
		}
	}
}

// OtherETag serves the same bytes under another tag, like nodes whose clocks or inodes differ.
func OtherETag(tag string) Fault { return func(x *Exchange) { x.Object.ETag = tag } }

// Truncated serves the object cut to size under the same validators.
func Truncated(size int64) Fault { return func(x *Exchange) { x.Object.Size = size } }

// WeakETag makes the tag weak.
func WeakETag() Fault {
	return func(x *Exchange) { x.Object.ETag = "W/" + strings.TrimPrefix(x.Object.ETag, "W/") }
}

// NoValidator sends neither ETag nor Last-Modified.
func NoValidator() Fault {
	return func(x *Exchange) { x.Object.ETag, x.Object.Modified = NoETag, NoModified }
}

// LastModifiedOnly sends no ETag, and a Last-Modified date that lies distance before Date.
func LastModifiedOnly(distance time.Duration) Fault {
	return func(x *Exchange) { x.Object.ETag, x.Object.Modified = NoETag, x.Object.Date.Add(-distance) }
}

// NoDate sends no Date.
func NoDate() Fault { return Del("Date") }

// Gzip sends the whole object in the gzip coding to clients that accept it, under the same ETag.
func Gzip() Fault {
	return func(x *Exchange) {
		if !strings.Contains(x.Header.Get("Accept-Encoding"), "gzip") {
			return
		}
		o := x.Object
		x.Status, x.Content = http.StatusOK, gzipped(o)
		edit(func(_ *Exchange, h http.Header) {
			h.Set("Content-Encoding", "gzip")
			h.Set("Content-Type", o.Type)
			h.Set("Vary", "Accept-Encoding")
			h.Set("Accept-Ranges", "bytes")
			h.Set("ETag", o.ETag)
		})(x)
	}
}

// InChunks sends the body in the chunked coding.
func InChunks() Fault { return func(x *Exchange) { x.Framing = Chunked } }

// CloseDelimited ends the body by closing the connection.
func CloseDelimited() Fault { return func(x *Exchange) { x.Framing = UntilClose } }

// Status answers with this status and a small page.
func Status(code int) Fault {
	return func(x *Exchange) {
		x.Status, x.Content = code, fmt.Sprintf("<h1>%d %s</h1>\n", code, http.StatusText(code))
	}
}

// Busy answers 429 or 503 with Retry-After in seconds.
func Busy(code, seconds int) Fault {
	return func(x *Exchange) { Status(code)(x); Set("Retry-After", strconv.Itoa(seconds))(x) }
}

// Redirect answers 302 with this Location.
func Redirect(location string) Fault {
	return func(x *Exchange) { Status(http.StatusFound)(x); Set("Location", location)(x) }
}

// LoginPage answers 200 with a page of HTML, as captive portals do.
func LoginPage() Fault {
	return func(x *Exchange) { x.Status, x.Content = http.StatusOK, "<html>please log in</html>\n" }
}

// OneShot serves each target once and answers 403 afterwards.
func OneShot() Fault {
	return If(func(r *Request) bool { return r.Nth > 1 }, Status(http.StatusForbidden))
}

// Multipart labels a 206 as multipart/byteranges.
func Multipart() Fault { return Set("Content-Type", "multipart/byteranges; boundary=x") }

// ShortBody sends n bytes fewer than announced and ends the connection.
func ShortBody(n int64) Fault { return func(x *Exchange) { x.Short = n; x.EndAfter = true } }

// SurplusBody sends n bytes more than the range; with Content-Length they follow the message, otherwise they are part
// of it.
func SurplusBody(n int64) Fault { return func(x *Exchange) { x.Surplus = n } }

// ResetAfter resets the connection (RST) after n bytes of the body.
func ResetAfter(n int64) Fault { return func(x *Exchange) { x.Reset, x.ResetAt = true, n } }

// StallAfter stops after n bytes of the body until the channel is closed; nil = until the server is closed.
func StallAfter(n int64, until <-chan struct{}) Fault {
	return func(x *Exchange) { x.Stall, x.StallAt, x.Until = true, n, until }
}

// SlowStart waits before the first byte of the answer.
func SlowStart(d time.Duration) Fault { return func(x *Exchange) { x.Delay = d } }

// RateLimit sends at most n body bytes per second on a connection.
func RateLimit(n int64) Fault { return func(x *Exchange) { x.Rate = n } }

// HTTP10 answers in HTTP/1.0 and closes.
func HTTP10() Fault { return func(x *Exchange) { x.Proto, x.EndAfter = "HTTP/1.0", true } }

// ConnectionClose announces the end of the connection with the answer, and ends it.
func ConnectionClose() Fault {
	return func(x *Exchange) { x.EndAfter = true; Set("Connection", "close")(x) }
}

// ClosesEarly ends the connection after the answer without announcing it; requests behind it are lost.
func ClosesEarly() Fault { return func(x *Exchange) { x.EndAfter = true } }

// Ignored gives no answer and continues with the next request.
func Ignored() Fault { return func(x *Exchange) { x.Silent = true } }

// OutOfOrder answers the next request of the connection before this one.
func OutOfOrder() Fault { return func(x *Exchange) { x.Swap = true } }

// Raw answers with these bytes.
func Raw(s string) Fault { return func(x *Exchange) { x.Raw = []byte(s) } }

// Garbage answers with bytes that are not HTTP.
func Garbage() Fault { return Raw("\x00\x01 this is not an answer\r\n\r\n") }

// Interim sends raw interim answers first.
func Interim(raw ...string) Fault { return func(x *Exchange) { x.Interim = append(x.Interim, raw...) } }
