package segment

import "slices"

// Set is a set of object offsets, kept as ascending ranges that neither overlap nor touch. The zero value is empty. A
// transfer has only a few ranges at a time, so a sorted slice is better than a tree.
type Set struct {
	r []Range
}

// Ranges returns the ranges in ascending order. The slice is valid until the next change.
func (s *Set) Ranges() []Range { return s.r }

// Empty reports whether s is empty.
func (s *Set) Empty() bool { return len(s.r) == 0 }

// Len returns the number of offsets in s.
func (s *Set) Len() (n int64) {
	for _, r := range s.r {
		n += r.Len()
	}
	return n
}

// after returns the index of the first range that ends beyond off.
func (s *Set) after(off int64) int {
	lo, hi := 0, len(s.r)
	for lo < hi {
		if m := (lo + hi) / 2; s.r[m].End > off {
			hi = m
		} else {
			lo = m + 1
		}
	}
	return lo
}

// Add adds r and returns how many of its offsets were new.
func (s *Set) Add(r Range) int64 {
	if r.Empty() {
		return 0
	}
	fresh := r.Len()
	i := s.after(r.Start - 1) // a range that ends at r.Start touches it and is joined
	j := i
	for ; j < len(s.r) && s.r[j].Start <= r.End; j++ {
		fresh -= max(0, s.r[j].Clip(r).Len())
	}
	if i == j {
		s.r = slices.Insert(s.r, i, r)
		return fresh
	}
	joined := Range{Start: min(r.Start, s.r[i].Start), End: max(r.End, s.r[j-1].End)}
	s.r[i] = joined
	s.r = slices.Delete(s.r, i+1, j)
	return fresh
}

// Remove removes r and returns how many offsets were removed.
func (s *Set) Remove(r Range) int64 {
	if r.Empty() {
		return 0
	}
	i := s.after(r.Start)
	if i == len(s.r) || s.r[i].Start >= r.End {
		return 0
	}
	if o := s.r[i]; o.Start < r.Start && o.End > r.End { // a hole in the middle splits the range
		s.r[i].End = r.Start
		s.r = slices.Insert(s.r, i+1, Range{Start: r.End, End: o.End})
		return r.Len()
	}
	var gone int64
	if s.r[i].Start < r.Start {
		gone += s.r[i].End - r.Start
		s.r[i].End = r.Start
		i++
	}
	j := i
	for ; j < len(s.r) && s.r[j].End <= r.End; j++ {
		gone += s.r[j].Len()
	}
	if j < len(s.r) && s.r[j].Start < r.End {
		gone += r.End - s.r[j].Start
		s.r[j].Start = r.End
	}
	s.r = slices.Delete(s.r, i, j)
	return gone
}

// Overlap returns how many offsets of r are in s.
func (s *Set) Overlap(r Range) (n int64) {
	for i := s.after(r.Start); i < len(s.r) && s.r[i].Start < r.End; i++ {
		n += max(0, s.r[i].Clip(r).Len()) // r may be inverted
	}
	return n
}

// Gap returns the first part of r that is not in s; it is empty if s contains all of r.
func (s *Set) Gap(r Range) Range {
	if i := s.after(r.Start); i < len(s.r) && s.r[i].Start <= r.Start {
		r.Start = s.r[i].End
	}
	if r.Empty() {
		return Range{Start: r.End, End: r.End}
	}
	if i := s.after(r.Start); i < len(s.r) && s.r[i].Start < r.End {
		r.End = s.r[i].Start
	}
	return r
}
