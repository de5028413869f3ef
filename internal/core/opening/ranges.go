package opening

import (
	"strconv"
	"strings"
)

// ineligibleRange checks the client's Range field: a request without one, or with a single byte range, may become a
// transfer. The origin judges all others (R79).
func ineligibleRange(lines []string) Reason {
	switch len(lines) {
	case 0:
		return None
	case 1:
	default:
		return MultiRange
	}
	set, ok := strings.CutPrefix(lines[0], "bytes=")
	if !ok {
		return BadRange
	}
	if strings.Contains(set, ",") {
		return MultiRange
	}
	first, last, ok := strings.Cut(set, "-")
	if !ok || !position(first) || !position(last) {
		return BadRange
	}
	switch {
	case first == "" && (last == "" || strings.Trim(last, "0") == ""): // "-" and "-0": nothing can be served
		return BadRange
	case first == "":
		return SuffixRange
	case last != "":
		a, _ := strconv.ParseInt(first, 10, 64)
		b, _ := strconv.ParseInt(last, 10, 64)
		if b < a {
			return BadRange
		}
	}
	return None
}

// position reports whether s is empty or an offset: at most 19 digits, nothing else, and the offset plus one fits an
// int64 (R81).
func position(s string) bool {
	if s == "" {
		return true
	}
	if len(s) > 19 || strings.Trim(s, "0123456789") != "" {
		return false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && n+1 > 0
}

// startRanged reports whether a transfer may start with a range of our choice instead of the client's own GET (R77). It
// may if the client itself sends a single range, or accepts no content coding, so that the origin cannot choose another
// representation for a ranged request. Origins ignore an If-Range without a Range (RFC 9110 section 13.1.5); adding a
// Range would make it effective.
func startRanged(h map[string][]string) bool {
	if len(h["Range"]) > 0 {
		return ineligibleRange(h["Range"]) == None
	}
	return len(h["If-Range"]) == 0 && identityOnly(h["Accept-Encoding"])
}

// identityOnly reports whether the lines of an Accept-Encoding field allow only identity (RFC 9110 section 12.5.3).
func identityOnly(lines []string) bool {
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			coding, weight, _ := strings.Cut(item, ";")
			coding = strings.TrimSpace(coding)
			if coding != "" && !strings.EqualFold(coding, "identity") && !zeroWeight(weight) {
				return false
			}
		}
	}
	return true
}

// zeroWeight reports whether s is "q=0", "q=0.0" and so on, meaning not acceptable.
func zeroWeight(s string) bool {
	name, value, ok := strings.Cut(strings.TrimSpace(s), "=")
	if !ok || !strings.EqualFold(strings.TrimSpace(name), "q") {
		return false
	}
	q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
	return err == nil && q == 0
}
