package schedule

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/segment"
)

// Alg3 is Algorithm 3 of Skjolden 2019 (section 4.3.5) with guards. A request is the link's share, by throughput, of a
// cap that grows with the throughput of all links, and never less than the link has in flight (its bandwidth-delay
// product). The next request is sent when 60 % of the last one has arrived (section 4.2.2), so that the link does not
// fall idle.
//
// It needs the throughput, capacity (observed peak) and round-trip time of each link. It wins where links differ and
// change slowly; it fails where throughput is misjudged, since its requests are long.
//
// The guards fill gaps in the formulas (package literature has them as printed): sizes follow the remaining bytes, not
// the whole object; the floor is 2.5 x BDP, because at 1 x BDP a trigger of 60 % leaves a gap of 0.6 RTT; a range is at
// most as long as the link's share of an eighth of the reorder window and 200 ms of its goodput; a link that runs dry
// earlier requests earlier; and at the end the faster link takes the tail of the slower one (Nikravesh 2018, equation
// 6.1).
type Alg3 struct{}

// FirstSize is the length in bytes of the first range of a link about which nothing is known.
const FirstSize = 256 << 10

const (
	issueAt  = 0.6 // share of a range after which the next one is requested
	outstand = 2   // concurrent requests on a link, which follow from the 60 % rule
	bdpFloor = 2.5 // floor of a range in BDP: 1 / (1 - issueAt)
	// a range takes at most its share of this part of the window: two per link and room to run ahead
	windowDiv = 8
	// longest range, at the link's goodput: bytes that a dead link owes delay the client
	longest = 200 * time.Millisecond
)

// Next implements Scheduler.
func (s *Alg3) Next(now time.Time, v *View) Decision {
	for i := range v.Links {
		if l := &v.Links[i]; l.Usable && l.CanAsk && s.due(v, int8(i)) {
			if d, ok := s.fetch(v, int8(i)); ok {
				return d
			}
		}
	}
	return wait(s.until(now, v))
}

// due reports whether another range should be requested on link i now.
func (s *Alg3) due(v *View, i int8) bool {
	l, n := &v.Links[i], v.Newest(i)
	switch {
	case n == nil || l.Blocked:
		return true
	case n.Stolen:
		return false
	case l.Running < outstand && float64(n.Cursor-n.Range.Start) >= issueAt*float64(n.Range.Len()):
		return true
	}
	return l.Due() && l.Running < 2*outstand
}

// until returns when the first of the busy links runs dry at its current rate.
func (s *Alg3) until(now time.Time, v *View) time.Time {
	var at time.Time
	for i := range v.Links {
		l := &v.Links[i]
		if l.Usable {
			at = Earlier(at, l.Dry(now))
		}
	}
	return at
}

func (s *Alg3) fetch(v *View, i int8) (Decision, bool) {
	r, ok := v.FirstFree()
	if !ok {
		if d, ok := stealOversize(v, i, s.size); ok {
			return d, true
		}
		if len(v.Free) > 0 {
			return Decision{}, false // the window is full: no need to move running ranges
		}
		return StealTail(v, i)
	}
	n, rule := s.size(v, i, v.free())
	if room := v.Limit - r.Start; n > room && room < r.Len() {
		if room < min(n, v.Window)/4 && r.Start > v.Offset {
			return Decision{}, false // wait for room rather than request slivers; the next offset cannot wait
		}
		n, rule = room, Window
	}
	if n >= r.Len() || r.Len()-n < n/4 {
		n, rule = r.Len(), Rest
	}
	return Decision{Do: Fetch, Link: i, Range: segment.Range{Start: r.Start, End: r.Start + n}, Rule: rule}, true
}

// size returns the length of the next range for link i when rem bytes have not been requested yet.
func (s *Alg3) size(v *View, i int8, rem int64) (int64, Rule) {
	l := &v.Links[i]
	if l.Rate == 0 {
		return min(FirstSize, max(rem, 1)), First
	}
	p := v.Params(i, rem)
	p.Floor = bdpFloor
	size, rule := p.Size()
	// Unlike the paper's downloader, a proxy holds early bytes in bounded memory.
	most := min(int64(float64(v.Window)/windowDiv*l.Rate/p.SumThroughput),
		max(int64(l.Rate*longest.Seconds()), p.floor()))
	least := min(StealMin, v.Window/windowDiv)
	switch {
	case size > most:
		size, rule = max(most, min(hedgeMin, v.Window/windowDiv)), Window
	case size < least: // short ranges lower the rate, and a lower rate would shorten them further
		size, rule = least, Floor
	}
	return max(size, 1), rule
}
