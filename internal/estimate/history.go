package estimate

import (
	"hash/fnv"
	"math"
	"strings"
	"time"
)

// Origin names a server in the History: scheme and authority.
type Origin string

// Pipelining says how a server handles several outstanding requests on one connection, as far as known.
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
	RTT        time.Duration // of the TCP handshake
	Pipelining Pipelining
	Conns      int8 // connections that paid off, 0 = unknown
	MaxConns   int8 // connections the origin lately allowed, 0 = no limit seen
	seen       time.Time
	turn       uint64
}

// Visit holds the findings about an origin, whatever the link.
type Visit struct {
	Large bool // it lately served an object worth several links
	seen  time.Time
	turn  uint64
}

// Path identifies an object of an origin in the History by a hash, since paths may be long and reveal much about the user. If
// two paths have the same hash, they share an entry, which affects only speed.
type Path uint64

// PathOf returns the name of the object at a path without its query, which is new each time in signed URLs.
func PathOf(path string) Path {
	path, _, _ = strings.Cut(path, "?")
	h := fnv.New64a()
	_, _ = h.Write([]byte(path)) // a Hash takes everything
	return Path(h.Sum64())
}

// mark is that something was seen.
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

	// refusalLife is short, because a refusal may be of one object and counts for all of its origin.
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

// History remembers findings about networks, origins and paths, at most 512 entries of each kind for 10 minutes, refusals for 2.
type History struct {
	links      map[historyKey]Entry
	origins    map[Origin]Visit
	wholes     map[pathKey]mark
	sizes      map[pathKey]sized
	exclusions map[historyKey]mark
	turn       uint64 // of the last entry: the oldest is forgotten first, also among entries of one moment
}

// NewHistory returns an empty history.
func NewHistory() *History {
	return &History{
		links: map[historyKey]Entry{}, origins: map[Origin]Visit{}, wholes: map[pathKey]mark{}, sizes: map[pathKey]sized{}, exclusions: map[historyKey]mark{},
	}
}

// Link returns the entry of origin o over a network; the zero Entry if there is none.
func (b *History) Link(now time.Time, network string, o Origin) Entry {
	e, ok := b.links[historyKey{network, o}]
	if !ok || now.Sub(e.seen) > historyLife {
		return Entry{}
	}
	return e
}

// SetLink remembers e.
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

// SetOrigin remembers v.
func (b *History) SetOrigin(now time.Time, o Origin, v Visit) {
	b.turn++
	v.seen, v.turn = now, b.turn
	if _, ok := b.origins[o]; !ok && len(b.origins) >= historySize {
		evict(b.origins, func(v Visit) uint64 { return v.turn })
	}
	b.origins[o] = v
}

// Whole reports whether the object was recently served only as a whole, whatever range was requested (R137).
func (b *History) Whole(now time.Time, o Origin, p Path) bool {
	m, ok := b.wholes[pathKey{o, p}]
	return ok && now.Sub(m.seen) <= historyLife
}

// SetWhole records that the origin does not serve ranges of the object.
func (b *History) SetWhole(now time.Time, o Origin, p Path) { note(b, b.wholes, now, pathKey{o, p}) }

// Size returns the recent size of the object, 0 if it is unknown.
func (b *History) Size(now time.Time, o Origin, p Path) int64 {
	s, ok := b.sizes[pathKey{o, p}]
	if !ok || now.Sub(s.seen) > historyLife {
		return 0
	}
	return s.size
}

// SetSize remembers the size of an object.
func (b *History) SetSize(now time.Time, o Origin, p Path, size int64) {
	b.turn++
	k := pathKey{o, p}
	if _, ok := b.sizes[k]; !ok && len(b.sizes) >= historySize {
		evict(b.sizes, func(s sized) uint64 { return s.turn })
	}
	b.sizes[k] = sized{size, mark{now, b.turn}}
}

// Excluded reports whether o recently refused over a network an object that it served over another one: its URLs may be valid
// for one client address only (R118).
func (b *History) Excluded(now time.Time, network string, o Origin) bool {
	m, ok := b.exclusions[historyKey{network, o}]
	return ok && now.Sub(m.seen) <= exclusionLife
}

// SetExcluded remembers such a refusal.
func (b *History) SetExcluded(now time.Time, network string, o Origin) {
	note(b, b.exclusions, now, historyKey{network, o})
}

// note sets a mark.
func note[K comparable](b *History, marks map[K]mark, now time.Time, k K) {
	b.turn++
	if _, ok := marks[k]; !ok && len(marks) >= historySize {
		evict(marks, func(m mark) uint64 { return m.turn })
	}
	marks[k] = mark{now, b.turn}
}

// evict drops the entry that was remembered longest ago.
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
