package segment

import "github.com/tributary-http/tributary/internal/core/byterange"

// Range is the half-open interval [Start, End) of object offsets in bytes.
type Range = byterange.Range
