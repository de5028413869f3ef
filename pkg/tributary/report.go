package tributary

import (
	"context"

	"github.com/tributary-http/tributary/internal/transport"
)

// Report says what a request used. It can be read at any time, and is complete when the response's Body is closed. The zero
// value is ready for WithReport, for one request.
type Report struct{ used transport.Usage }

// LinkUse is what one link did for a request.
type LinkUse struct {
	Link     string
	Received int64 // bytes of content
	Wasted   int64 // of these, bytes that another link brought too or nobody wanted
}

// Links returns what each link did, in the order in which they began. Of a request that was not divided it names the link,
// without numbers unless it was found out only from the response.
func (r *Report) Links() []LinkUse {
	var all []LinkUse
	for _, l := range r.used.Links() {
		all = append(all, LinkUse{Link: l.Link, Received: l.Bytes, Wasted: l.Waste})
	}
	return all
}

// Undivided returns why the response was not divided, as a short word such as "small", "no_ranges" or "method"; "" if it was
// or no response has come. docs/METRICS.md lists the words.
func (r *Report) Undivided() string { return r.used.Reason() }

type reportKey struct{}

// WithReport returns a context for one request, whose use of the links r reports.
func WithReport(ctx context.Context, r *Report) context.Context {
	return context.WithValue(ctx, reportKey{}, r)
}
