package gateway

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/tributary-http/tributary/internal/front/chain"
	"github.com/tributary-http/tributary/internal/net/transport"
)

// maxRedirects is how many redirects of one request are followed.
const maxRedirects = 10

// exchange is one request of a client and its answer.
type exchange struct {
	g  *Gateway
	w  http.ResponseWriter
	rc *http.ResponseController
	r  *http.Request

	knows   bool               // the client knows the token
	cancel  context.CancelFunc // ends the request
	crowded bool               // too many requests run, so this one gets one link
}

// answer is the response at the end of a chain of redirects.
type answer struct {
	*http.Response
	first  target
	header http.Header // of the request to first
	at     target      // target that answered
}

// dropped are the request fields that are not forwarded: hop-by-hop ones (RFC 9110 section 7.6.1), those that would
// reveal this machine to servers, and cookies, which belong to other services that a browser found at this loopback
// address.
var dropped = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Transfer-Encoding", "Upgrade", "Http2-Settings", "Trailer",
	"Content-Length",
	"Expect", "Host", "Cookie", "Referer", "Forwarded", "Via", "X-Real-Ip", "From", "Proxy-Authorization",
	"Proxy-Authenticate",
}

// common are the fields that the target of every redirect gets. All others may contain data meant for the host that the
// client named (RFC 9110 section 15.4), such as Authorization and fields that services invent.
var common = []string{
	"Accept", "Accept-Encoding", "Accept-Language", "User-Agent", "Range", "If-Range",
	"If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since",
}

// requestHeader returns the fields for the first host.
func requestHeader(client http.Header) http.Header {
	h := client.Clone()
	for _, line := range client["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range dropped {
		delete(h, name)
	}
	maps.DeleteFunc(h, func(name string, values []string) bool {
		return strings.HasPrefix(name, "X-Forwarded-") || !httpguts.ValidHeaderFieldName(name) ||
			slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) })
	})
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = nil // keeps net/http from adding its own
	}
	return h
}

// leads reports whether an answer is a redirect.
func leads(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return true
	}
	return false
}

// follow requests an object with these fields and follows redirects, until stop, if not nil, returns true for a
// redirect, which is then the answer. The caller must close its Body.
func (x *exchange) follow(t target, h http.Header,
	stop func(redirect *http.Response, to target) bool,
) (*answer, *failure) {
	a, err := x.chain(t, h, stop)
	switch {
	case err == nil:
		return a, nil
	case errors.Is(err, errDowngrade), errors.Is(err, errNowhere), errors.Is(err, chain.ErrInward),
		errors.Is(err, errEndless):
		x.g.Log.Debug("redirect refused", "error", err)
		return nil, badGateway(sentence(err))
	}
	x.g.Log.Debug("request failed", "error", err)
	return nil, failed(err)
}

var errEndless = errors.New("the server redirects too many times")

func (x *exchange) chain(t target, h http.Header, stop func(*http.Response, target) bool) (*answer, error) {
	ctx := x.r.Context()
	if x.crowded {
		ctx = transport.With(ctx, func(o *transport.Options) { o.Undivided = transport.Crowded })
	}
	a := &answer{first: t, header: h, at: t}
	h = h.Clone()
	var cookies chain.Cookies
	for range maxRedirects + 1 {
		out := &http.Request{
			Method:     x.r.Method,
			URL:        a.at.url(),
			Host:       a.at.host,
			Header:     h.Clone(),
			Proto:      "HTTP/1.1",
			ProtoMajor: 1,
			ProtoMinor: 1,
		}
		at, err := a.at.parsed()
		if err != nil {
			return nil, err
		}
		cookies.Add(at, out.Header)
		resp, err := x.g.Transport.RoundTrip(out.WithContext(ctx))
		if err != nil {
			return nil, err
		}
		cookies.Keep(at, resp.Header)
		a.Response = resp
		if !leads(resp) {
			return a, nil
		}
		next, err := a.at.resolve(resp.Header.Get("Location"))
		if err == nil && !x.g.Hosts.chosen(next.host) && !onInternet(next.host) {
			err = chain.ErrInward
		}
		if err == nil && stop != nil && stop(resp, next) {
			return a, nil
		}
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		if next.host != a.at.host {
			maps.DeleteFunc(h, func(name string, _ []string) bool { return !slices.Contains(common, name) })
		}
		a.at = next
	}
	return nil, errEndless
}
