package tributary

import (
	"context"

	"github.com/tributary-http/tributary/internal/net/transport"
)

// Report records which links a request used. The zero value is ready for [WithReport]. It is safe for concurrent use:
// it can be read while the response is being read, and is complete when the Body is closed. A Report must not be
// copied.
type Report struct{ used transport.Usage }

// LinkUse describes what one link contributed to a request.
type LinkUse struct {
	Link     string // name of the interface
	Received int64  // bytes of content
	Wasted   int64  // bytes of Received that another link also delivered or that were not needed
}

// Links returns what each link contributed, in the order in which the links started. A response that was not divided
// has one.
func (r *Report) Links() []LinkUse {
	var all []LinkUse
	for _, l := range r.used.Links() {
		all = append(all, LinkUse{Link: l.Link, Received: l.Bytes, Wasted: l.Waste})
	}
	return all
}

// Undivided returns why the response came over one link unchanged, as one of the words listed in the package comment.
// It returns "" if the response was divided or has not arrived yet.
func (r *Report) Undivided() string { return r.used.Reason() }

type reportKey struct{}

// WithReport returns a context that makes requests report to r. Requests that share the context, such as those of an
// http.Client that follows a redirect, add up; Undivided is about the last one.
func WithReport(ctx context.Context, r *Report) context.Context {
	return context.WithValue(ctx, reportKey{}, r)
}

// WithSize returns a context that carries the probable size of a request's object in bytes, for callers that know it
// from a catalog or an earlier response. All unmetered links are then used at once, without waiting for the first
// response. A wrong size costs a request of up to 128 KiB on each of them, but never affects the content.
func WithSize(ctx context.Context, size int64) context.Context {
	return transport.With(ctx, func(o *transport.Options) { o.Size = size })
}
