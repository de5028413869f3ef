package health

import (
	"slices"
	"time"
)

// State is the state of a link.
type State uint8

// The states of a link. Down comes first: a link that was never seen is down.
const (
	Down State = iota
	Up
	Suspect
	Banned
	Probing
)

var stateNames = [...]string{"down", "up", "suspect", "banned", "probing"}

func (s State) String() string { return stateNames[s] }

// Cause is the reason why a link left the state Up.
type Cause uint8

// The causes.
const (
	NoCause    Cause = iota
	Gone             // the interface or its address went away
	Silence          // no byte although some were due
	DialFailed       // no connection to an origin that is otherwise reachable
	BindFailed       // the socket could not be bound to the link
	TooSlow          // found by the SlowCheck
	NoGain           // the total is the same without it (Contention)
)

var causes = [...]struct{ name, text string }{
	Gone:       {"gone", "its interface or address is gone"},
	Silence:    {"silence", "it is silent"},
	DialFailed: {"dial_failed", "it does not connect to this server"},
	BindFailed: {"bind_failed", "this machine does not let it be used"},
	TooSlow:    {"too_slow", "too slow: the other links would wait for it (slow = \"off\" uses it anyway)"},
	NoGain:     {"no_gain", "it does not add speed; it seems to share a channel or line with another link"},
}

func (c Cause) String() string { return causes[c].name }

// Text says to people why a link is in its state.
func (c Cause) Text() string { return causes[c].text }

const (
	lonelyProbe  = time.Second     // between probes while no link is up
	probeTimeout = 2 * time.Second // for the answer to a probe that is not quick
	forgiven     = time.Minute     // of good behaviour, which makes the next ban as short as the first

	// Many links return within seconds. For quickFor after a link fails, each probe is a new packet: the kernel repeats
	// a lost one only after a second, and then at growing intervals. quickTimeout is a little less than that second.
	// Probes become rarer as the failure lasts: once the link returns, it is found within the duration of the failure
	// divided by rarity. Probes are lost while the link is dead, and the first answer ends them, so that the origin
	// sees one or two.
	quickFor     = 10 * time.Second
	quickTimeout = 950 * time.Millisecond
	rarity       = 8
	maxProbes    = 16 // of a link, under way at the same time
)

// Seldom is the pace of a link that gets no extra probes right after it failed.
const Seldom = quickFor

// Pace returns the minimum and the maximum time between two probes of a link that failed recently, 0 if no running
// transfer may use the link.
type Pace func(link int8) (least, most time.Duration)

// Probe is one attempt to find out whether a link leads somewhere: a handshake.
type Probe struct {
	Link int8
	At   time.Time     // when Tick asked for it
	For  time.Duration // how long to wait for the answer

	quick bool // sent within quickFor of a failure
}

// Quick reports whether p is one of many probes, so that a single packet is enough.
func (p Probe) Quick() bool { return p.quick }

// Answer is the result of a Probe.
type Answer uint8

// The results.
const (
	NoAnswer Answer = iota
	Answered
	NotSent // the probe could not be made, which says nothing about the link
)

// waits returns the time before the first probe of a ban, and the maximum time between two probes. A link that works
// but does not help is tried less often, because each trial costs something.
func waits(c Cause) (first, most time.Duration) {
	switch c {
	case TooSlow:
		return 5 * time.Second, 30 * time.Second
	case NoGain:
		return 10 * time.Second, 5 * time.Minute
	}
	return time.Second, 30 * time.Second
}

// Change is a change of a link's state.
type Change struct {
	Link  int8
	State State
	Cause Cause
}

type entry struct {
	state   State
	cause   Cause
	since   time.Time     // of the present state
	failed  time.Time     // when it was last up
	wait    time.Duration // before the next probe of a ban
	probeAt time.Time
	probes  []Probe   // under way, oldest first (quick ones, and those of a lonely suspect, do not change the state)
	probed  time.Time // when the last one began
	lost    bool      // a probe was not answered since the link failed
	reached bool      // a probe was answered, and none was lost
	bans    int
	speed   speed
}

// Board holds the state of every link, for one origin or for everybody. The zero value has no links.
type Board struct {
	links   []entry
	changes []Change
}

// State returns the state of a link and why it is in it.
func (b *Board) State(link int8) (State, Cause) {
	if int(link) >= len(b.links) {
		return Down, NoCause
	}
	e := &b.links[link]
	return e.state, e.cause
}

