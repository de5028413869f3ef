package schedule

import (
	"math"
	"slices"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
)

const (
	// settle is the longest time that the links in use carry before others may be woken: a rate measured in slow start
	// is too low.
	settle = 500 * time.Millisecond

	// slowStart is the largest change of their rate, as a factor, between two samples two round trips apart, once slow
	// start is over. In slow start the rate doubles in each round trip, in bursts.
	slowStart = 1.1

	// proof is how long a link carries before it is judged by the bytes that it delivered: radios ramp up for 2.5 s
	// (Skjolden 2019 section 3.1.4).
	proof = 3 * time.Second

	// reconsiderEvery is the time between two decisions by joules. Rates change slowly.
	reconsiderEvery = 100 * time.Millisecond

	// silentMost is how long all links in use are silent before another is woken. Radios are silent for a moment now
	// and then, and waking one costs joules.
	silentMost = time.Second

	// priorRate is the assumed goodput in bytes per second of a link without measurements: 30 Mbit/s, above which a
	// second link is worth its joules (Skjolden 2019 section 7.4.3).
	priorRate = 30e6 / 8

	// thrift is the factor by which a faster set may exceed the least joules, and the factor that a change must gain.
	thrift = 1.02
)

// Frugal leaves radios asleep that cost more joules than they save. It begins with the links that the first requests
// went to. When these have shown their rates, it chooses, for the rest of the object, the set of links with the least
// joules, or a faster set that takes at most 2 % more. So no set is better in both. Frugal counts the promotions,
// transfer power and tails of the links with a Radio, and the power that the device takes meanwhile; links without a
// Radio take nothing. A link that joins carries without a pause until the end and then sleeps, unless it delivers too
// little for its joules, which shows after 3 s.
//
// It trusts measured and remembered rates. It wins where a radio is costly and where objects are small; it never makes
// a transfer faster.
type Frugal struct {
	began      time.Time // when the size became known
	considered time.Time
	paced      time.Time // when pace was sampled
	pace       float64   // total rate of the links in use then, in bytes per second
	steady     bool      // pace no longer grows
	silent     time.Time // start of the time without a usable link in use; zero = one is usable
	links      []frugalLink
	order      []int8 // scratch
}

// frugalLink is Frugal's view of a link.
type frugalLink struct {
	in     bool      // the link is in use
	usable bool      // whether the link was usable at the last call
	joined time.Time // when the link came into use
	hoped  float64   // rate believed when it joined, in bytes per second; 0 = in use from the start
	got    int64     // bytes delivered when the rates were last sampled
	// Decayed sums of the bytes delivered and of the seconds carrying. The View's rate reflects only the last moments.
	bytes, busy float64
	alone       float64 // joules to fetch the whole rest over this link alone; scratch
}

// Spare implements Goal.
func (f *Frugal) Spare(now time.Time, v *View) time.Time {
	if f.began.IsZero() {
		f.began = now
	}
	for i := len(f.links); i < len(v.Links); i++ {
		l := &v.Links[i]
		f.links = append(f.links, frugalLink{in: l.Running > 0, joined: now, got: l.Got})
	}
	changed, some, sleeping := false, false, false
	for i := range v.Links {
		l, s := &v.Links[i], &f.links[i]
		s.in = s.in || !l.sparable()
		changed = changed || s.usable != l.Usable
		s.usable = l.Usable
		some = some || s.in && l.Usable
		sleeping = sleeping || !s.in && l.Usable
	}
	if !some {
		if f.silent.IsZero() {
			f.silent = now
		}
		if until := f.silent.Add(silentMost); now.Before(until) && f.suspects(v) {
			f.spareOthers(v, JustSilent)
			return until
		}
		f.choose(now, v) // there is no other link
		return f.apply(now, v)
	}
	f.silent = time.Time{}
	switch {
	case !f.measured(now, v):
		f.spareOthers(v, TooEarly)
		if !sleeping {
			return time.Time{}
		}
		return now.Add(reconsiderEvery)
	case sleeping && !v.hasRoom():
		f.spareOthers(v, NoRoom)
		return time.Time{}
	}
	if changed || now.Sub(f.considered) >= reconsiderEvery {
		f.choose(now, v)
	}
	return f.apply(now, v)
}

// sparable reports whether a goal may do without the link: the link is optional and its energy cost is known.
func (l *Link) sparable() bool { return l.Optional && l.Radio != nil }

// hasRoom reports whether a range could be requested.
func (v *View) hasRoom() bool { _, ok := v.FirstFree(); return ok }

// suspects reports whether a link in use may come back soon.
func (f *Frugal) suspects(v *View) bool {
	for i := range v.Links {
		if f.links[i].in && v.Links[i].Suspect {
			return true
		}
	}
	return false
}

// measured reports whether the links in use have carried long enough to show their rates.
func (f *Frugal) measured(now time.Time, v *View) bool {
	pace, every := 0.0, reconsiderEvery
	for i := range v.Links {
		l := &v.Links[i]
		if !f.links[i].in || !l.Usable || l.Running == 0 {
			continue
		}
		if l.sparable() && (l.Rate <= 0 || l.Recalled) {
			return false
		}
		pace += l.Rate
		if every = max(every, 2*l.RTT); l.RTT == 0 {
			every = settle // the length of a burst is unknown
		}
	}
	if !f.steady && now.Sub(f.paced) >= every {
		f.steady = f.pace > 0 && pace <= slowStart*f.pace && f.pace <= slowStart*pace
		f.paced, f.pace = now, pace
	}
	return f.steady || now.Sub(f.began) >= settle
}

