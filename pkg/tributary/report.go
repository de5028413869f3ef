package tributary

import (
	"context"

	"github.com/tributary-http/tributary/internal/transport"
)

// Report records which links a request used. The zero value is ready for [WithReport]. It is safe for concurrent use: it can be
// read while the response is, and is complete when its Body is closed. A Report must not be copied.
type Report struct{ used transport.Usage }

// LinkUse is the part of one link in a request.
type LinkUse struct {
	Link     string // name of the interface
	Received int64  // bytes of content
	Wasted   int64  // of these, bytes that another link brought too or nobody wanted
}

// Links returns the part of each link, in the order in which they began. A response that was not divided has one.
func (r *Report) Links() []LinkUse {
	var all []LinkUse
	for _, l := range r.used.Links() {
		all = append(all, LinkUse{Link: l.Link, Received: l.Bytes, Wasted: l.Waste})
	}
	return all
}

// Undivided returns why the response came over one link as it is, as one of the words that the package comment lists. It
// returns "" if the response was divided, or before there is one.
func (r *Report) Undivided() string { return r.used.Reason() }

type reportKey struct{}

// WithReport returns a context with which r reports on a request. Requests that share the context, such as those of an
// http.Client that follows a redirect, add up; Undivided is about the last one.
func WithReport(ctx context.Context, r *Report) context.Context {
	return context.WithValue(ctx, reportKey{}, r)
}

// WithSize returns a context that says how large the object of a request probably is, in bytes, for callers that know it from a
// catalog or an earlier response. All unmetered links are then asked at once, without waiting for the first response. A wrong size
// costs a request of up to 128 KiB on each of them, and never a byte of the content.
func WithSize(ctx context.Context, size int64) context.Context { return transport.WithSize(ctx, size) }
