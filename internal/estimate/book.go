package estimate

import (
	"hash/fnv"
	"math"
	"strings"
	"time"
)

// Origin names a server in the Book: scheme and authority.
type Origin string

// Pipelining says what is known of a server's way with several requests outstanding on one connection.
type Pipelining uint8

// What is known of pipelining.
const (
	Untried Pipelining = iota
	Works
	Broken
)

// Entry is what was learned of one origin over one link.
type Entry struct {
	Rate, Peak float64       // bytes per second
	RTT        time.Duration // of the TCP handshake
	Pipelining Pipelining
	MaxConns   int8 // connections the origin lately allowed, 0 = no limit seen
	seen       time.Time
	turn       uint64
}

// Visit is what was learned of an origin, whatever the link.
type Visit struct {
	Large bool // it lately served an object worth several links
	seen  time.Time
	turn  uint64
}

// Path names an object of an origin in the Book, by a hash: paths may be long and say much about the user. Two paths with
// one hash share what is known, which costs speed and nothing else.
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

const (
	bookSize = 512
	bookLife = 10 * time.Minute

	// refusalLife is short, because a refusal may be of one object and counts for all of its origin.
	refusalLife = 2 * time.Minute
)

type bookKey struct {
	link   string
	origin Origin
}

type pathKey struct {
	origin Origin
	path   Path
}

// Book remembers what was learned of links, origins and paths, at most 512 entries of each kind for 10 minutes, refusals
// for 2.
type Book struct {
	links    map[bookKey]Entry
	origins  map[Origin]Visit
	wholes   map[pathKey]mark
	refusals map[bookKey]mark
	turn     uint64 // of the last entry: what came first is forgotten first, also among entries of one moment
}

// NewBook returns an empty book.
func NewBook() *Book {
	return &Book{
		links: map[bookKey]Entry{}, origins: map[Origin]Visit{}, wholes: map[pathKey]mark{}, refusals: map[bookKey]mark{},
	}
}

// Link returns what is known of origin o over the named link; the zero Entry if nothing is.
func (b *Book) Link(now time.Time, link string, o Origin) Entry {
	e, ok := b.links[bookKey{link, o}]
	if !ok || now.Sub(e.seen) > bookLife {
		return Entry{}
	}
	return e
}

// SetLink remembers e.
func (b *Book) SetLink(now time.Time, link string, o Origin, e Entry) {
	b.turn++
	e.seen, e.turn = now, b.turn
	k := bookKey{link, o}
	if _, ok := b.links[k]; !ok && len(b.links) >= bookSize {
		evict(b.links, func(e Entry) uint64 { return e.turn })
	}
	b.links[k] = e
}

// Origin returns what is known of o.
func (b *Book) Origin(now time.Time, o Origin) (Visit, bool) {
	v, ok := b.origins[o]
	if !ok || now.Sub(v.seen) > bookLife {
		return Visit{}, false
	}
	return v, true
}

// SetOrigin remembers v.
func (b *Book) SetOrigin(now time.Time, o Origin, v Visit) {
	b.turn++
	v.seen, v.turn = now, b.turn
	if _, ok := b.origins[o]; !ok && len(b.origins) >= bookSize {
		evict(b.origins, func(v Visit) uint64 { return v.turn })
	}
	b.origins[o] = v
}

// Whole reports whether the object was lately served in one piece only, whatever range was asked for (R137).
func (b *Book) Whole(now time.Time, o Origin, p Path) bool {
	m, ok := b.wholes[pathKey{o, p}]
	return ok && now.Sub(m.seen) <= bookLife
}

// SetWhole remembers that the origin serves no ranges of the object.
func (b *Book) SetWhole(now time.Time, o Origin, p Path) { note(b, b.wholes, now, pathKey{o, p}) }

// Refused reports whether o lately refused over the named link what it served over another one: its URLs may be good for
// one client address only (R118).
func (b *Book) Refused(now time.Time, link string, o Origin) bool {
	m, ok := b.refusals[bookKey{link, o}]
	return ok && now.Sub(m.seen) <= refusalLife
}

// SetRefused remembers such a refusal.
func (b *Book) SetRefused(now time.Time, link string, o Origin) {
	note(b, b.refusals, now, bookKey{link, o})
}

// note sets a mark.
func note[K comparable](b *Book, marks map[K]mark, now time.Time, k K) {
	b.turn++
	if _, ok := marks[k]; !ok && len(marks) >= bookSize {
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