// Bans returns how often a link was banned.
func (b *Board) Bans(link int8) int { return b.links[link].bans }

// Present reports that a link exists (its interface is up, with address and route) or no longer does. A link that comes
// back is up at once; so are all banned links when the last other link goes away.
func (b *Board) Present(now time.Time, link int8, here bool) {
	for int(link) >= len(b.links) {
		b.links = append(b.links, entry{})
	}
	e := &b.links[link]
	switch {
	case !here && e.state != Down:
		b.set(now, link, Down, Gone)
		if !b.others(link) {
			b.unbanAll(now)
		}
	case here && e.state == Down:
		e.wait = 0
		b.set(now, link, Up, NoCause)
	}
}

// Silent reports that a transfer waits for bytes that are overdue from a link.
func (b *Board) Silent(now time.Time, link int8) {
	if e := &b.links[link]; e.state == Up {
		b.set(now, link, Suspect, Silence)
	}
}

// Alive reports that a link delivered a byte.
func (b *Board) Alive(now time.Time, link int8) {
	e := &b.links[link]
	switch {
	case e.state == Suspect, e.state == Banned && e.cause == Silence, e.state == Probing && e.cause == Silence:
		b.set(now, link, Up, NoCause)
	}
}

// Failed reports that no connection could be made over a link although its origin is reachable otherwise, or that a
// socket could not be bound to it.
func (b *Board) Failed(now time.Time, link int8, c Cause) {
	if e := &b.links[link]; e.state == Up || e.state == Suspect {
		b.ban(now, link, c)
	}
}

// LeaveOut bans a link that does not increase the goodput of the others, if another one is up.
func (b *Board) LeaveOut(now time.Time, link int8) {
	for i := range b.links {
		if int8(i) != link && b.links[i].state == Up && b.links[link].state == Up {
			b.ban(now, link, NoGain)
		}
	}
}

// TakeBack ends the ban of LeaveOut, because the link is needed.
func (b *Board) TakeBack(now time.Time, link int8) {
	if e := &b.links[link]; e.cause == NoGain {
		b.set(now, link, Up, NoCause)
	}
}

// Probed reports the result of a probe.
//
// A link is back if an earlier probe was lost. If none was, the link may never have been away: the origin stalls, or
// only one connection does. So the first answer alone neither ends a suspicion nor justifies more frequent probes.
func (b *Board) Probed(now time.Time, p Probe, a Answer) {
	e := &b.links[p.Link]
	i := slices.Index(e.probes, p)
	if i < 0 { // the link has been up or down since
		return
	}
	e.probes = slices.Delete(e.probes, i, i+1)
	switch {
	case a == NotSent && p.quick:
	case a == NoAnswer:
		switch e.lost = true; e.state {
		case Probing:
			_, most := waits(e.cause)
			e.wait = min(2*e.wait, most)
			e.probeAt = now.Add(e.wait)
			b.set(now, p.Link, Banned, e.cause)
		case Suspect:
			e.probeAt = now.Add(lonelyProbe)
		}
	case !p.quick || e.lost || i > 0: // i > 0: it overtook an earlier one
		b.set(now, p.Link, Up, NoCause)
	default:
		e.reached = true
	}
}

// Failing reports whether a link exists but is not up.
func (b *Board) Failing(link int8) bool {
	s, _ := b.State(link)
	return s != Up && s != Down
}

// Lasting reports whether a link has been failing for at least as long as a suspicion may last, even if it is not
// banned because it is the last one.
func (b *Board) Lasting(now time.Time, link int8) bool {
	return b.Failing(link) && !now.Before(b.links[link].failed.Add(BanAfter))
}

