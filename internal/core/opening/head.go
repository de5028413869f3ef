package opening

import (
	"strconv"
	"strings"

	"github.com/tributary-http/tributary/internal/core/byterange"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// The statuses of a response with content that may be divided.
const (
	statusOK      = 200
	statusPartial = 206
)

// Identity identifies one version of an object: responses may be joined only if they agree in all its fields. A field
// that a response lacks is empty.
type Identity struct {
	Total     int64  // size of the object in bytes, -1 if unknown
	Validator string // If-Range value: strong entity tag with quotes, or a Last-Modified date that counts as strong
	ETag      string
	Modified  string // Last-Modified
	Coding    string // Content-Encoding
	Type      string // Content-Type
	Location  string // Content-Location
}

// Head is the head of a first response, as parsed by package origin.
type Head struct {
	Status   int
	Fields   map[string][]string // by canonical name
	Range    segment.Range       // offsets of the content's bytes; End is -1 if the length is unknown
	ID       Identity            // version that the content belongs to
	Unfit    Reason              // why other responses may not be joined to it; None if they may
	Mismatch bool                // the response does not match the requested range
}

// Rewrite changes the fields of a response that joins or is streamed to those that the client would have seen without
// the proxy, and returns the matching status (R110).
func (o *Opening) Rewrite(h Head) (status int) {
	w := o.Content()
	if o.version != nil {
		h.Fields["Content-Length"] = []string{strconv.FormatInt(w.Len(), 10)}
	}
	switch {
	case h.Status != statusPartial:
	case !o.asked && o.plan.Initial > 0: // the streamed response is the whole object; judge rejects others (R76)
		whole(h.Fields)
		return statusOK
	case o.version != nil:
		h.Fields["Content-Range"] = []string{byterange.Content{Range: w, Total: h.ID.Total}.String()}
		dropDigests(h.Fields)
	}
	return h.Status
}

// whole turns the fields of a 206 response to our own range into those of a 200. A 206 need not say that the origin
// supports ranges (nginx omits it), but clients look for that in the 200 before they resume.
func whole(h map[string][]string) {
	if len(h["Accept-Ranges"]) == 0 {
		h["Accept-Ranges"] = []string{"bytes"}
	}
	delete(h, "Content-Range")
	dropDigests(h)
}

// dropDigests removes fields that describe the content of one message (RFC 9530 section 2), since our response has
// different content.
func dropDigests(h map[string][]string) {
	delete(h, "Content-Digest")
	delete(h, "Content-Md5")
}

// servesNone reports whether an origin declares that it does not serve ranges.
func servesNone(h map[string][]string) bool {
	return strings.EqualFold(strings.TrimSpace(first(h, "Accept-Ranges")), "none")
}
