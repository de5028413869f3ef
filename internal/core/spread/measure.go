package spread

import "time"

const (
	// fresh is how long a new connection counts as running, whatever it carries: programs open all their connections at
	// once.
	fresh = 3 * time.Second
	// idle is how long a connection without a byte still counts as one of the program's.
	idle = 10 * time.Second
	// lately is the maximum time since a working link last carried something.
	lately = 3 * time.Second
	// running is the rate, in bytes per second, from which a connection counts as running.
	running = 8 << 10
	// steady is the number of measurements in a row in which a connection must have carried something for its link to
	// be compared: a connection that merely waits for its next use says nothing about its link.
	steady = 3
	// leastStep is the minimum time between two measurements: over a shorter one, rates are noise.
	leastStep = 200 * time.Millisecond

	// known is how long the measurements of a link count: after that the link is tried again.
	known = 10 * time.Minute
	// goodputSpan and distanceSpan are half the times for which extremes are remembered while a link is measured.
	goodputSpan  = 10 * time.Second
	distanceSpan = 5 * time.Minute

	// maxLinks is the maximum number of link names that are remembered.
	maxLinks = 128
)

// record is the best value of a span and of the previous span.
type record struct {
	now, before float64
	turn, seen  time.Time
}

// add records a value. higher reports whether greater values are better.
func (r *record) add(now time.Time, value float64, span time.Duration, higher bool) {
	if now.Sub(r.turn) > span {
		r.before, r.now, r.turn = r.now, 0, now
	}
	if now.Sub(r.seen) > known {
		r.before = 0
	}
	r.seen = now
	if r.now == 0 || higher == (value > r.now) {
		r.now = value
	}
}

// best returns the better value, 0 if none is known.
func (r *record) best(now time.Time, higher bool) float64 {
	switch {
	case r.seen.IsZero() || now.Sub(r.seen) > known:
		return 0
	case r.before == 0, higher == (r.now > r.before):
		return r.now
	}
	return r.before
}

// linkState holds the measurements of a link.
type linkState struct {
	goodput  record // bytes per second
	distance record // seconds: the shortest round trip
	bytes    int64  // carried since the start
	moved    time.Time
	lanes    int64   // of these bytes, those of lanes
	laneRate float64 // bytes per second of lanes, at the last measurement
}

// Connected reports the round-trip time of a new connection over a link, 0 if it is unknown.
func (t *Table) Connected(now time.Time, link string, rtt time.Duration) {
	if rtt > 0 {
		t.link(now, link).distance.add(now, rtt.Seconds(), distanceSpan, false)
	}
}

// Goodput reports the goodput, in bytes per second, of a link that divided downloads keep busy.
func (t *Table) Goodput(now time.Time, link string, perSecond float64) {
	if perSecond > 0 {
		l := t.link(now, link)
		l.goodput.add(now, perSecond, goodputSpan, true)
		l.moved = now
	}
}

// works reports whether a link carried something recently.
func (t *Table) works(now time.Time, link string) bool {
	l := t.links[link]
	return l != nil && !l.moved.IsZero() && now.Sub(l.moved) <= lately
}

// Measure records how many bytes each connection has carried so far, in both directions. It should be called every half
// second while one is Busy, and before Place. lanes is how many bytes the lanes to a relay have carried, by name of the
// link: they are traffic of the link that belongs to no single connection.
func (t *Table) Measure(now time.Time, carried func(ID) int64, lanes map[string]int64) {
	step := now.Sub(t.measured)
	if step < leastStep {
		return
	}
	t.measured = now
	for id, f := range t.flows {
		f.count(t.link(now, f.link), carried(id), now, min(step, now.Sub(f.began)))
	}
	for name, total := range lanes {
		l := t.link(now, name)
		n := max(0, total-l.lanes)
		l.lanes, l.laneRate = total, float64(n)/step.Seconds()
		l.bytes += n
	}
	t.compare(now)
}

// count records the bytes that a connection has carried until now, the last of them within step.
func (f *flow) count(l *linkState, total int64, now time.Time, step time.Duration) {
	n := max(0, total-f.total)
	f.total += n
	l.bytes += n
	if f.rate = 0; step > 0 {
		f.rate = float64(n) / step.Seconds()
	}
	if n == 0 {
		f.streak = 0
		return
	}
	f.moved, l.moved = now, now
	f.streak++
}

// compare records the goodput of links that carry connections of one program to one host at the same time.
func (t *Table) compare(now time.Time) {
	over := map[key]string{}
	sum, compared := map[string]float64{}, map[string]bool{}
	for _, f := range t.flows {
		sum[f.link] += f.rate
		if f.streak < steady {
			continue
		}
		switch other, ok := over[f.key]; {
		case !ok:
			over[f.key] = f.link
		case other != f.link:
			compared[other], compared[f.link] = true, true
		}
	}
	for name := range compared {
		t.link(now, name).goodput.add(now, sum[name], goodputSpan, true)
	}
}

// link returns the state of a link.
func (t *Table) link(now time.Time, name string) *linkState {
	l := t.links[name]
	if l == nil {
		if len(t.links) >= maxLinks {
			t.forget(now)
		}
		l = &linkState{}
		t.links[name] = l
	}
	return l
}

// forget drops a link without a connection, preferably one about which nothing is known.
func (t *Table) forget(now time.Time) {
	used := map[string]bool{}
	for _, f := range t.flows {
		used[f.link] = true
	}
	drop := ""
	for name, l := range t.links {
		if used[name] {
			continue
		}
		drop = name
		if l.goodput.best(now, true) == 0 && l.distance.best(now, false) == 0 {
			break
		}
	}
	delete(t.links, drop)
}

// Load is the undivided load of a link, including lanes to a relay.
type Load struct {
	Open  int     // connections
	Bytes int64   // since the start, both directions
	Rate  float64 // bytes per second, at the last measurement
}

// Loads returns the load of every link that has carried something.
func (t *Table) Loads() map[string]Load {
	all := map[string]Load{}
	for name, l := range t.links {
		all[name] = Load{Bytes: l.bytes, Rate: l.laneRate}
	}
	for _, f := range t.flows {
		l := all[f.link]
		l.Open++
		l.Rate += f.rate
		all[f.link] = l
	}
	return all
}

// Busy counts the connections that were running at the last measurement, and those of them whose program may get
// further links, metered ones too.
func (t *Table) Busy() (all, spread int) {
	for _, f := range t.flows {
		if f.rate >= running {
			all++
			if f.further {
				spread++
			}
		}
	}
	return all, spread
}
