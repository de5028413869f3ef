package schedule

import (
	"cmp"
	"time"

	"github.com/tributary-http/tributary/internal/core/segment"
)

// Ranges of connections that the origin limits are long: it may count requests, and each connection is slow.
const (
	limitedTime  = 2 * time.Second // length of a range, in goodput of its connection
	limitedLeast = 200 * time.Millisecond

	// worthCutting is how much earlier a range that arrives must end if another connection takes its end: over HTTP/1.1
	// that costs its connection, and the bytes under way.
	worthCutting = 500 * time.Millisecond
)

// limited returns how many connections the links are worth if the origin limits each to so many bytes per second.
func (v *View) limited(each float64) (n float64) {
	for i := range v.Links {
		switch l := &v.Links[i]; {
		case !l.Usable:
		case l.Each > 0:
			n += float64(l.Conns)
		default:
			n += l.Rate / each
		}
	}
	return max(n, 1)
}

// askLimited chooses the next range for a connection of link i, where the origin limits each connection: a part of the
// free bytes, so that all connections end together, and of the window, so that none waits for room.
func askLimited(v *View, i int8, free float64) (Decision, bool) {
	f, ok := v.FirstFree()
	if !ok {
		return Decision{}, false
	}
	l := &v.Links[i]
	conns := v.limited(l.Each)
	n := min(l.Each*limitedTime.Seconds(), free/conns, float64(v.Window)/2/conns)
	n = max(n, l.Each*limitedLeast.Seconds(), least(v))
	r := segment.Range{Start: f.Start, End: min(f.End, f.Start+int64(n))}
	if float64(f.End-r.End) < least(v) {
		r.End = f.End
	}
	return Decision{
		Do:    Fetch,
		Link:  i,
		Range: r,
		Rule:  Limited,
	}, true
}

// stealLimited gives a connection that has nothing to do a part of what another one would deliver late: all of a range
// that waits for others, or the end of the range that arrives.
func stealLimited(v *View) (Decision, bool) {
	if _, ok := v.FirstFree(); ok {
		return Decision{}, false
	}
	for i := range seen(v) {
		if l := &v.Links[i]; l.Usable && l.CanAsk && l.Each > 0 {
			if d, ok := stealLate(v, int8(i)); ok {
				return d, true
			}
		}
	}
	return Decision{}, false
}

// stealLate is stealLimited for a connection of link i.
func stealLate(v *View, i int8) (Decision, bool) {
	l := &v.Links[i]
	most := late.Seconds()
	var d Decision
	for k := range v.Attempts {
		a := &v.Attempts[k]
		each := cmp.Or(v.Links[a.Link].Each, v.Links[a.Link].Rate)
		if a.Stolen || a.Hedged || a.Hedge || a.Silent || each == 0 || a.Range.Start >= v.Limit {
			continue
		}
		left, end := float64(a.Left()), float64(v.owedUntil(k))/each
		n := left // it waits
		if a.HasHead {
			n = min(left, max(0, end-l.RTT.Seconds())/(1/each+1/l.Each))
		}
		gain := end - l.RTT.Seconds() - n/l.Each
		if gain <= most || n < StealMin || a.HasHead && gain < worthCutting.Seconds() {
			continue
		}
		r := segment.Range{Start: a.Range.End - int64(n), End: a.Range.End}
		if r.Start = min(r.Start, v.Limit-1); r.Start <= a.Cursor && a.HasHead {
			continue
		}
		r.End = min(r.End, r.Start+int64(l.Each*limitedTime.Seconds()))
		d = Decision{
			Do:    Fetch,
			Link:  i,
			Range: r,
			From:  a.ID,
			Rule:  Steal,
		}
		most = gain
	}
	return d, d.Do == Fetch
}

// owedUntil returns how many bytes the connection of attempt k has to deliver until that attempt ends.
func (v *View) owedUntil(k int) (n int64) {
	for j := range v.Attempts[:k+1] {
		if a := &v.Attempts[j]; a.Conn == v.Attempts[k].Conn {
			n += a.Left()
		}
	}
	return n
}
