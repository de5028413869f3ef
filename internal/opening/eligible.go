package opening

import "strings"

// Request holds the parts of a client's request that decide. None of it is changed.
type Request struct {
	Method string
	Scheme string              // of the absolute URL, in lower case
	Query  string              // of the URL, as the client sent it
	Fields map[string][]string // by canonical name; as the client sent them, Connection included

	ContentLength    int64 // -1 if unknown
	TransferEncoding []string
}

// Ineligible returns why r cannot become a transfer, None if it may (R75, R79, R83).
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

// first returns the first value of a field, "" without one.
func first(h map[string][]string, name string) string {
	if lines := h[name]; len(lines) > 0 {
		return lines[0]
	}
	return ""
}
