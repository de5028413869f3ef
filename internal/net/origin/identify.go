package origin

import (
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/fault"
	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/core/segment"
	"github.com/tributary-http/tributary/internal/net/engine"
	"golang.org/x/net/http/httpguts"
)

// Head holds the facts about a response that the checks use.
type Head struct {
	Status    int
	Header    http.Header
	Length    int64 // body length that the framing announces, in bytes, -1 if it announces none
	HTTP10    bool  // the answer is HTTP/1.0
	Ambiguous bool  // framing that RFC 9112 section 6.1 calls faulty: both Content-Length and Transfer-Encoding, ...
	Trailer   bool  // a trailer section is announced
}

// Verdict classifies a response.
type Verdict struct {
	Range segment.Range // offsets of the body's bytes; End is -1 if the length is unknown
	ID    engine.Identity
	Unfit opening.Reason // why other answers may not be joined to it, None if they may; set for first answers only
	Err   *Mismatch      // nil if the answer may be used
}

// strongAge is how much older than the answer a Last-Modified date must be to count as a strong validator. RFC 9110
// section 8.8.2.2 asks for one second if both come from one clock; a minute, as in RFC 7232, tolerates clocks that
// differ.
const strongAge = 60 * time.Second

// Identify judges the first response of a transfer. Without a range in the request, every response is accepted, and
// Unfit says whether others may be joined to it. With a range, only a 200 or a 206 of that range is accepted;
// everything else is a Mismatch.
func Identify(a *engine.RangeRequest, h Head) Verdict {
	v := Verdict{Range: segment.Range{End: h.Length}, ID: identity(h)}
	ranged := a.Range != segment.Range{}
	v.Unfit = unfit(h)
	switch {
	case h.Status == http.StatusOK:
		v.ID.Total = h.Length
		if v.Unfit == opening.None && !acceptsRanges(h.Header) {
			v.Unfit = opening.NoRanges
		}
	case h.Status == http.StatusPartialContent && ranged:
		c, err := partial(a.Range, h)
		if err != nil {
			v.Unfit, v.Err = opening.Status, err
			return v
		}
		v.Range, v.ID.Total = c.Range, c.Total
	default:
		v.Unfit = opening.Status
		if ranged {
			v.Err = mismatch("status", fault.Unwanted, "status %d", h.Status)
		}
	}
	if (v.Unfit == opening.None || v.Unfit == opening.NoRanges) && v.ID.Total < 0 {
		v.Unfit = opening.UnknownLength
	}
	return v
}

// unfit returns the first reason that does not depend on the status, or None (RFC 9110 section 15.3.7.3).
func unfit(h Head) opening.Reason {
	_, validator := strongValidator(h.Header)
	switch {
	case h.HTTP10:
		return opening.HTTP10
	case h.Ambiguous:
		return opening.Framing
	case isMultipart(h.Header):
		return opening.Multipart
	case h.Trailer:
		return opening.Trailer
	case httpguts.HeaderValuesContainsToken(h.Header["Vary"], "*"):
		return opening.Vary
	case coding(h.Header) != "":
		return opening.Coding
	case h.Status == http.StatusOK && h.Length < 0:
		return opening.UnknownLength
	case validator != opening.None:
		return validator
	}
	return opening.None
}

// Identity returns the version to which the content of a response belongs, whatever the request was.
func Identity(h Head) engine.Identity {
	id := identity(h)
	switch fields := h.Header["Content-Range"]; {
	case h.Status == http.StatusOK:
		id.Total = h.Length
	case h.Status == http.StatusPartialContent && len(fields) == 1:
		if c, err := byterange.ParseContentRange(fields[0]); err == nil && !c.Range.Empty() {
			id.Total = c.Total
		}
	}
	return id
}

// identity returns the version that h describes; Total stays unknown.
func identity(h Head) engine.Identity {
	validator, _ := strongValidator(h.Header)
	return engine.Identity{
		Total:     -1,
		Validator: validator,
		ETag:      all(h.Header["Etag"]),
		Modified:  all(h.Header["Last-Modified"]),
		Coding:    coding(h.Header),
		Type:      all(h.Header["Content-Type"]),
		Location:  all(h.Header["Content-Location"]),
	}
}

