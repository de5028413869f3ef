package schedule

import (
	"math"
	"time"

	"github.com/tributary-http/tributary/internal/core/segment"
)

// Confluence is Tributary's own scheduler. It requests several short ranges on every link, so that no link falls idle
// and each owes little at any moment. It chooses each range so that it lies at the next offset when it arrives: a link
// skips the bytes that the others will have delivered by then. Near the end it divides the rest so that all links end
// at the same instant, from estimates that it rebuilds before every request.
//
// It needs the goodput and round-trip time of each link. It wins wherever requests can be pipelined (HTTP/1.1) or
// multiplexed (HTTP/2), and holds few bytes out of order. It sends more requests than schemes with long ranges, and if
// a server takes one request at a time, each range costs a round trip.
type Confluence struct {
	grown [maxLinks]growth
	rate  [maxLinks]float64 // expected rate of each link in bytes per second; a guess if nothing is known
	at    [maxLinks]float64 // seconds from now until the first byte of a request sent now
	held  [maxLinks]float64 // goodput in bytes per second that outlasts a pause, since many pauses end in a burst
	each  float64           // length of a range, in seconds of its link's goodput
	when  time.Time         // time of the last update
	calm  time.Time         // ranges may grow from then on
}

// growth records how the goodput of a link changed in the last round trip.
type growth struct {
	since   time.Time
	rate    float64
	settled bool // goodput no longer grows as in slow start
}

const (
	maxLinks = 32 // further links are not used

	pieceTime  = 80 * time.Millisecond  // length of a range, at the link's goodput
	longTime   = 400 * time.Millisecond // the same while the end is far
	farPieces  = 64                     // the end is far if more such ranges for each link are left
	calmTime   = 2 * time.Second        // for this long every link must have delivered before ranges grow
	growPieces = 16                     // then they grow by one second in so many
	aheadTime  = 60 * time.Millisecond  // goodput requested beyond two round trips, so that the link does not run dry
	// a range takes at least this many times the origin's think time before each answer
	thoughts   = 4
	setups     = 16       // a range takes at least this many times its share of setting up a connection
	mostPieces = 6        // approximate maximum outstanding on a connection: transfers allow 8 requests
	leastPiece = 16 << 10 // bytes
	// for objects of this size or larger, the origin is spared requests for less than 64 KiB
	manyBytes = 16 << 20

	unknownRTT  = 100 * time.Millisecond
	unknownRate = 1e6       // bytes per second
	firstPiece  = 128 << 10 // bytes; few requests may be outstanding while pipelining is not known to work
	startUp     = 64 << 10  // bytes outstanding on a link in slow start, in addition to twice its delivered bytes
	mostStartUp = 256 << 10

	growthTime  = 50 * time.Millisecond // minimum time between two samples of a link's growth
	growthLeast = 1.2                   // minimum growth per round trip in slow start
	foresight   = 1.5                   // future rate of a link in slow start, relative to its goodput until now

	endTime = time.Second // when this much of all links' goodput is left, the rest is divided among them
	// a tail that ends this long after this link could begin to help is worth stealing
	late     = 150 * time.Millisecond
	copyCost = 2                      // stealing the whole object would have to gain this many times more
	holding  = 500 * time.Millisecond // time in which the held goodput falls to 1/e
)

// Next implements Scheduler.
func (c *Confluence) Next(now time.Time, v *View) Decision {
	c.watch(now, v)
	tight := c.plan(now, v)
	var asked uint32
	var rule Rule
	for range v.Links {
		i := c.earliest(v, asked)
		if i < 0 {
			break
		}
		asked |= 1 << i
		if !c.hungry(v, i, tight) {
			continue
		}
		d, ok := c.ask(v, i, tight)
		if ok {
			return d
		}
		rule = d.Rule
	}
	if d, ok := stealLimited(v); ok {
		return d
	}
	if len(v.Free) > 0 {
		return Decision{Do: Wait, Rule: rule}
	}
	return c.steal(v, tight)
}