// Tick does the work due at now. It returns the probes to make and the next deadline, zero if there is none. The caller
// reports the result of each probe with Probed. A banned link is not probed while nothing waits for it.
func (b *Board) Tick(now time.Time, pace Pace) (probes []Probe, next time.Time) {
	earliest := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for i := range b.links {
		e, link := &b.links[i], int8(i)
		if e.state == Suspect {
			if at := e.since.Add(BanAfter); now.Before(at) {
				earliest(at)
			} else if b.others(link) {
				b.ban(now, link, e.cause)
			}
		}
		if e.state != Banned && e.state != Suspect {
			continue
		}
		least, most := pace(link)
		quick := most < Seldom && !e.reached && now.Before(e.failed.Add(quickFor))
		at, due := b.probeAt(now, e, quick, e.gap(least, most))
		switch {
		case most == 0 || !due:
		case now.Before(at):
			earliest(at)
		case e.cause == NoGain: // it works
			b.set(now, link, Up, NoCause)
		default:
			p := Probe{Link: link, At: now, For: probeTimeout}
			e.probed = now
			if quick {
				p.For, p.quick = quickTimeout, true
				earliest(now.Add(e.gap(least, most)))
			}
			e.probes = append(e.probes, p)
			if e.state == Banned && !quick {
				b.set(now, link, Probing, e.cause)
			}
			probes = append(probes, p)
		}
	}
	return probes, next
}

// gap returns the time between the last quick probe and the next one.
func (e *entry) gap(least, most time.Duration) time.Duration {
	return min(most, max(least, e.probed.Sub(e.failed)/rarity))
}

// probeAt returns when to probe a banned or suspected link. due is false if the result of a probe under way, or the end
// of a suspicion, must come first.
func (b *Board) probeAt(now time.Time, e *entry, quick bool, every time.Duration) (at time.Time, due bool) {
	if quick {
		if e.probed.Before(e.failed) {
			return e.failed, len(e.probes) < maxProbes
		}
		return e.probed.Add(every), len(e.probes) < maxProbes
	}
	if len(e.probes) > 0 || e.state == Suspect && now.Before(e.since.Add(BanAfter)) {
		return time.Time{}, false
	}
	if !b.anyUp() { // nothing to lose: ask often
		e.probeAt = minTime(e.probeAt, now.Add(lonelyProbe))
	}
	return e.probeAt, true
}

// hurry makes the next probe of a link due at once, unless the link has answered one.
func (b *Board) hurry(now time.Time, link int8) {
	if e := &b.links[link]; !e.reached {
		e.probed, e.probeAt = time.Time{}, now
	}
}

// reach ends the suspicion or the ban of a link that works after all.
func (b *Board) reach(now time.Time, link int8) {
	if s := b.links[link].state; s == Suspect || s == Banned || s == Probing {
		b.set(now, link, Up, NoCause)
	}
}

// Changes returns the changes since the last call, oldest first; valid until the next call of any method.
func (b *Board) Changes() []Change {
	c := b.changes
	b.changes = b.changes[:0]
	return c
}

func (b *Board) ban(now time.Time, link int8, c Cause) {
	if !b.others(link) {
		if b.links[link].state == Up { // the last link is only suspected
			b.set(now, link, Suspect, c)
		}
		return
	}
	b.set(now, link, Banned, c)
	e := &b.links[link]
	e.bans++
	first, most := waits(c)
	e.wait = max(first, min(2*e.wait, most))
	e.probeAt = now.Add(e.wait)
	e.reached = e.reached || c == TooSlow || c == NoGain // it works: there is nothing to find out soon
}

// unbanAll ends all bans, because only the last link is left.
func (b *Board) unbanAll(now time.Time) {
	for i := range b.links {
		if s := b.links[i].state; s == Banned || s == Probing {
			b.set(now, int8(i), Up, NoCause)
		}
	}
}

func (b *Board) set(now time.Time, link int8, s State, c Cause) {
	e := &b.links[link]
	if e.state == Up {
		e.failed = now
		if now.Sub(e.since) >= forgiven {
			e.wait = 0
		}
	}
	e.speed = speed{}
	if s == Up && e.cause == TooSlow {
		e.speed.debt = hindrance.Seconds()
	}
	e.state, e.cause, e.since = s, c, now
	if s == Down || s == Up {
		e.probes, e.lost, e.reached = nil, false, false
	}
	b.changes = append(b.changes, Change{link, s, c})
	if !b.anyUp() { // links that were left out are needed now
		for i := range b.links {
			b.TakeBack(now, int8(i))
		}
	}
}

// others reports whether a link other than this one could carry bytes: up, or a suspect that may recover.
func (b *Board) others(link int8) bool {
	for i := range b.links {
		if s := b.links[i].state; int8(i) != link && (s == Up || s == Suspect) {
			return true
		}
	}
	return false
}

func (b *Board) anyUp() bool {
	for i := range b.links {
		if b.links[i].state == Up {
			return true
		}
	}
	return false
}

func minTime(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
