package segment_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/core/segment"
)

func TestSetAdd(t *testing.T) {
	tests := []struct{ name, before, add, after string }{
		{"empty set", "............", "...####.....", "...####....."},
		{"empty range", "..##........", "............", "..##........"},
		{"apart", "##..........", "....###.....", "##..###....."},
		{"before all", "......###...", "##..........", "##....###..."},
		{"touches its left neighbour", "..###.......", ".....###....", "..######...."},
		{"touches its right neighbour", ".....###....", "..###.......", "..######...."},
		{"fills a gap", "..##...##...", "....###.....", "..#######..."},
		{"overlaps the left", "..####......", "....####....", "..######...."},
		{"overlaps the right", "....####....", "..####......", "..######...."},
		{"overlaps both", "..####....####..", "....######......", "..############.."},
		{"inside", "..########..", "....###.....", "..########.."},
		{"same", "..########..", "..########..", "..########.."},
		{"around one", "....##......", "..#######...", "..#######..."},
		{"around many", ".#.#.#.#....", "##########..", "##########.."},
		{"around, ends in one", ".#.#.####...", "######......", "#########..."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := set(tt.before)
			n := s.Add(one(tt.add))
			if got := draw(s.Ranges(), len(tt.after)); got != tt.after {
				t.Errorf("got %s, want %s", got, tt.after)
			}
			if want := count(tt.after) - count(tt.before); n != want {
				t.Errorf("%d new, want %d", n, want)
			}
			canonical(t, s)
		})
	}
}

func TestSetRemove(t *testing.T) {
	tests := []struct{ name, before, remove, after string }{
		{"empty set", "............", "...####.....", "............"},
		{"empty range", "..##........", "............", "..##........"},
		{"apart", "##..........", "....###.....", "##.........."},
		{"touches", "..###.......", ".....###....", "..###......."},
		{"splits one", ".#########..", "....##......", ".###..####.."},
		{"cuts the left end", "..#####.....", ".###........", "....###....."},
		{"cuts the right end", "..#####.....", ".....####...", "..###......."},
		{"up to the end", "..#####.....", ".....##.....", "..###......."},
		{"from the start", "..#####.....", "..##........", "....###....."},
		{"same", "..#####.....", "..#####.....", "............"},
		{"around one", "..#####.....", ".#######....", "............"},
		{"around many", "#.##.#..##.#", ".#########..", "#..........#"},
		{"cuts two, drops one", ".####.#.####", "...######...", ".##......###"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := set(tt.before)
			n := s.Remove(one(tt.remove))
			if got := draw(s.Ranges(), len(tt.after)); got != tt.after {
				t.Errorf("got %s, want %s", got, tt.after)
			}
			if want := count(tt.before) - count(tt.after); n != want {
				t.Errorf("%d taken away, want %d", n, want)
			}
			canonical(t, s)
		})
	}
}

func TestSetGap(t *testing.T) {
	tests := []struct{ name, set, in, gap string }{
		{"empty set", "............", "...####.....", "...####....."},
		{"all there", ".########...", "...####.....", "............"},
		{"begins in one", ".####.......", "...#####....", ".....###...."},
		{"ends in one", "......####..", "...#####....", "...###......"},
		{"the first of two", "..#...#..#..", ".#########..", ".#.........."},
		{"between", ".###..####..", ".########...", "....##......"},
		{"touches both", "##....##....", "..####......", "..####......"},
		{"behind all", "##..........", "....###.....", "....###....."},
		{"empty range", "##..........", "............", "............"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := set(tt.set).Gap(one(tt.in))
			if g.Empty() != (count(tt.gap) == 0) || !g.Empty() && draw([]segment.Range{g}, 12) != tt.gap {
				t.Errorf("got %v, want %s", g, tt.gap)
			}
		})
	}
}

func count(picture string) int64 { return int64(strings.Count(picture, "#")) }