// steal moves bytes from one link to another when nothing is left to request: out of the client's own GET, which covers
// the whole object, or, at the end, bytes that would arrive late.
func (c *Confluence) steal(v *View, tight float64) Decision {
	size := func(v *View, i int8, rest int64) (int64, Rule) {
		n, rule := c.piece(v, i, tight)
		return min(int64(n), rest), rule
	}
	last := c.last(v)
	for i := range seen(v) {
		l := &v.Links[i]
		if !l.Usable || !l.CanAsk || !l.Due() || l.Each > 0 {
			continue
		}
		if d, ok := stealOversize(v, int8(i), size); ok {
			return d
		}
		if gain := last - c.at[i]; gain > late.Seconds() {
			// The larger the copy is relative to the object, the more it must gain.
			if d, ok := StealTail(v, int8(i)); ok &&
				gain > late.Seconds()*(1+copyCost*float64(d.Range.Len())/float64(v.Object.Len())) {
				return d
			}
		}
	}
	return wait(time.Time{})
}

// watch finds the links that are still in slow start, where goodput doubles with each round trip, and updates the held
// goodput.
func (c *Confluence) watch(now time.Time, v *View) {
	k := math.Exp(-now.Sub(c.when).Seconds() / holding.Seconds())
	c.when = now
	for i := range seen(v) {
		l, g := &v.Links[i], &c.grown[i]
		c.held[i] = max(k*c.held[i], l.Rate)
		switch {
		case l.Rate == 0 || l.Got == 0 || l.Recalled:
		case g.since.IsZero():
			g.since, g.rate = now, l.Rate
		case now.Sub(g.since) >= max(l.RTT, growthTime):
			g.settled = l.Rate < growthLeast*g.rate
			g.since, g.rate = now, l.Rate
		}
	}
}

// plan estimates when each link could deliver something new, and returns the factor by which ranges must shrink so that
// the outstanding bytes of all links fit into the window.
func (c *Confluence) plan(now time.Time, v *View) (tight float64) {
	var need, sum, known float64
	for i := range seen(v) {
		if l := &v.Links[i]; l.Usable && l.Rate > 0 {
			sum += l.Rate
			known++
		}
	}
	for i := range seen(v) {
		l := &v.Links[i]
		switch c.rate[i] = l.Rate; {
		case l.Rate > 0:
		case known > 0:
			c.rate[i] = sum / known
		default:
			c.rate[i] = unknownRate
		}
		rtt := l.RTT.Seconds()
		if rtt == 0 {
			rtt = unknownRTT.Seconds()
		}
		if !c.grown[i].settled && l.Rate > 0 {
			c.rate[i] *= foresight
		}
		c.at[i] = max(rtt, 2*l.Setup.Seconds(), float64(l.Asked)/c.rate[i])
		if l.Usable {
			need += l.Rate * (2*l.RTT + aheadTime + pieceTime).Seconds()
		}
	}
	c.each = c.length(now, v, need)
	return min(1, 0.9*float64(v.Window)/max(need, 1))
}

// length returns the length of a range, in seconds of its link's goodput. Long ranges spare the origin requests, but
// they must leave the other links room in the window, and end long before the transfer does. A hedge waits behind them,
// so they grow only while every link delivers. need is the part of the window that is in use anyway.
func (c *Confluence) length(now time.Time, v *View, need float64) float64 {
	rate, settled := 0., true
	for i := range seen(v) {
		l := &v.Links[i]
		if l.Suspect || l.Usable && l.Got < firstPiece {
			c.calm = now.Add(calmTime)
		}
		settled = settled && (c.grown[i].settled || !l.Usable)
		if l.Usable {
			rate += c.rate[i]
		}
	}
	if !settled {
		return pieceTime.Seconds()
	}
	least, left, room := pieceTime.Seconds(), float64(v.Object.End-v.Offset), float64(v.Window)/2-need
	return max(least, min(longTime.Seconds(), left/rate/farPieces, least+room/rate,
		least+now.Sub(c.calm).Seconds()/growPieces))
}

