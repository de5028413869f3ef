package proxy

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// hopByHop are the fields that belong to one connection (RFC 9110 section 7.6.1, RFC 9112 appendix C.2.2). Trailer and
// Content-Length are among them because framing is rebuilt from the parsed message.
var hopByHop = [...]string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Transfer-Encoding", "Upgrade", "Http2-Settings",
	"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info", "Trailer", "Content-Length",
	wishField,
}

// removeHopByHop removes from h the hop-by-hop fields and those that Connection nominates, in all its lines (R19-R23).
func removeHopByHop(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// trailerAllowed reports whether a trailer field may be passed on: it is not a framing, routing, authentication,
// request modifier or content format field (RFC 9110 section 6.5.1), and not in nominated.
func trailerAllowed(name string, nominated []string) bool {
	switch name {
	case "Authorization", "Cache-Control", "Content-Encoding", "Content-Range", "Content-Type", "Cookie", "Expect",
		"Host", "Max-Forwards", "Pragma", "Range", "Set-Cookie", "Www-Authenticate":
		return false
	}
	for _, hop := range hopByHop {
		if name == hop {
			return false
		}
	}
	return !strings.HasPrefix(name, "If-") && !httpguts.HeaderValuesContainsToken(nominated, name)
}

// setAll makes dst a copy of src.
func setAll(dst, src http.Header) {
	clear(dst)
	for name, values := range src {
		dst[name] = values
	}
}
