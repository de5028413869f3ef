package schedule

import (
	"time"

	"github.com/tributary-http/tributary/internal/segment"
)

// MPHTTP is the scheduler of MP-HTTP (Nikravesh 2018 section 6.3): the links fetch a half each, one from the front and one
// from the rear, and when the faster one is about to end it takes over so much of the tail of the slower one's range that
// both would end together (equation 6.1). It does so again until a new request would not bear fruit in time.
//
// It needs the rates of both links and the delay of a request; the paper measures that by HTTP/2 PING, here it is the round
// trip and what is queued on the link. Where rates are known from earlier transfers it starts from equation 6.1 in place of
// halves (the paper's hint BW/L). It wins with few requests and a short end. Moving a tail costs a connection over HTTP/1.1,
// and halves of a long object need a window as large as a half; in a smaller one it halves what the window reaches.
//
// The paper's routine runs when bytes arrive on the link that it decides for, so that a link without bytes is forgotten
// (sources.md section 2.2); here it is asked after every event.
type MPHTTP struct{}

// mpLead is the least time before the end of a link's range at which its next request leaves.
const mpLead = 50 * time.Millisecond

// Next implements Scheduler.
func (s *MPHTTP) Next(_ time.Time, v *View) Decision {
	d := wait(time.Time{})
	for i := range v.Links {
		l := &v.Links[i]
		if !l.Usable || !l.CanAsk || l.Running >= outstand && !l.Blocked || !l.ending() {
			continue
		}
		if d = s.ask(v, int8(i)); d.Do == Fetch {
			break
		}
	}
	return d
}

// ending reports whether what the link was asked for will have come by the time that a new request bears fruit.
func (l *Link) ending() bool {
	return l.Running == 0 || l.Blocked || l.Rate > 0 && float64(l.Asked) <= l.Rate*max(l.RTT, mpLead).Seconds()
}

func (s *MPHTTP) ask(v *View, i int8) Decision {
	f, ok := v.FirstFree()
	if !ok {
		if d, ok := tail(v, i); ok && len(v.Free) == 0 {
			return d
		}
		return wait(time.Time{})
	}
	reach := min(f.End, v.Limit) - f.Start
	if f.End > v.Limit && reach < v.Window/windowDiv && f.Start > v.Head {
		return wait(time.Time{})
	}
	n := min(s.part(v, i, reach), reach)
	switch {
	case n <= 0 && len(v.Attempts) > 0:
		return Decision{Do: Wait, Why: Half} // the other link is sooner done with all of it
	case n < tailMin, reach-n < tailMin:
		n = reach
	}
	r := segment.Range{Start: f.Start, End: f.Start + n}
	if i != v.front() {
		r = segment.Range{Start: f.Start + reach - n, End: f.Start + reach}
	}
	return Decision{Do: Fetch, Link: i, Range: r, Why: Half}
}

// part returns how much of the reach link i should fetch for all to end together.
func (s *MPHTTP) part(v *View, i int8, reach int64) int64 {
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
		if o.Running == 0 { // its request would leave with this one
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
	delay := l.arrival() - trip
	return int64(Offload(int64(asked)+reach, l.Rate, rate, delay))
}

// front returns the first usable link, the one that works at the head; -1 if none is.
func (v *View) front() int8 {
	for i := range v.Links {
		if v.Links[i].Usable {
			return int8(i)
		}
	}
	return -1
}