// seen returns the links that Confluence uses.
func seen(v *View) []Link { return v.Links[:min(len(v.Links), maxLinks)] }

// earliest returns the link, among those not yet tried, that can deliver something new first; -1 if there is none.
func (c *Confluence) earliest(v *View, tried uint32) int8 {
	best := int8(-1)
	for i := range seen(v) {
		l := &v.Links[i]
		if l.Usable && l.CanAsk && tried&(1<<i) == 0 && (best < 0 || c.at[i] < c.at[best]) {
			best = int8(i)
		}
	}
	return best
}

// hungry reports whether the bytes requested on a link are too few to keep it busy until the next request can take
// effect.
func (c *Confluence) hungry(v *View, i int8, tight float64) bool {
	l := &v.Links[i]
	if l.Running == 0 || l.Blocked || l.Each > 0 {
		return true
	}
	target := c.target(v, i, tight)
	if l.Recalled { // a missing part would be rounded up to the shortest range and distort the ratio
		target -= least(v) / 2
	}
	return float64(l.Asked) < target
}

// target returns how many bytes should be outstanding on a link.
func (c *Confluence) target(v *View, i int8, tight float64) float64 {
	l := &v.Links[i]
	n := l.Rate * (max(l.RTT, l.Setup).Seconds() + tight*(l.RTT+aheadTime).Seconds())
	switch {
	case c.grown[i].settled:
		return n
	case l.Recalled: // in the ratio of the rates: links with shorter round trips get more requests than they need
		return min(2*l.Rate*c.turn(v, tight), max(c.share(v, i)*float64(v.Window)/2, n))
	default:
		return min(max(min(startUp+2*float64(l.Got), mostStartUp)*tight, 2*n),
			max(c.share(v, i)*float64(v.Window)/2, n))
	}
}

// turn returns the seconds of goodput that keep the link with the longest round trip busy.
func (c *Confluence) turn(v *View, tight float64) (t float64) {
	for i := range seen(v) {
		if l := &v.Links[i]; l.Usable {
			t = max(t, l.RTT.Seconds()+tight*(l.RTT+aheadTime).Seconds())
		}
	}
	return t
}

// share returns a link's share of all goodput.
func (c *Confluence) share(v *View, i int8) float64 {
	var sum float64
	for j := range seen(v) {
		if v.Links[j].Usable {
			sum += c.rate[j]
		}
	}
	return c.rate[i] / max(sum, c.rate[i])
}

// piece returns the length of a range for a link while the end is not near.
func (c *Confluence) piece(v *View, i int8, tight float64) (float64, Rule) {
	l := &v.Links[i]
	if l.Got < firstPiece { // pipelining is not known to work: few requests may be outstanding
		n := min(firstPiece*tight, float64(v.Object.Len())/8)
		if l.Recalled {
			n = c.recalled(v, i, n, tight)
		}
		return max(n, least(v)), First
	}
	n := max(l.Rate*c.each*tight, c.target(v, i, tight)/mostPieces, l.Peak*thoughts*l.Think.Seconds())
	if l.Setup > 0 { // each new connection starts slowly, too
		room := float64(v.Window)
		if share := c.share(v, i); share < 1 {
			room *= share / 2 // for the range behind this one, too
		}
		n = max(n, min(l.Peak*setups*l.Setup.Seconds(), room))
	}
	if least := least(v); n < least {
		return least, Floor
	}
	return n, Piece
}

// recalled returns the length of a range for a link whose rate is remembered: n for the fastest link and less for
// others, so that equal numbers of ranges are in the ratio of the rates. It never exceeds the bytes missing from the
// link's target.
func (c *Confluence) recalled(v *View, i int8, n, tight float64) float64 {
	l := &v.Links[i]
	fastest := l.Rate
	for j := range seen(v) {
		if v.Links[j].Usable {
			fastest = max(fastest, v.Links[j].Rate)
		}
	}
	return min(max(n*l.Rate/fastest, least(v)), c.target(v, i, tight)-float64(l.Asked))
}