// all joins the lines of a field, so that a second line makes a difference.
func all(lines []string) string { return strings.Join(lines, ", ") }

// strongValidator returns the value that If-Range may carry, or the reason why there is none.
func strongValidator(h http.Header) (string, opening.Reason) {
	if tags := h["Etag"]; len(tags) > 0 {
		switch {
		// RFC 9110 section 13.1.5 allows a date in If-Range only without any entity tag: a weak one rules out both.
		case strings.HasPrefix(tags[0], "W/"):
			return "", opening.WeakValidator
		case len(tags) > 1 || !isStrongTag(tags[0]):
			return "", opening.NoValidator
		}
		return tags[0], opening.None
	}
	dates := h["Last-Modified"]
	if len(dates) == 0 {
		return "", opening.NoValidator
	}
	modified, err := http.ParseTime(dates[0])
	if err != nil || len(dates) > 1 {
		return "", opening.NoValidator
	}
	sent, err := http.ParseTime(h.Get("Date"))
	if err != nil || sent.Sub(modified) < strongAge {
		return "", opening.WeakValidator
	}
	return dates[0], opening.None
}

// isStrongTag reports whether s is an opaque-tag of RFC 9110 section 8.8.3. The empty one is legal but does not
// distinguish versions.
func isStrongTag(s string) bool {
	if len(s) < 3 || s[0] != '"' || s[len(s)-1] != '"' {
		return false
	}
	for i := 1; i < len(s)-1; i++ {
		if c := s[i]; c <= ' ' || c == '"' || c == 0x7f {
			return false
		}
	}
	return true
}

// coding returns the content codings without "identity", "" for none.
func coding(h http.Header) string {
	var all []string
	for _, line := range h["Content-Encoding"] {
		for c := range strings.SplitSeq(line, ",") {
			if c = strings.ToLower(strings.TrimSpace(c)); c != "" && c != "identity" {
				all = append(all, c)
			}
		}
	}
	return strings.Join(all, ", ")
}

func acceptsRanges(h http.Header) bool {
	return httpguts.HeaderValuesContainsToken(h["Accept-Ranges"], "bytes")
}

func isMultipart(h http.Header) bool {
	return mediaType(h.Get("Content-Type")) == "multipart/byteranges"
}

// mediaType returns the type without its parameters, in lower case.
func mediaType(s string) string {
	s, _, _ = strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(s))
}

// sameType reports whether two Content-Type values name one type with one set of parameters.
func sameType(a, b string) bool {
	if a == b {
		return true
	}
	ta, pa, errA := mime.ParseMediaType(a)
	tb, pb, errB := mime.ParseMediaType(b)
	if errA != nil || errB != nil || ta != tb || len(pa) != len(pb) {
		return false
	}
	for k, v := range pa {
		if w, ok := pb[k]; !ok || !strings.EqualFold(v, w) {
			return false
		}
	}
	return true
}

// partial checks that h, a 206, answers the one range asked for. The total may be unknown (-1).
func partial(asked segment.Range, h Head) (byterange.Content, *Mismatch) {
	var none byterange.Content
	// RFC 9110 section 15.3.7.2: "A server MUST NOT generate a multipart response to a request for a single range".
	if isMultipart(h.Header) {
		return none, mismatch("multipart", fault.BadRange, "multipart response to a single range")
	}
	fields := h.Header["Content-Range"]
	if len(fields) != 1 {
		return none, mismatch("content_range", fault.BadRange, "206 with %d Content-Range fields", len(fields))
	}
	c, err := byterange.ParseContentRange(fields[0])
	switch {
	case err != nil:
		return none, mismatch("content_range", fault.BadRange, "%w", err)
	case c.Range.Empty():
		return none, mismatch("content_range", fault.BadRange, "206 with the Content-Range of a 416")
	case c.Range.Start != asked.Start:
		return none, mismatch("start", fault.BadRange, "starts at %d, asked for %d", c.Range.Start, asked.Start)
	case c.Range.End > asked.End:
		return none, mismatch("end", fault.BadRange, "ends at %d, asked up to %d", c.Range.End, asked.End)
	case h.Length >= 0 && h.Length != c.Range.Len():
		return none, mismatch("content_length", fault.BadRange, "%d bytes announced for a range of %d", h.Length,
			c.Range.Len())
	}
	return c, nil
}
