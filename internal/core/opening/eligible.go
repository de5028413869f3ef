package opening

import "strings"

// Request holds the parts of a client's request that the decision depends on. It is never changed.
type Request struct {
	Method string
	Scheme string              // scheme of the absolute URL, in lower case
	Query  string              // query of the URL, as the client sent it
	Fields map[string][]string // by canonical name; as the client sent them, including Connection

	ContentLength    int64 // -1 if unknown
	TransferEncoding []string
}

// Ineligible returns why r cannot become a transfer, or None if it can (R75, R79, R83).
func Ineligible(r Request) Reason {
	h := r.Fields
	switch {
	case r.Method != "GET":
		return Method
	case r.Scheme != "http" && r.Scheme != "https":
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
	if reason := ineligibleRange(h["Range"]); reason != None {
		return reason
	}
	if reason := ineligibleAuth(h); reason != None {
		return reason
	}
	if signed(r) {
		return Signed
	}
	return None
}

// varying lists the fields, in lower case, in which the requests of one transfer may differ from the client's own (R78,
// R84, R94).
var varying = [...]string{
	"range", "if-range", "accept-encoding", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since",
}

// hasToken reports whether one of the comma-separated lists in lines contains token, ignoring case and parameters after
// a semicolon.
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

// first returns the first value of a field, or "" if there is none.
func first(h map[string][]string, name string) string {
	if lines := h[name]; len(lines) > 0 {
		return lines[0]
	}
	return ""
}