// least returns the shortest range worth a request.
func least(v *View) float64 {
	n := leastPiece
	switch size := v.Object.Len(); {
	case size >= manyBytes:
		n = 4 * leastPiece
	case size >= manyBytes/4:
		n = 2 * leastPiece
	}
	return float64(max(1, min(int64(n), v.Window/16)))
}

// ask chooses the next range for link i.
func (c *Confluence) ask(v *View, i int8, tight float64) (Decision, bool) {
	free := float64(v.free())
	if free == 0 {
		return Decision{}, false
	}
	if v.Links[i].Each > 0 {
		return askLimited(v, i, free)
	}
	n, rule := c.piece(v, i, tight)
	least := least(v)
	if part := c.part(v, i, free); n > part {
		if part < least/2 && !c.first(v, i) {
			return Decision{Rule: OtherLink}, false // the others will have delivered all of it
		}
		n, rule = max(part, least), Share
	}
	r, ok := c.place(v, i, int64(n), int64(least))
	if !ok {
		return Decision{}, false
	}
	return Decision{Do: Fetch, Link: i, Range: r, Rule: rule}, true
}

// first reports whether no usable link can deliver something new before link i.
func (c *Confluence) first(v *View, i int8) bool {
	for j := range seen(v) {
		if v.Links[j].Usable && c.at[j] < c.at[i] {
			return false
		}
	}
	return true
}

// part returns how many of the free bytes link i can deliver before all links end together.
func (c *Confluence) part(v *View, i int8, free float64) float64 {
	var in [maxLinks]bool
	var rate, work float64 // over the links that take part: the sum of their rates, and the sum of rate times at
	for j := range seen(v) {
		if v.Links[j].Usable {
			in[j] = true
			rate += c.rate[j]
			work += c.rate[j] * c.at[j]
		}
	}
	if free > rate*endTime.Seconds() {
		return free
	}
	for {
		end, out := (free+work)/rate, false
		for j := range in {
			if in[j] && c.at[j] >= end {
				in[j], out = false, true
				rate -= c.rate[j]
				work -= c.rate[j] * c.at[j]
			}
		}
		if !in[i] {
			return 0
		}
		if !out {
			return c.rate[i] * (end - c.at[i])
		}
	}
}

// last returns the seconds until the last link ends, if nothing more is requested.
func (c *Confluence) last(v *View) (end float64) {
	for i := range seen(v) {
		end = max(end, float64(v.Links[i].Asked)/max(c.rate[i], c.held[i]))
	}
	return end
}

// place finds n free bytes for link i, after those that the other links will have delivered when its answer begins.
func (c *Confluence) place(v *View, i int8, n, least int64) (segment.Range, bool) {
	var ahead float64
	for j := range seen(v) {
		if l := &v.Links[j]; int8(j) != i && l.Usable && l.Rate > 0 && c.at[j] < c.at[i] {
			ahead += c.rate[j] * (c.at[i] - c.at[j])
		}
	}
	skip := int64(ahead) / least * least
	if v.Free[0].Start <= v.Offset {
		skip = 0 // the client waits for it, and no link that could request it sooner does
	}
	for k, f := range v.Free {
		if f.Start >= v.Limit {
			break
		}
		last := k == len(v.Free)-1 || v.Free[k+1].Start >= v.Limit
		if skip >= f.Len() && !last {
			skip -= f.Len()
			continue
		}
		r := f
		r.Start = min(f.Start+skip, max(f.Start, min(f.End, v.Limit)-n))
		if r.Start-f.Start < least {
			r.Start = f.Start
		}
		r.End = r.Start + n
		if r.End > v.Limit && f.End > v.Limit {
			r.End = v.Limit
		}
		if r.End == v.Limit && r.Len() < least && r.Start > v.Offset { // wait for room rather than request slivers
			if k == 0 {
				return segment.Range{}, false
			}
			f = v.Free[0]
			r = segment.Range{Start: f.Start, End: f.Start + n}
		}
		if f.End-r.End < least {
			r.End = f.End
		}
		return r, true
	}
	return segment.Range{}, false
}
