package schedule

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/segment"
)

// StealMin is the shortest tail that is worth stealing, in bytes.
const StealMin = 32 << 10

// StealTail gives link i, which is about to fall idle with nothing left to request, the tail of the range that will end
// last, so that both links end together. It is the offload form of Nikravesh 2018 equation 6.1, with a guard that the
// paper leaves out: a negative share means that moving the tail costs more than it gains.
func StealTail(v *View, i int8) (Decision, bool) {
	fast := &v.Links[i]
	if fast.Rate <= 0 {
		return Decision{}, false
	}
	var from *Attempt
	var moved, latest float64
	for j := range v.Links {
		slow := &v.Links[j]
		if int8(j) == i || slow.Running == 0 || slow.Rate <= 0 {
			continue
		}
		a := v.Newest(int8(j))
		if a == nil || a.Stolen || a.Hedged || a.Hedge || a.Silent || a.Range.End-a.Left() >= v.Limit {
			continue
		}
		if end := float64(slow.Asked) / slow.Rate; end > latest {
			latest, from = end, a
			moved = Offload(slow.Asked, fast.Rate, slow.Rate, fast.Arrival())
		}
	}
	if from == nil || moved < StealMin {
		return Decision{}, false
	}
	n := min(int64(moved), from.Left())
	if from.Left()-n < StealMin && !from.HasHead {
		n = from.Left() // none of it has arrived: take all of it
	}
	r := segment.Range{Start: from.Range.End - n, End: from.Range.End}
	if r.Empty() || r.Start >= v.Limit {
		return Decision{}, false
	}
	return Decision{
		Do:    Fetch,
		Link:  i,
		Range: r,
		From:  from.ID,
		Rule:  Steal,
	}, true
}

// Offload returns how many of the left bytes of the slow link should move to the fast link so that both end together,
// if the fast link's request takes effect after delay. Rates are in bytes per second. The result may be negative.
func Offload(left int64, fast, slow float64, delay time.Duration) float64 {
	return (float64(left)*fast - fast*slow*delay.Seconds()) / (fast + slow)
}

// stealOversize gives link i a part of a range that another link fetches and that reaches far beyond that link's share:
// the client's own GET, sent before anything was known. The cut lies far enough ahead for the other link to open a
// connection for its next range, since the rest of such an answer can only be discarded.
func stealOversize(v *View, i int8, size func(*View, int8, int64) (int64, Rule)) (Decision, bool) {
	far := int64(4)
	if v.Links[i].Rate == 0 { // StealTail cannot judge an unmeasured link
		far = 2
	}
	for k := range v.Attempts {
		a := &v.Attempts[k]
		if a.Range.End <= v.Limit && a.Left() < far*FirstSize ||
			a.Link == i || a.Stolen || a.Hedged || a.Hedge || a.Silent || !a.HasHead {
			continue
		}
		slow := &v.Links[a.Link]
		own, _ := size(v, a.Link, a.Left())
		if a.Left() < far*own {
			continue
		}
		ahead := max(FirstSize, int64(slow.Rate*(3*slow.RTT+100*time.Millisecond).Seconds()))
		n, _ := size(v, i, a.Left())
		start := a.Cursor + ahead
		r := segment.Range{Start: start, End: min(start+n, a.Range.End)}
		if r.Empty() || r.Start >= v.Limit {
			continue
		}
		return Decision{
			Do:    Fetch,
			Link:  i,
			Range: r,
			From:  a.ID,
			Rule:  Oversize,
		}, true
	}
	return Decision{}, false
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