func (f *Frugal) spareOthers(v *View, reason Spared) {
	for i := range v.Links {
		if !f.links[i].in && v.Links[i].Usable {
			v.spare(int8(i), reason)
		}
	}
}

// apply takes out the links that are not in use.
func (f *Frugal) apply(now time.Time, v *View) time.Time {
	f.spareOthers(v, CostsMore)
	for i := range v.Links {
		if v.Links[i].Spared != NotSpared {
			return now.Add(reconsiderEvery)
		}
	}
	return time.Time{}
}

// choose sets which links are in use. It orders the links by the joules that each would take alone. The candidate sets
// are the first link, the first two, and so on. choose takes the fastest set that is within thrift of the least joules.
func (f *Frugal) choose(now time.Time, v *View) {
	f.sample(now, v)
	f.considered = now
	left := v.left()
	f.order = f.order[:0]
	for i := range v.Links {
		if l := &v.Links[i]; l.Usable {
			f.order = append(f.order, int8(i))
			f.links[i].alone = -1 // in every set
			if l.sparable() {
				d := float64(left) / f.believed(now, v, int8(i))
				f.links[i].alone = f.wake(v, int8(i)) + energy.AwakeWatts*d +
					l.Radio.ActiveJoules(time.Duration(d*1e9), 0, left)
			}
		}
	}
	slices.SortStableFunc(f.order, func(a, b int8) int {
		switch x, y := f.links[a].alone, f.links[b].alone; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	fixed := 0 // number of links in every set
	for fixed < len(f.order) && f.links[f.order[fixed]].alone < 0 {
		fixed++
	}
	take, least := max(fixed, 1), math.Inf(1)
	for n := take; n <= len(f.order); n++ {
		least = min(least, f.joules(now, v, left, n))
	}
	for n := take; n <= len(f.order); n++ { // larger sets are faster
		if f.joules(now, v, left, n) <= thrift*least {
			take = n
		}
	}
	proven := true
	for _, i := range f.order[:min(take, len(f.order))] {
		l, s := &v.Links[i], &f.links[i]
		if !s.in {
			s.in, s.joined, s.hoped, s.got = true, now, f.believed(now, v, i), l.Got
		}
		proven = proven && l.Rate > 0 && !l.Recalled && now.Sub(s.joined) >= proof
	}
	if !proven {
		return // the others carry on until the new ones have shown their rates
	}
	if f.joules(now, v, left, take)*thrift < f.joules(now, v, left, 0) {
		for _, i := range f.order[min(take, len(f.order)):] {
			f.links[i].in = f.links[i].in && now.Sub(f.links[i].joined) < proof
		}
	}
}

// sample adds the bytes that the links in use delivered since the last sample.
func (f *Frugal) sample(now time.Time, v *View) {
	took := now.Sub(f.considered).Seconds()
	for i := range f.links {
		l, s := &v.Links[i], &f.links[i]
		if s.in && l.Running > 0 && !f.considered.IsZero() {
			k := math.Exp(-took / steadyTime.Seconds())
			s.bytes, s.busy = s.bytes*k+float64(l.Got-s.got), s.busy*k+took
		}
		s.got = l.Got
	}
}

// joules returns the joules that fetching the rest takes over the first n links in order, or over those in use if n is
// 0.
func (f *Frugal) joules(now time.Time, v *View, left int64, n int) (joules float64) {
	among := func(k int) bool { return k < n || n == 0 && f.links[f.order[k]].in }
	rate := 0.0
	for k, i := range f.order {
		if among(k) {
			rate += f.believed(now, v, i)
		}
	}
	if rate <= 0 {
		return math.Inf(1)
	}
	seconds := float64(left) / rate
	joules = energy.AwakeWatts * seconds
	for k, i := range f.order {
		if l := &v.Links[i]; among(k) && l.Radio != nil {
			joules += f.wake(v, i) + l.Radio.ActiveJoules(time.Duration(seconds*1e9), 0,
				int64(seconds*f.believed(now, v, i)))
		}
	}
	return joules
}

// wake returns the joules that waking a link costs. A link that carries is already awake, and its tail follows in any
// case.
func (f *Frugal) wake(v *View, link int8) float64 {
	l := &v.Links[link]
	if l.Radio == nil || l.Running > 0 {
		return 0
	}
	return l.Radio.WakeJoules(l.Silent)
}

// believed returns the goodput that a link is believed to have, in bytes per second: its average once it has carried
// for a while; before that, its current rate or the rate expected when it was woken, whichever is higher.
func (f *Frugal) believed(now time.Time, v *View, link int8) float64 {
	s := &f.links[link]
	if s.bytes > 0 && now.Sub(s.joined) >= proof {
		return s.bytes / s.busy
	}
	return max(v.Links[link].believed(), s.hoped)
}

// believed returns the goodput that a link is believed to have, in bytes per second.
func (l *Link) believed() float64 {
	if l.Rate > 0 {
		return l.Rate
	}
	return priorRate
}
