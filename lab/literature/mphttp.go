package literature

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/core/segment"
)

// MPHTTP is the scheduler of MP-HTTP (Nikravesh 2018 section 6.3). Each link fetches a half, one from the front and one
// from the rear. When the faster link is about to end, it takes over as much of the tail of the slower one's range as
// makes both end together (equation 6.1). It repeats this until a new request would take effect too late.
//
// It needs the rates of both links and the delay of a request, measured by HTTP/2 PING as in the paper, and by the
// kernel over HTTP/1.1. If rates are known from earlier transfers, it starts from equation 6.1 instead of halves (the
// paper's hint BW/L). It wins with few requests and a short end. Moving a tail costs a connection over HTTP/1.1, and
// halves of a long object need a window as large as a half; in a smaller window it halves the reachable part.
//
// As printed, the routine runs when bytes arrive on the link that it decides for, so it forgets a link without bytes.
// Here it runs after every event.
type MPHTTP struct{}

// mpLead is the minimum time before the end of a link's range at which its next request is sent.
const mpLead = 50 * time.Millisecond

// mpPart is a divisor of the window: a range that the window cuts to less than this part of it waits for room.
const mpPart = 8

// Next implements schedule.Scheduler.
func (s *MPHTTP) Next(_ time.Time, v *schedule.View) schedule.Decision {
	d := wait(time.Time{})
	for i := range v.Links {
		l := &v.Links[i]
		if !l.Usable || !l.CanAsk || l.Running >= outstand && !l.Blocked || !ending(l) {
			continue
		}
		if d = s.ask(v, int8(i)); d.Do == schedule.Fetch {
			break
		}
	}
	return d
}

// ending reports whether the requested bytes of the link will have arrived by the time that a new request takes effect.
func ending(l *schedule.Link) bool {
	return l.Running == 0 || l.Blocked || l.Rate > 0 && float64(l.Asked) <= l.Rate*max(l.RTT, l.Delay, mpLead).Seconds()
}

func (s *MPHTTP) ask(v *schedule.View, i int8) schedule.Decision {
	f, ok := v.FirstFree()
	if !ok {
		if d, ok := schedule.StealTail(v, i); ok && len(v.Free) == 0 {
			return d
		}
		return wait(time.Time{})
	}
	reach := min(f.End, v.Limit) - f.Start
	if f.End > v.Limit && reach < v.Window/mpPart && f.Start > v.Offset {
		return wait(time.Time{})
	}
	n := min(s.part(v, i, reach), reach)
	switch {
	case n <= 0 && len(v.Attempts) > 0:
		return schedule.Decision{Do: schedule.Wait, Rule: schedule.Half} // the other link finishes all of it sooner
	case n < schedule.StealMin, reach-n < schedule.StealMin:
		n = reach
	}
	r := segment.Range{Start: f.Start, End: f.Start + n}
	if i != front(v) {
		r = segment.Range{Start: f.Start + reach - n, End: f.Start + reach}
	}
	return schedule.Decision{Do: schedule.Fetch, Link: i, Range: r, Rule: schedule.Half}
}

// part returns how many bytes of reach link i should fetch so that all links end together.
func (s *MPHTTP) part(v *schedule.View, i int8, reach int64) int64 {
	l := &v.Links[i]
	var asked, rate float64
	known, others, ready := l.Rate > 0, 0, 1
	trip := time.Duration(0)
	for j := range v.Links {
		o := &v.Links[j]
		if int8(j) == i || !o.Usable {
			continue
		}
		others++
		asked += float64(o.Asked)
		rate += o.Rate
		known = known && o.Rate > 0
		if o.Running == 0 { // its request would be sent together with this one
			ready++
			trip = max(trip, o.RTT)
		}
	}
	switch {
	case others == 0:
		return reach
	case !known:
		return reach / int64(max(ready, 2))
	}
	delay := max(l.Arrival(), l.Delay) - trip
	return int64(schedule.Offload(int64(asked)+reach, l.Rate, rate, delay))
}

// front returns the first usable link, which works at the next offset; -1 if none is usable.
func front(v *schedule.View) int8 {
	for i := range v.Links {
		if v.Links[i].Usable {
			return int8(i)
		}
	}
	return -1
}
