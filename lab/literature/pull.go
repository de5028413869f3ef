package literature

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// wait returns the decision of a scheduler that has nothing to do. A scheduler that leaves a link idle although it
// could fetch something also sets Rule.
func wait(until time.Time) schedule.Decision {
	return schedule.Decision{Do: schedule.Wait, Until: until}
}

// asking defines when a busy link gets its next range.
type asking struct {
	depth int     // concurrent ranges on a link
	after float64 // share of the newest range that must have arrived before
}

var (
	oneByOne   = asking{depth: 1}                        // the next range when the last one has arrived
	overlapped = asking{depth: outstand, after: issueAt} // Skjolden 2019 section 4.2.2
	pipelined  = asking{depth: pipelineDepth}            // Evensen 2011 section 4.1.2
)

const (
	outstand = 2   // concurrent requests on a link, which follow from the 60 % rule
	issueAt  = 0.6 // share of a range after which the next one is requested
)

const pipelineDepth = 2 // enough as long as ranges are not shorter than S_min (Evensen 2011 section 4.1.2)

// due reports whether another range should be requested on link i now.
func (a asking) due(v *schedule.View, i int8) bool {
	l, n := &v.Links[i], v.Newest(i)
	switch {
	case n == nil || l.Blocked:
		return true
	case n.Stolen || l.Running >= a.depth:
		return false
	}
	return float64(n.Cursor-n.Range.Start) >= a.after*float64(n.Range.Len())
}

// next returns the link for the next request: the due link with the fewest ranges, so that at the start consecutive
// ranges go to different links (interleaved start, Evensen 2011 section 4.1.2); -1 if none is due.
func (a asking) next(v *schedule.View) int8 {
	best := int8(-1)
	for i := range v.Links {
		l := &v.Links[i]
		if l.Usable && l.CanAsk && a.due(v, int8(i)) && (best < 0 || l.Running < v.Links[best].Running) {
			best = int8(i)
		}
	}
	return best
}

// pull gives the next free range to a link that is due; size returns its length in bytes.
func pull(v *schedule.View, a asking, size func(v *schedule.View, link int8) (int64, schedule.Rule)) schedule.Decision {
	r, ok := v.FirstFree()
	if !ok {
		return wait(time.Time{})
	}
	i := a.next(v)
	if i < 0 {
		return wait(time.Time{})
	}
	n, rule := size(v, i)
	if n >= r.Len() {
		n, rule = r.Len(), schedule.Rest
	}
	return schedule.Decision{
		Do: schedule.Fetch, Link: i, Range: segment.Range{Start: r.Start, End: r.Start + max(n, 1)}, Rule: rule,
	}
}

// share returns the link's part of the goodput of all usable links; ok is false while the link's own goodput is
// unknown.
func share(v *schedule.View, i int8) (part float64, ok bool) {
	if v.Links[i].Rate <= 0 {
		return 0, false
	}
	var sum float64
	for j := range v.Links {
		if l := &v.Links[j]; l.Usable {
			sum += l.Rate
		}
	}
	return v.Links[i].Rate / max(sum, v.Links[i].Rate), true
}

// usable returns the number of usable links.
func usable(v *schedule.View) (n int64) {
	for i := range v.Links {
		if v.Links[i].Usable {
			n++
		}
	}
	return n
}
