package policy

import (
	"net/http"
	"strings"
)

// Reason names why a request is passed through instead of becoming a transfer. It is a metrics label.
type Reason string

// The reasons. They are checked in this order, the first one that holds is reported.
const (
	None           Reason = ""                // nothing speaks against a transfer
	Method         Reason = "method"          // not a GET
	Scheme         Reason = "scheme"          // neither http nor https in absolute form
	Body           Reason = "body"            // a GET with content has no defined meaning (RFC 9110 section 9.3.1)
	Upgrade        Reason = "upgrade"         // asks for another protocol
	Expect         Reason = "expect"          // asks for an interim answer
	Trailers       Reason = "trailers"        // wants trailers, which segments cannot give
	Nominated      Reason = "range_nominated" // Connection removes a field that decides which bytes are asked for
	MultiRange     Reason = "multi_range"     // several ranges in one answer
	SuffixRange    Reason = "suffix_range"    // the last n bytes: where they begin is known only from the answer
	BadRange       Reason = "bad_range"       // another unit, bad syntax or beyond int64
	AuthConnection Reason = "auth_connection" // NTLM, Negotiate: the credentials belong to one connection
	AuthOnce       Reason = "auth_once"       // Digest, OAuth 1, ...: each request needs credentials of its own
	AuthUnknown    Reason = "auth_unknown"    // unknown scheme: nothing is known about using it twice
	Signed         Reason = "signed"          // a signature covers a field that differs between the parts of a transfer
)

// Eligible reports whether r may become a transfer, and if not, why not (proxy-rules.md R75, R79, R83).
func Eligible(r *http.Request) (bool, Reason) {
	reason := refusal(r)
	return reason == None, reason
}

func refusal(r *http.Request) Reason {
	h := r.Header
	switch {
	case r.Method != http.MethodGet:
		return Method
	case r.URL.Scheme != "http" && r.URL.Scheme != "https":
		return Scheme
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		return Body
	case len(h["Upgrade"]) > 0 || hasToken(h["Connection"], "upgrade"):
		return Upgrade
	case len(h["Expect"]) > 0:
		return Expect
	case hasToken(h["Te"], "trailers"):
		return Trailers
	}
	for _, name := range varying {
		if hasToken(h["Connection"], name) {
			return Nominated
		}
	}
	if reason := rangeRefusal(h["Range"]); reason != None {
		return reason
	}
	if reason := authRefusal(h); reason != None {
		return reason
	}
	if signed(r) {
		return Signed
	}
	return None
}

// varying are the fields, in lower case, in which the requests of one transfer may differ from the client's own (R78,
// R84, R94).
var varying = [...]string{
	"range", "if-range", "accept-encoding", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
}

// hasToken reports whether one of the comma-separated lists in lines holds token, given in lower case. Parameters after
// a semicolon are ignored.
func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			item, _, _ = strings.Cut(item, ";")
			if strings.EqualFold(strings.TrimSpace(item), token) {
				return true
			}
		}
	}
	return false
}
