package transport

import (
	"net/http"

	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/opening"
	"github.com/tributary-http/tributary/internal/origin"
)

// Identity is one version of an object, as far as a response describes it.
type Identity = engine.Identity

// Identify returns the version that the content of a response belongs to. The content of two responses may be joined only if
// their versions agree in everything and have a Validator.
func Identify(resp *http.Response) Identity {
	if b, ok := resp.Body.(*dividedBody); ok {
		return b.id
	}
	return origin.Identity(origin.Head{Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength})
}

// dividedBody is the content of a GET that went to the engine. It remembers the version: the head of a response assembled from
// ranges no longer fully describes it.
type dividedBody struct {
	engine.Body
	id Identity
}

// OneTime returns why the credentials in h are valid for one request or one connection only, which does not suffice for a
// divided download; "" if they are valid for several.
func OneTime(h http.Header) string {
	switch reason := opening.Ineligible(opening.Request{Method: http.MethodGet, Scheme: "http", Fields: h}); reason {
	case opening.AuthConnection, opening.AuthOnce, opening.Signed:
		return string(reason)
	}
	return ""
}