// canonical checks that ranges are ascending and not empty, and that they neither overlap nor touch.
func canonical(t *testing.T, s *segment.Set) {
	t.Helper()
	for i, r := range s.Ranges() {
		if r.Empty() || i > 0 && s.Ranges()[i-1].End >= r.Start {
			t.Fatalf("not canonical at %d: %v", i, s.Ranges())
		}
	}
}

// bitmap is the naive model of a Set.
type bitmap [96]bool

func (b *bitmap) fill(r segment.Range, v bool) (changed int64) {
	for i := r.Start; i < r.End; i++ {
		if b[i] != v {
			b[i] = v
			changed++
		}
	}
	return changed
}

func (b *bitmap) count(r segment.Range) (n int64) {
	for i := r.Start; i < r.End; i++ {
		if b[i] {
			n++
		}
	}
	return n
}

func (b *bitmap) gap(r segment.Range) (g segment.Range) {
	for r.Start < r.End && b[r.Start] {
		r.Start++
	}
	g = segment.Range{Start: r.Start, End: r.Start}
	for g.End < r.End && !b[g.End] {
		g.End++
	}
	return g
}

// against runs one operation on a Set and on its model. r may be empty or inverted.
func against(t *testing.T, s *segment.Set, m *bitmap, op int, r segment.Range) {
	t.Helper()
	switch op {
	case 0:
		if got, want := s.Add(r), m.fill(r, true); got != want {
			t.Fatalf("Add(%v) = %d, want %d: %v", r, got, want, s.Ranges())
		}
	case 1:
		if got, want := s.Remove(r), m.fill(r, false); got != want {
			t.Fatalf("Remove(%v) = %d, want %d: %v", r, got, want, s.Ranges())
		}
	case 2:
		if got, want := s.Overlap(r), m.count(r); got != want {
			t.Fatalf("Overlap(%v) = %d, want %d: %v", r, got, want, s.Ranges())
		}
	case 3:
		got, want := s.Gap(r), m.gap(r)
		if got.Empty() != want.Empty() || !got.Empty() && got != want {
			t.Fatalf("Gap(%v) = %v, want %v: %v", r, got, want, s.Ranges())
		}
	}
	canonical(t, s)
	all := segment.Range{End: int64(len(m))}
	if got, want := s.Len(), m.count(all); got != want || s.Empty() != (want == 0) {
		t.Fatalf("Len() = %d, want %d; Empty() = %v", got, want, s.Empty())
	}
	var pic []byte
	for _, in := range m {
		pic = append(pic, ".#"[b2i(in)])
	}
	if got := draw(s.Ranges(), len(m)); got != string(pic) {
		t.Fatalf("after %d %v\n got %s\nwant %s", op, r, got, pic)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestSetModel(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var s segment.Set
		var m bitmap
		longest := 1 + rnd.IntN(40)
		for range 200 {
			from := rnd.IntN(len(m))
			r := segment.Range{Start: int64(from), End: int64(min(from+rnd.IntN(longest+1), len(m)))}
			if rnd.IntN(20) == 0 {
				r.Start, r.End = r.End, r.Start
			}
			against(t, &s, &m, rnd.IntN(4), r)
		}
	}
}

func FuzzSet(f *testing.F) {
	f.Add([]byte{0, 10, 20, 0, 20, 30, 1, 15, 25, 3, 0, 40})
	f.Add(bytes.Repeat([]byte{0, 7, 9, 0, 3, 5, 1, 4, 8, 2, 0, 95}, 3))
	f.Fuzz(func(t *testing.T, ops []byte) {
		var s segment.Set
		var m bitmap
		for ; len(ops) >= 3; ops = ops[3:] {
			r := segment.Range{Start: int64(ops[1]) % int64(len(m)), End: int64(ops[2]) % int64(len(m)+1)}
			against(t, &s, &m, int(ops[0])%4, r)
		}
	})
}
