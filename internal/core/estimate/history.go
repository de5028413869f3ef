package estimate

import (
	"hash/fnv"
	"math"
	"strings"
	"time"
)

// Origin names a server in the History by scheme and authority.
type Origin string

// Pipelining is the known behavior of a server with several outstanding requests on one connection.
type Pipelining uint8

// The states of knowledge about pipelining.
const (
	Untried Pipelining = iota
	Works
	Broken
)

// Entry holds the findings about one origin over the network behind a link.
type Entry struct {
	Rate, Peak float64       // bytes per second
	RTT        time.Duration // duration of the TCP handshake
	Pipelining Pipelining
	Conns      int8    // number of connections that paid off, 0 = unknown
	Each       float64 // bytes per second to which it limits each connection, 0 = it does not, or unknown
	MaxConns   int8    // number of connections that the origin recently allowed, 0 = no limit seen
	seen       time.Time
	turn       uint64
}

// Visit holds the findings about an origin over any link.
type Visit struct {
	Large bool // it recently served an object worth several links
	seen  time.Time
	turn  uint64
}

// Path identifies an object of an origin in the History by a hash, since paths may be long and reveal much about the
// user. If two paths have the same hash, they share an entry, which affects only speed.
type Path uint64

// PathOf returns the Path of the object at a path. It ignores the query, which is new each time in signed URLs.
func PathOf(path string) Path {
	path, _, _ = strings.Cut(path, "?")
	h := fnv.New64a()
	_, _ = h.Write([]byte(path)) // a Hash never returns an error
	return Path(h.Sum64())
}

// mark records when something was seen.
type mark struct {
	seen time.Time
	turn uint64
}

// sized is the size of an object, in bytes.
type sized struct {
	size int64
	mark
}

const (
	historySize = 512
	historyLife = 10 * time.Minute

	// exclusionLife is short, because a refusal may concern one object but counts for its whole origin.
	exclusionLife = 2 * time.Minute
)

type historyKey struct {
	network string
	origin  Origin
}

type pathKey struct {
	origin Origin
	path   Path
}

// History remembers findings about networks, origins and paths, at most 512 entries of each kind for 10 minutes;
// exclusions for 2 minutes.
type History struct {
	links      map[historyKey]Entry
	origins    map[Origin]Visit
	wholes     map[pathKey]mark
	sizes      map[pathKey]sized
	exclusions map[historyKey]mark
	refusals   map[Origin]mark
	// number of the last entry; the oldest entry is evicted first, even among entries with equal times
	turn uint64
}

// NewHistory returns an empty history.
func NewHistory() *History {
	return &History{
		links:      map[historyKey]Entry{},
		origins:    map[Origin]Visit{},
		wholes:     map[pathKey]mark{},
		sizes:      map[pathKey]sized{},
		exclusions: map[historyKey]mark{},
		refusals:   map[Origin]mark{},
	}
}

// Link returns the entry of origin o over a network, or the zero Entry if there is none.
func (b *History) Link(now time.Time, network string, o Origin) Entry {
	e, ok := b.links[historyKey{network, o}]
	if !ok || now.Sub(e.seen) > historyLife {
		return Entry{}
	}
	return e
}

// SetLink records the entry of origin o over a network.
func (b *History) SetLink(now time.Time, network string, o Origin, e Entry) {
	b.turn++
	e.seen, e.turn = now, b.turn
	k := historyKey{network, o}
	if _, ok := b.links[k]; !ok && len(b.links) >= historySize {
		evict(b.links, func(e Entry) uint64 { return e.turn })
	}
	b.links[k] = e
}

// Origin returns the findings about o.
func (b *History) Origin(now time.Time, o Origin) (Visit, bool) {
	v, ok := b.origins[o]
	if !ok || now.Sub(v.seen) > historyLife {
		return Visit{}, false
	}
	return v, true
}

// SetOrigin records the findings about o.
func (b *History) SetOrigin(now time.Time, o Origin, v Visit) {
	b.turn++
	v.seen, v.turn = now, b.turn
	if _, ok := b.origins[o]; !ok && len(b.origins) >= historySize {
		evict(b.origins, func(v Visit) uint64 { return v.turn })
	}
	b.origins[o] = v
}

// Whole reports whether the object was recently served only as a whole, regardless of the requested range (R137).
func (b *History) Whole(now time.Time, o Origin, p Path) bool {
	m, ok := b.wholes[pathKey{o, p}]
	return ok && now.Sub(m.seen) <= historyLife
}

// SetWhole records that the origin does not serve ranges of the object.
func (b *History) SetWhole(now time.Time, o Origin, p Path) { note(b, b.wholes, now, pathKey{o, p}) }

// Size returns the recent size of the object in bytes, or 0 if it is unknown.
func (b *History) Size(now time.Time, o Origin, p Path) int64 {
	s, ok := b.sizes[pathKey{o, p}]
	if !ok || now.Sub(s.seen) > historyLife {
		return 0
	}
	return s.size
}

// SetSize records the size of an object in bytes.
func (b *History) SetSize(now time.Time, o Origin, p Path, size int64) {
	b.turn++
	k := pathKey{o, p}
	if _, ok := b.sizes[k]; !ok && len(b.sizes) >= historySize {
		evict(b.sizes, func(s sized) uint64 { return s.turn })
	}
	b.sizes[k] = sized{size, mark{now, b.turn}}
}

// Excluded reports whether o recently refused an object over a network although it served the object over another one:
// its URLs may be valid only for one client address (R118).
func (b *History) Excluded(now time.Time, network string, o Origin) bool {
	m, ok := b.exclusions[historyKey{network, o}]
	return ok && now.Sub(m.seen) <= exclusionLife
}

// SetExcluded records such a refusal.
func (b *History) SetExcluded(now time.Time, network string, o Origin) {
	note(b, b.exclusions, now, historyKey{network, o})
}

// Refuses reports whether o recently refused later requests for an object that it served (R252).
func (b *History) Refuses(now time.Time, o Origin) bool {
	m, ok := b.refusals[o]
	return ok && !now.After(m.seen.Add(historyLife))
}

// SetRefuses records such a refusal.
func (b *History) SetRefuses(now time.Time, o Origin) { note(b, b.refusals, now, o) }

// note sets a mark.
func note[K comparable](b *History, marks map[K]mark, now time.Time, k K) {
	b.turn++
	if _, ok := marks[k]; !ok && len(marks) >= historySize {
		evict(marks, func(m mark) uint64 { return m.turn })
	}
	marks[k] = mark{now, b.turn}
}

// evict removes the oldest entry.
func evict[K comparable, V any](m map[K]V, turn func(V) uint64) {
	var oldest K
	first := uint64(math.MaxUint64)
	for k, v := range m {
		if t := turn(v); t < first {
			oldest, first = k, t
		}
	}
	delete(m, oldest)
}
