package segment

import "github.com/tributary-http/tributary/pkg/byterange"

// Range is the half-open interval [Start, End) of object offsets in bytes.
type Range = byterange.Range
