package segment_test

import (
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/core/segment"
)

// Pictures: one column per offset, '#' is in the set, '.' is not.

// ranges parses a picture.
func ranges(picture string) (rs []segment.Range) {
	for i := 0; i < len(picture); {
		n := strings.IndexByte(picture[i:]+".", '.')
		if n > 0 {
			rs = append(rs, segment.Range{Start: int64(i), End: int64(i + n)})
		}
		i += n + 1
	}
	return rs
}

// one parses a picture of one range. A picture without a range gives an empty range.
func one(picture string) segment.Range {
	if rs := ranges(picture); len(rs) > 0 {
		return rs[0]
	}
	return segment.Range{}
}

// draw is the inverse of ranges.
func draw(rs []segment.Range, width int) string {
	p := []byte(strings.Repeat(".", width))
	for _, r := range rs {
		for i := max(r.Start, 0); i < min(r.End, int64(width)); i++ {
			p[i] = '#'
		}
	}
	return string(p)
}

func set(picture string) *segment.Set {
	s := &segment.Set{}
	for _, r := range ranges(picture) {
		s.Add(r)
	}
	return s
}

func TestRangeClip(t *testing.T) {
	tests := []struct{ name, a, b, want string }{
		{"same", "..####..", "..####..", "..####.."},
		{"inside", "...##...", "..####..", "...##..."},
		{"around", ".######.", "..####..", "..####.."},
		{"left", ".###....", "..####..", "..##...."},
		{"right", "....###.", "..####..", "....##.."},
		{"touch", "##......", "..####..", "........"},
		{"apart", "#.......", "..####..", "........"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, got := range []segment.Range{one(tt.a).Clip(one(tt.b)), one(tt.b).Clip(one(tt.a))} {
				if got.Empty() != (tt.want == "........") || !got.Empty() && draw([]segment.Range{got}, 8) != tt.want {
					t.Errorf("got %v, want %s", got, tt.want)
				}
			}
		})
	}
}

func TestRange(t *testing.T) {
	r := segment.Range{Start: 1000, End: 2000}
	if r.Len() != 1000 || r.Empty() || r.String() != "[1000,2000)" {
		t.Errorf("len %d, empty %v, %s", r.Len(), r.Empty(), r)
	}
	for off, want := range map[int64]bool{999: false, 1000: true, 1999: true, 2000: false} {
		if r.Contains(off) != want {
			t.Errorf("Contains(%d) = %v", off, !want)
		}
	}
	for _, e := range []segment.Range{{}, {Start: 5, End: 5}, {Start: 6, End: 5}} {
		if !e.Empty() {
			t.Errorf("%v is not empty", e)
		}
	}
}
