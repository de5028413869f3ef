package opening

import (
	"strconv"
	"strings"

	"github.com/tributary-http/tributary/internal/segment"
	"github.com/tributary-http/tributary/pkg/byterange"
)

// The statuses of a response with content that may be divided.
const (
	statusOK      = 200
	statusPartial = 206
)

// Identity is one version of an object: responses may be joined only if they agree in all of it. A field that a response
// lacks is empty.
type Identity struct {
	Total     int64  // size of the object in bytes, -1 if unknown
	Validator string // If-Range value: strong entity tag with quotes, or a Last-Modified date that counts as strong
	ETag      string
	Modified  string // Last-Modified
	Coding    string // Content-Encoding
	Type      string // Content-Type
	Location  string // Content-Location
}

// Head is the head of a first response, as package origin has parsed it.
type Head struct {
	Status   int
	Fields   map[string][]string // by canonical name
	Range    segment.Range       // offsets of the content's bytes; End is -1 if the length is unknown
	ID       Identity            // version that the content belongs to
	Unfit    Reason              // why other responses may not be joined to it; None if they may
	Mismatch bool                // it does not answer the range that was asked for
}

// Rewrite makes the fields of a response that joins or is streamed those that the client would have seen without the proxy,
// and returns the status that goes with them (R110).
func (o *Opening) Rewrite(h Head) (status int) {
	w := o.Content()
	if o.version != nil {
		h.Fields["Content-Length"] = []string{strconv.FormatInt(w.Len(), 10)}
	}
	switch {
	case h.Status != statusPartial:
	case !o.asked && o.plan.Initial > 0: // the streamed response is the whole object, or judge would not have let it pass (R76)
		whole(h.Fields)
		return statusOK
	case o.version != nil:
		h.Fields["Content-Range"] = []string{byterange.Content{Range: w, Total: h.ID.Total}.String()}
		dropDigests(h.Fields)
	}
	return h.Status
}

// whole turns the fields of a 206 that our own range brought into those of a 200. A 206 need not say that the origin supports
// ranges (nginx leaves it out), but clients look for it in the 200 before they resume.
func whole(h map[string][]string) {
	if len(h["Accept-Ranges"]) == 0 {
		h["Accept-Ranges"] = []string{"bytes"}
	}
	delete(h, "Content-Range")
	dropDigests(h)
}

// dropDigests removes fields that describe the content of one message (RFC 9530 section 2): ours has another content.
func dropDigests(h map[string][]string) {
	delete(h, "Content-Digest")
	delete(h, "Content-Md5")
}

// servesNone reports whether an origin says that it serves no ranges.
func servesNone(h map[string][]string) bool {
	return strings.EqualFold(strings.TrimSpace(first(h, "Accept-Ranges")), "none")
}
