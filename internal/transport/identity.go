package transport

import (
	"net/http"

	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/opening"
	"github.com/tributary-http/tributary/internal/origin"
)

// Identity is one version of an object, as far as an answer describes it.
type Identity = engine.Identity

// Identify returns the version that the content of an answer belongs to. The content of two answers may be joined only if their
// versions agree in everything and have a Validator.
func Identify(resp *http.Response) Identity {
	if b, ok := resp.Body.(*dividedBody); ok {
		return b.id
	}
	return origin.Identity(origin.Head{Status: resp.StatusCode, Header: resp.Header, Length: resp.ContentLength})
}

// dividedBody is the content of a GET that went to the engine. It remembers the version: a head that was made whole no
// longer says all of it.
type dividedBody struct {
	engine.Body
	id Identity
}

// OneTime returns why the credentials in h hold for one request or one connection only, which a divided download cannot do
// with; "" if they hold for several.
func OneTime(h http.Header) string {
	switch reason := opening.Ineligible(opening.Request{Method: http.MethodGet, Scheme: "http", Fields: h}); reason {
	case opening.AuthConnection, opening.AuthOnce, opening.Signed:
		return string(reason)
	}
	return ""
}
