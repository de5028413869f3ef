package transport

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/tributary-http/tributary/internal/core/opening"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/origin"
)

// Identity is one version of an object, as far as a response describes it.
type Identity struct {
	engine.Identity
	Place string // see Place; "" if the response does not know its request
}

// Place returns where the object of a URL is: scheme, host, port and path. It has no query, since the signature in it
// is often another one for each request.
func Place(u *url.URL) string {
	path, _, _ := strings.Cut(path(u, u.Host), "?")
	return u.Scheme + "://" + strings.ToLower(origin.HostPort(u)) + path
}

// Identify returns the version that the content of a response belongs to. The content of two responses may be joined
// only if their versions agree in everything and have a Validator, which means nothing at another place (RFC 9110
// section 8.8.3).
func Identify(resp *http.Response) Identity {
	var id Identity
	if b, ok := resp.Body.(*dividedBody); ok {
		id.Identity = b.id
	} else {
		id.Identity = origin.Identity(origin.Head{
			Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength,
		})
	}
	if resp.Request != nil {
		id.Place = Place(resp.Request.URL)
	}
	return id
}

// dividedBody is the content of a GET that went to the engine. It remembers the version: the head of a response
// assembled from ranges no longer fully describes it.
type dividedBody struct {
	engine.Body
	id engine.Identity
}

// OneTime returns why the credentials in h are valid for one request or one connection only, which does not suffice for
// a divided download; "" if they are valid for several.
func OneTime(h http.Header) string {
	switch reason := opening.Ineligible(opening.Request{Method: http.MethodGet, Scheme: "http", Fields: h}); reason {
	case opening.AuthConnection, opening.AuthOnce, opening.Signed:
		return string(reason)
	}
	return ""
}
