package origin

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
)

// Mismatch is a valid response that is not the expected one.
type Mismatch struct {
	// Clause is the stable short name of the condition that does not hold: "status", "validator", "framing",
	// "multipart", "content_range", "start", "end", "content_length", "total", "etag", "last_modified", "coding",
	// "type" or "location".
	Clause     string
	Outcome    fault.Outcome
	RetryAfter time.Duration // for Busy, 0 if the origin named none
	Err        error
}

func (m *Mismatch) Error() string { return m.Clause + ": " + m.Err.Error() }

func (m *Mismatch) Unwrap() error { return m.Err }

func mismatch(clause string, outcome fault.Outcome, format string, args ...any) *Mismatch {
	return &Mismatch{Clause: clause, Outcome: outcome, Err: fmt.Errorf(format, args...)}
}

// Check compares an answer to a range request for a known version (a.Want) with that version. If-Range alone proves
// nothing: some servers ignore it and send a range of another version. Each condition of RFC 9110 sections 14.4 and
// 15.3.7 gives a Mismatch of its own; an end before the requested one is legal. now is used for a Retry-After date in
// an answer without a Date.
func Check(a *engine.RangeRequest, h Head, now time.Time) Verdict {
	v := Verdict{Range: segment.Range{End: h.Length}, ID: identity(h)}
	if h.Status != http.StatusPartialContent {
		v.Err = notPartial(a.Want, h, now)
		return v
	}
	if h.Ambiguous {
		v.Err = mismatch("framing", fault.BadRange, "Content-Length and Transfer-Encoding contradict each other")
		return v
	}
	c, err := partial(a.Range, h)
	if err != nil {
		v.Err = err
		return v
	}
	if v.Err = differs(a.Want, h, c.Total); v.Err == nil {
		v.Range, v.ID = c.Range, *a.Want
	}
	return v
}

// differs returns the first property in which an answer about a version of total bytes differs from want. All of them
// must agree, and a property that one lacks must be absent from the other too: if a server changes an object and keeps
// its ETag, only another property can reveal that.
func differs(want *engine.Identity, h Head, total int64) *Mismatch {
	got := identity(h)
	switch {
	case want.Validator == "":
		return mismatch("validator", fault.Changed, "the expected version has no strong validator to compare")
	case want.Total >= 0 && total < 0:
		return mismatch("total", fault.BadRange, "no size given, want %d", want.Total)
	case want.Total >= 0 && total != want.Total:
		return mismatch("total", fault.Changed, "size %d, want %d", total, want.Total)
	case got.ETag != want.ETag:
		return mismatch("etag", fault.Changed, "ETag %q, want %q", got.ETag, want.ETag)
	case got.Modified != want.Modified:
		return mismatch("last_modified", fault.Changed, "Last-Modified %q, want %q", got.Modified, want.Modified)
	case got.Coding != want.Coding:
		return mismatch("coding", fault.Changed, "Content-Encoding %q, want %q", got.Coding, want.Coding)
	case !sameType(got.Type, want.Type):
		return mismatch("type", fault.Changed, "Content-Type %q, want %q", got.Type, want.Type)
	case got.Location != want.Location:
		return mismatch("location", fault.Changed, "Content-Location %q, want %q", got.Location, want.Location)
	}
	return nil
}

// notPartial judges an answer other than 206 for a version whose first answer was fine.
func notPartial(want *engine.Identity, h Head, now time.Time) *Mismatch {
	switch h.Status {
	case http.StatusOK:
		const html = "text/html"
		if mediaType(h.Header.Get("Content-Type")) == html && mediaType(want.Type) != html {
			// A login page, not a version of this object.
			return mismatch("type", fault.Unwanted, "an HTML page instead of %q", want.Type)
		}
		total := h.Length
		if total < 0 { // a server that ignores Range need not know the size
			total = want.Total
		}
		if m := differs(want, h, total); m != nil {
			return m
		}
		return mismatch("status", fault.NoRange, "status 200: this server ignores Range")
	case http.StatusRequestedRangeNotSatisfiable:
		// If the size is known, the range lay within it: the object shrank. An earlier guess does not show that.
		if want.Total >= 0 {
			return mismatch("status", fault.Changed, "416 for a range within the object")
		}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		m := mismatch("status", fault.Busy, "status %d", h.Status)
		m.RetryAfter = RetryAfter(h.Header, now)
		return m
	}
	return mismatch("status", fault.Unwanted, "status %d", h.Status)
}

// RetryAfter reads Retry-After (RFC 9110 section 10.2.3), seconds or a date. It returns 0 if there is none or it is
// malformed.
func RetryAfter(h http.Header, now time.Time) time.Duration {
	s := h.Get("Retry-After")
	if n, err := strconv.ParseUint(s, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	at, err := http.ParseTime(s)
	if err != nil {
		return 0
	}
	// Using the origin's own clock, if given, avoids an error when it differs from ours.
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return max(0, at.Sub(now))
}
