package health

import (
	"slices"
	"time"
)

// Boards separates one origin's verdicts about the links from those that count for everybody. An origin that starves
// its connections over a link, or accepts none there, makes the link look dead to its own transfers. So each origin has
// a Board whose verdicts count for its own transfers only. One more Board holds the confirmed verdicts; they are passed
// on to every origin's Board, and so is their end. The zero value has no links and no origins.
//
// Call Silent, Failed, Speed and Tick of an origin's Board for events that concern only that origin, and the methods of
// Boards for events that may concern everybody.
type Boards struct {
	all  Board
	each []*Board
}

// Join returns the Board of a new origin. It begins with the verdicts for everybody.
func (b *Boards) Join() *Board {
	own := &Board{links: slices.Clone(b.all.links)}
	for i := range own.links {
		e := &own.links[i]
		if e.probes, e.speed = nil, (speed{}); e.state == Probing { // it asks for a probe of its own
			e.state = Banned
		}
	}
	b.each = append(b.each, own)
	return own
}

// Leave forgets an origin.
func (b *Boards) Leave(own *Board) {
	b.each = slices.DeleteFunc(b.each, func(o *Board) bool { return o == own })
}

// State returns the state of a link for everybody, and its cause.
func (b *Boards) State(link int8) (State, Cause) { return b.all.State(link) }

// Bans returns how often a link was banned for everybody.
func (b *Boards) Bans(link int8) int { return b.all.Bans(link) }

// Changes returns the changes for everybody since the last call, see Board.Changes.
func (b *Boards) Changes() []Change { return b.all.Changes() }

// Present reports that a link exists or no longer does, see Board.Present.
func (b *Boards) Present(now time.Time, link int8, here bool) {
	b.all.Present(now, link, here)
	for _, own := range b.each {
		own.Present(now, link, here)
	}
}

// Failed reports that a link fails for everybody: a socket could not be bound to it, or an origin's verdict was
// confirmed.
func (b *Boards) Failed(now time.Time, link int8, c Cause) {
	b.all.Failed(now, link, c)
	for _, own := range b.each {
		own.Failed(now, link, c)
	}
}

// Alive reports that a link delivered a byte from an origin.
func (b *Boards) Alive(now time.Time, own *Board, link int8) {
	own.Alive(now, link)
	b.unban(now, link, func() { b.all.Alive(now, link) })
}

// Probed reports the result of a probe that the Board of an origin asked for. If the origin was reached, the link works
// for everybody; if the link was away until now, the other origins find out at once.
func (b *Boards) Probed(now time.Time, own *Board, p Probe, a Answer) {
	before, _ := own.State(p.Link)
	own.Probed(now, p, a)
	if a != Answered {
		return
	}
	b.unban(now, p.Link, func() { b.all.reach(now, p.Link) })
	if after, _ := own.State(p.Link); after == Up && before != Up {
		for _, o := range b.each {
			o.hurry(now, p.Link)
		}
	}
}

// Tick does the work due at now for everybody, see Board.Tick; the caller reports the results of its probes with Tried.
// probe reports whether anything waits for a link.
func (b *Boards) Tick(now time.Time, probe func(link int8) bool) (probes []Probe, next time.Time) {
	return b.all.Tick(now, func(link int8) (least, most time.Duration) {
		if probe(link) {
			return Seldom, Seldom
		}
		return 0, 0
	})
}

// Tried reports the result of a probe that Tick asked for.
func (b *Boards) Tried(now time.Time, p Probe, a Answer) {
	b.unban(now, p.Link, func() { b.all.Probed(now, p, a) })
}

// unban calls do, which may change the verdicts for everybody. If that brings the link up, all origins may try it
// again.
func (b *Boards) unban(now time.Time, link int8, do func()) {
	was, _ := b.all.State(link)
	do()
	if is, _ := b.all.State(link); is != Up || was == Up {
		return
	}
	for _, own := range b.each {
		own.reach(now, link)
	}
}
