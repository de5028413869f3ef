package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// Index pages are rewritten in memory: at most maxPages at a time, of maxIndex bytes each. The largest ones of projects
// have several megabytes.
const (
	maxIndex = 16 << 20
	maxPages = 2
)

// rewritten removes the fields that do not apply to an answer whose content is rewritten.
func (a *answer) rewritten() {
	for _, name := range []string{
		"Etag", "Last-Modified", "Content-Md5", "Digest", "Repr-Digest", "Content-Digest", "Accept-Ranges",
	} {
		delete(a.Header, name)
	}
	a.ContentLength = -1
}

// page receives an index page and rewrites it. A page that arrives slowly keeps only others of its host waiting.
func (x *exchange) page(a *answer, rewrite func(*links, []byte) ([]byte, error), l links) ([]byte, *failure) {
	if a.Header.Get("Content-Encoding") != "" {
		return nil, badGateway("The index page is compressed although the request did not allow that. Use the index itself.")
	}
	ctx, cancel := context.WithTimeoutCause(x.r.Context(), pageTime, errLate)
	defer cancel()
	defer context.AfterFunc(ctx, func() { a.Body.Close() })()
	arrived, err := x.g.shelf.read(ctx, l.index, a.Body)
	switch {
	case errors.Is(err, errLarge):
		return nil, badGateway(sentence(err) + " Use the index itself.")
	case errors.Is(err, errLate):
		return nil, &failure{http.StatusGatewayTimeout, "http_response_timeout", sentence(err) + " Try again."}
	case err != nil:
		return nil, failed(err)
	}
	defer x.g.shelf.leave(arrived)
	select {
	case x.g.pages <- struct{}{}:
		defer func() { <-x.g.pages }()
	case <-x.r.Context().Done():
		panic(http.ErrAbortHandler)
	}
	page, err := rewrite(&l, slices.Concat(arrived.pieces...))
	if err != nil {
		return nil, badGateway("The index page cannot be parsed. Use the index itself.")
	}
	return page, nil
}

// links rewrites the links of an index page.
type links struct {
	hosts  *Hosts
	prefix string // of the index at the gateway
	index  string // host of the index
	page   target // base of relative links
}

// through returns a link through the gateway, or the link itself if the gateway may not serve its target.
func (l *links) through(link string) string {
	reference, fragment, marked := strings.Cut(link, "#")
	if reference == "" {
		return link
	}
	to, err := l.page.resolve(strings.TrimSpace(reference))
	if err != nil || !l.hosts.link(to.host) {
		return link
	}
	out := "/https/" + to.host + to.path
	if to.host == l.index {
		out = l.prefix + to.path[1:]
	}
	if marked {
		out += "#" + fragment
	}
	return out
}
