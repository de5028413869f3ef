package estimate

import (
	"math"
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
	Large    bool // it lately served an object worth several links
	NoRanges bool // it ignored Range or gave no validator: start with the client's own GET
	seen     time.Time
	turn     uint64
}

const (
	bookSize = 512
	bookLife = 10 * time.Minute
)

type bookKey struct {
	link   string
	origin Origin
}

// Book remembers what was learned of links and origins, at most 512 entries of each kind for 10 minutes.
type Book struct {
	links   map[bookKey]Entry
	origins map[Origin]Visit
	turn    uint64 // of the last entry: what came first is forgotten first, also among entries of one moment
}

// NewBook returns an empty book.
func NewBook() *Book {
	return &Book{links: map[bookKey]Entry{}, origins: map[Origin]Visit{}}
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
