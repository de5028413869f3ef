package byterange

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Open as the End of a Range means "to the end of the object".
const Open = math.MaxInt64

// Spec is a single range of a client's Range field.
type Spec struct {
	First  int64 // first offset, -1 for a suffix range
	End    int64 // offset after the last one, Open for "a-"
	Suffix int64 // number of bytes of a suffix range ("-n"), otherwise 0
}

// ParseRange parses the value of a Range field. It returns false for everything but one range of bytes in its plain
// spelling with room for at least one byte: several ranges, other units, bad syntax and "-0" are left to the origin.
func ParseRange(field string) (Spec, bool) {
	unit, set, ok := strings.Cut(field, "=")
	// RFC 9110 section 14.1: range unit names are case-insensitive.
	if !ok || !strings.EqualFold(unit, "bytes") {
		return Spec{}, false
	}
	first, last, ok := strings.Cut(set, "-")
	if !ok {
		return Spec{}, false
	}
	if first == "" {
		n, ok := position(last)
		return Spec{First: -1, End: Open, Suffix: n}, ok && n > 0
	}
	s := Spec{End: Open}
	if s.First, ok = position(first); !ok {
		return Spec{}, false
	}
	if last == "" {
		return s, true
	}
	n, ok := position(last)
	if !ok || n < s.First {
		return Spec{}, false
	}
	s.End = n + 1
	return s, true
}

// Resolve returns the offsets that s selects in an object of total bytes, or false if it selects none (status 416).
func (s Spec) Resolve(total int64) (Range, bool) {
	if s.First < 0 {
		return Range{Start: max(0, total-s.Suffix), End: total}, total > 0
	}
	return Range{Start: s.First, End: min(s.End, total)}, s.First < total
}

// FormatRange formats r as the value of a Range field; an End of Open gives "bytes=a-". r must not be empty.
func FormatRange(r Range) string {
	b := append([]byte("bytes="), strconv.FormatInt(r.Start, 10)...)
	b = append(b, '-')
	if r.End != Open {
		b = strconv.AppendInt(b, r.End-1, 10)
	}
	return string(b)
}

// Content is the value of a Content-Range field.
type Content struct {
	Range Range // empty for the unsatisfied form "bytes */T" of a 416
	Total int64 // size of the object, -1 if given as "*"
}

var (
	errContentSyntax = errors.New("malformed Content-Range")
	errContentUnit   = errors.New("the unit of Content-Range is not bytes")
	// RFC 9110 section 14.4: "A Content-Range field value is invalid if it contains a range-resp that has a last-pos
	// value less than its first-pos value, or a complete-length value less than or equal to its last-pos value."
	errContentInvalid = errors.New("Content-Range contradicts itself")
)

// ParseContentRange parses the value of a Content-Range field.
func ParseContentRange(field string) (Content, error) {
	unit, rest, ok := strings.Cut(field, " ")
	if !ok {
		return Content{}, errContentSyntax
	}
	if !strings.EqualFold(unit, "bytes") {
		return Content{}, errContentUnit
	}
	pos, size, ok := strings.Cut(rest, "/")
	if !ok {
		return Content{}, errContentSyntax
	}
	c := Content{Total: -1}
	if size != "*" {
		if c.Total, ok = position(size); !ok {
			return Content{}, errContentSyntax
		}
	}
	if pos == "*" {
		if c.Total < 0 {
			return Content{}, errContentSyntax
		}
		return c, nil
	}
	a, b, ok := strings.Cut(pos, "-")
	if !ok {
		return Content{}, errContentSyntax
	}
	first, ok1 := position(a)
	last, ok2 := position(b)
	if !ok1 || !ok2 {
		return Content{}, errContentSyntax
	}
	if last < first || (c.Total >= 0 && c.Total <= last) {
		return Content{}, errContentInvalid
	}
	c.Range = Range{Start: first, End: last + 1}
	return c, nil
}

// String returns c as the value of a Content-Range field.
func (c Content) String() string {
	b := []byte("bytes ")
	if c.Range.Empty() {
		b = append(b, '*')
	} else {
		b = strconv.AppendInt(b, c.Range.Start, 10)
		b = append(b, '-')
		b = strconv.AppendInt(b, c.Range.End-1, 10)
	}
	b = append(b, '/')
	if c.Total < 0 {
		return string(append(b, '*'))
	}
	return string(strconv.AppendInt(b, c.Total, 10))
}

// position parses 1*DIGIT below math.MaxInt64, so that the offset after it still fits into an int64.
func position(s string) (int64, bool) {
	if s == "" || len(s) > 19 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && n < math.MaxInt64
}
