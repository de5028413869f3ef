package byterange_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/core/byterange"
)

func TestR079_ParseRange(t *testing.T) {
	open := int64(byterange.Open)
	tests := []struct {
		reason, field string
		want          byterange.Spec
		ok            bool
	}{
		// RFC 9110 section 14.1.2: "The first-pos value in a bytes int-range gives the offset of the first byte in a range.
		// The last-pos value gives the offset of the last byte in the range; that is, the byte positions specified are
		// inclusive. Byte offsets start at zero."
		{"R79 both ends", "bytes=0-499", byterange.Spec{First: 0, End: 500}, true},
		{"R79 one byte", "bytes=0-0", byterange.Spec{First: 0, End: 1}, true},
		{"R79 open", "bytes=500-", byterange.Spec{First: 500, End: open}, true},
		// "A client can request the last N bytes (N > 0) of the selected representation using a suffix-range."
		{"R79 suffix", "bytes=-500", byterange.Spec{First: -1, End: open, Suffix: 500}, true},
		{"R79 empty suffix", "bytes=-0", byterange.Spec{}, false},
		// "All range unit names are case-insensitive"
		{"R79 case of the unit", "Bytes=1-2", byterange.Spec{First: 1, End: 3}, true},
		// "An int-range is invalid if the last-pos value is present and less than first-pos."
		{"R79 last before first", "bytes=5-2", byterange.Spec{}, false},
		{"R79 several", "bytes=0-1,5-6", byterange.Spec{}, false},
		{"R79 other unit", "seconds=0-1", byterange.Spec{}, false},
		{"R79 no unit", "0-1", byterange.Spec{}, false},
		{"R79 nothing", "bytes=", byterange.Spec{}, false},
		{"R79 only a dash", "bytes=-", byterange.Spec{}, false},
		{"R79 sign", "bytes=+1-2", byterange.Spec{}, false},
		{"R79 two dashes", "bytes=1--2", byterange.Spec{}, false},
		{"R79 space", "bytes=1- 2", byterange.Spec{}, false},
		{"R79 underscore", "bytes=1_0-20", byterange.Spec{}, false},
		{"R79 hex", "bytes=0x1-20", byterange.Spec{}, false},
		{"R81 largest end", "bytes=0-9223372036854775806", byterange.Spec{First: 0, End: math.MaxInt64}, true},
		{"R81 end overflows", "bytes=0-9223372036854775807", byterange.Spec{}, false},
		{"R81 20 digits", "bytes=00000000000000000000-1", byterange.Spec{}, false},
		{"R81 beyond int64", "bytes=9999999999999999999-", byterange.Spec{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, ok := byterange.ParseRange(tt.field)
			if ok != tt.ok || (ok && got != tt.want) {
				t.Errorf("ParseRange(%q) = %+v, %v; want %+v, %v", tt.field, got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestResolve(t *testing.T) {
	tests := []struct {
		field string
		total int64
		want  byterange.Range
		ok    bool
	}{
		{"bytes=0-9", 100, byterange.Range{Start: 0, End: 10}, true},
		// RFC 9110 section 14.1.2: "If the last-pos value is absent, or if the value is greater than or equal to the current
		// length of the representation data, the byte range is interpreted as the remainder of the representation".
		{"bytes=90-200", 100, byterange.Range{Start: 90, End: 100}, true},
		{"bytes=99-", 100, byterange.Range{Start: 99, End: 100}, true},
		{"bytes=100-", 100, byterange.Range{}, false},
		{"bytes=-10", 100, byterange.Range{Start: 90, End: 100}, true},
		// "If the selected representation is shorter than the specified suffix-length, the entire representation is used."
		{"bytes=-1000", 100, byterange.Range{Start: 0, End: 100}, true},
		{"bytes=-1", 0, byterange.Range{}, false},
		{"bytes=0-", 0, byterange.Range{}, false},
	}
	for _, tt := range tests {
		s, ok := byterange.ParseRange(tt.field)
		if !ok {
			t.Fatalf("ParseRange(%q) failed", tt.field)
		}
		got, ok := s.Resolve(tt.total)
		if ok != tt.ok || (ok && got != tt.want) {
			t.Errorf("%q of %d bytes = %v, %v; want %v, %v", tt.field, tt.total, got, ok, tt.want, tt.ok)
		}
	}
}

func TestR099_ParseContentRange(t *testing.T) {
	r := func(a, b int64) byterange.Range { return byterange.Range{Start: a, End: b} }
	tests := []struct {
		reason, field string
		want          byterange.Content
		ok            bool
	}{
		{"R96 known total", "bytes 42-1233/1234", byterange.Content{Range: r(42, 1234), Total: 1234}, true},
		{"R98 unknown total", "bytes 42-1233/*", byterange.Content{Range: r(42, 1234), Total: -1}, true},
		{"R103 unsatisfied", "bytes */1234", byterange.Content{Total: 1234}, true},
		{"unsatisfied without total", "bytes */*", byterange.Content{}, false},
		// RFC 9110 section 14.4: "invalid if it contains a range-resp that has a last-pos value less than its first-pos value"
		{"R99 last before first", "bytes 5-4/10", byterange.Content{}, false},
		// "or a complete-length value less than or equal to its last-pos value"
		{"R99 total too small", "bytes 0-9/9", byterange.Content{}, false},
		{"R99 total just enough", "bytes 0-9/10", byterange.Content{Range: r(0, 10), Total: 10}, true},
		{"other unit", "items 0-9/10", byterange.Content{}, false},
		{"equals sign", "bytes=0-9/10", byterange.Content{}, false},
		{"no total", "bytes 0-9", byterange.Content{}, false},
		{"no last", "bytes 0-/10", byterange.Content{}, false},
		{"two spaces", "bytes  0-9/10", byterange.Content{}, false},
		{"two values", "bytes 0-9/10, bytes 0-9/10", byterange.Content{}, false},
		{"signed", "bytes 0-+9/10", byterange.Content{}, false},
		{"R81 last overflows", "bytes 0-9223372036854775807/*", byterange.Content{}, false},
		{"R81 total overflows", "bytes 0-1/9223372036854775808", byterange.Content{}, false},
		{"empty", "", byterange.Content{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			got, err := byterange.ParseContentRange(tt.field)
			if (err == nil) != tt.ok || got != tt.want {
				t.Errorf("ParseContentRange(%q) = %+v, %v; want %+v, %v", tt.field, got, err, tt.want, tt.ok)
			}
		})
	}
}

// Every accepted value selects at least one byte and parses to the same range after formatting.
func FuzzRange(f *testing.F) {
	for _, s := range []string{"bytes=0-0", "bytes=5-", "bytes=-7", "bytes=0-9223372036854775806", "bytes=5-2", "bytes=0-1,2-3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, field string) {
		s, ok := byterange.ParseRange(field)
		if !ok {
			return
		}
		if strings.ContainsAny(field, ", \t") {
			t.Fatalf("%q accepted", field)
		}
		if s.First < 0 {
			if s.Suffix <= 0 {
				t.Fatalf("%q = %+v: no byte", field, s)
			}
			return
		}
		r := byterange.Range{Start: s.First, End: s.End}
		if r.Empty() {
			t.Fatalf("%q = %v: no byte", field, r)
		}
		again, ok := byterange.ParseRange(byterange.FormatRange(r))
		if !ok || again != s {
			t.Fatalf("%q: wrote %q, read %+v, %v; want %+v", field, byterange.FormatRange(r), again, ok, s)
		}
		if got, ok := s.Resolve(math.MaxInt64 - 1); ok && (got.Empty() || got.End > math.MaxInt64-1) {
			t.Fatalf("%q resolves to %v", field, got)
		}
	})
}

// Every accepted value is consistent and parses to the same content after formatting.
func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-0/1", "bytes 0-0/*", "bytes */0", "bytes 5-4/10", "bytes 0-9223372036854775806/*", "bytes 0-9/9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, field string) {
		c, err := byterange.ParseContentRange(field)
		if err != nil {
			return
		}
		if c.Range.Start < 0 || c.Range.End < c.Range.Start || (c.Total >= 0 && c.Range.End > c.Total) {
			t.Fatalf("%q = %+v", field, c)
		}
		again, err := byterange.ParseContentRange(c.String())
		if err != nil || again != c {
			t.Fatalf("%q: wrote %q, read %+v, %v; want %+v", field, c, again, err, c)
		}
	})
}
