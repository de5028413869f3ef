package byterange

import "fmt"

// Range is the half-open interval [Start, End) of object offsets in bytes. The inclusive form of RFC 9110 section 14
// exists only in header fields.
type Range struct {
	Start, End int64
}

// Len returns the number of bytes in r.
func (r Range) Len() int64 { return r.End - r.Start }

// Empty reports whether r is empty.
func (r Range) Empty() bool { return r.End <= r.Start }

// Clip returns the part of r that lies in o; it is empty if they do not overlap.
func (r Range) Clip(o Range) Range {
	return Range{max(r.Start, o.Start), min(r.End, o.End)}
}

// Contains reports whether offset off lies in r.
func (r Range) Contains(off int64) bool { return off >= r.Start && off < r.End }

func (r Range) String() string { return fmt.Sprintf("[%d,%d)", r.Start, r.End) }
