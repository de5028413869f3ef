package origintest

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// Framing says how the end of a body is marked.
type Framing uint8

// The framings.
const (
	Length     Framing = iota // Content-Length
	Chunked                   // Transfer-Encoding: chunked
	UntilClose                // by the end of the connection
)

// Exchange is one request and the plan of its answer. The zero value of every field but Request and Object is the
// behaviour of a correct server. A Fault changes the plan; it runs in the goroutine of the connection and must not
// block.
type Exchange struct {
	*Request
	Object Object // version served to this request

	IgnoreRange   bool          // 200 to a range request
	Always        segment.Range // if not zero: 206 of this range to every request
	IgnoreIfRange bool          // 206 whatever If-Range says
	MaxRange      int64         // a 206 covers at most this many bytes; 0 = no bound
	ShiftStart    int64         // added to the start of the range, as sent and as announced
	ShiftEnd      int64         // added to its end
	ShiftBody     int64         // added to the offsets of the bytes sent, but not to those announced

	Status  int               // 0 = the correct one; otherwise Content is the body
	Content string            // body of an answer with Status
	Edit    func(http.Header) // changes the head's fields last, Content-Length and Transfer-Encoding included
	Interim []string          // raw interim answers to send before
	Proto   string            // "" = HTTP/1.1
	Framing Framing
	Raw     []byte // replaces head and body

	// In bytes. Short cuts the body without changing the announced length, Surplus adds some.
	Short, Surplus int64

	Silent   bool          // no answer; the next request is read
	Swap     bool          // the next request is answered before this one
	Delay    time.Duration // before the first byte of the head
	Rate     int64         // bytes per second of the body; 0 = as fast as possible
	ResetAt  int64         // the connection is reset after this many bytes of the body, if Reset is set
	Reset    bool
	StallAt  int64 // the body stops after this many bytes, if Stall is set, until Until is closed; nil = forever
	Stall    bool
	Until    <-chan struct{}
	EndAfter bool // the connection ends after this answer, announced or not
}

// plan is a finished answer.
type plan struct {
	status int
	header http.Header
	head   []byte // of HTTP/1.1
	// The body: literal bytes, or those of the object.
	literal []byte
	from    int64
	length  int64
	object  Object
	chunked bool
	end     bool // the connection ends after it
}

// answer turns the exchange into bytes.
func (x *Exchange) answer() plan {
	if x.Raw != nil {
		return plan{head: x.Raw, end: x.EndAfter}
	}
	o := x.Object
	h := http.Header{}
	h.Set("Date", o.Date.UTC().Format(http.TimeFormat))
	p := plan{object: o, length: o.Size, chunked: x.Framing == Chunked, end: x.EndAfter || x.Framing == UntilClose}
	status := x.Status
	if status == 0 {
		status = x.deserved(h, &p)
	} else {
		p.literal = []byte(x.Content)
		p.length = int64(len(p.literal))
		h.Set("Content-Type", "text/html; charset=utf-8")
	}
	p.from += x.ShiftBody
	bodyless := status == http.StatusNotModified || status == http.StatusNoContent
	switch {
	case bodyless:
		p.length = 0
	case p.chunked:
		h.Set("Transfer-Encoding", "chunked")
	case x.Framing == Length:
		h.Set("Content-Length", strconv.FormatInt(p.length, 10))
	}
	if strings.EqualFold(x.Header.Get("Connection"), "close") {
		p.end = true
		h.Set("Connection", "close")
	}
	if x.Edit != nil {
		x.Edit(h)
	}
	if x.Method == http.MethodHead || bodyless {
		p.length, p.chunked = 0, false
	} else {
		p.length = max(0, p.length-x.Short) + x.Surplus
	}
	proto := x.Proto
	if proto == "" {
		proto = "HTTP/1.1"
	}
	p.status, p.header = status, h
	p.head = appendHead(x.Interim, proto, status, h)
	return p
}

// deserved returns the status with which a correct server would answer, and fills in head and body.
func (x *Exchange) deserved(h http.Header, p *plan) int {
	o := x.Object
	h.Set("Content-Type", o.Type)
	h.Set("Accept-Ranges", "bytes")
	modified := ""
	if o.ETag != NoETag {
		h.Set("ETag", o.ETag)
	}
	if !o.Modified.Equal(NoModified) {
		modified = o.Modified.UTC().Format(http.TimeFormat)
		h.Set("Last-Modified", modified)
	}
	if match := x.Header.Get("If-None-Match"); match != "" && match == o.ETag {
		return http.StatusNotModified
	}
	// RFC 9110 section 13.1.5: If-Range needs a strong comparison; if it fails, Range is ignored.
	if cond := x.Header.Get("If-Range"); cond != "" && !x.IgnoreIfRange {
		if strings.HasPrefix(cond, "W/") || (cond != o.ETag && cond != modified) {
			return http.StatusOK
		}
	}
	spec, ok := byterange.ParseRange(x.Range)
	if x.Always != (segment.Range{}) {
		spec, ok = byterange.Spec{First: x.Always.Start, End: x.Always.End}, true
	}
	if !ok || x.IgnoreRange {
		return http.StatusOK
	}
	r, ok := spec.Resolve(o.Size)
	if !ok {
		h.Set("Content-Range", byterange.Content{Total: o.Size}.String())
		p.literal, p.length = []byte{}, 0
		return http.StatusRequestedRangeNotSatisfiable
	}
	if x.MaxRange > 0 {
		r.End = min(r.End, r.Start+x.MaxRange)
	}
	if shifted := (segment.Range{Start: max(0, r.Start+x.ShiftStart), End: r.End + x.ShiftEnd}); !shifted.Empty() {
		r = shifted
	}
	h.Set("Content-Range", byterange.Content{Range: r, Total: o.Size}.String())
	p.from, p.length = r.Start, r.Len()
	return http.StatusPartialContent
}

func appendHead(interim []string, proto string, status int, h http.Header) []byte {
	var b bytes.Buffer
	for _, raw := range interim {
		b.WriteString(raw)
	}
	fmt.Fprintf(&b, "%s %03d %s\r\n", proto, status, http.StatusText(status))
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range h[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, value)
		}
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// gzipped returns the whole object in the gzip coding. It is stored: compressing takes long under the race detector.
func gzipped(o Object) string {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.NoCompression) // the level is valid
	_, _ = z.Write(o.Bytes(0, o.Size))                  // a Buffer does not fail
	_ = z.Close()
	return b.String()
}
