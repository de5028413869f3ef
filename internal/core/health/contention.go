package health

import (
	"math"
	"time"
)

const (
	// goodputWindow is the time over which goodput is measured: long compared with the bursts of a radio.
	goodputWindow = time.Second

	// startUp is the time after the start, and settling the time after a link leaves, for which nothing is measured.
	startUp  = 2 * time.Second
	settling = 500 * time.Millisecond

	// standstill is the share of a window for which links may be idle. If they are idle for longer, the client or the
	// reorder window bounds the total.
	standstill = 0.1

	mostSteps = 8    // that are remembered
	noise     = 0.04 // smaller changes, as a share of the total, mean nothing

	// The measurement is precise enough after leastSteps steps. At least leastLarge of them must be larger than noise,
	// since a single one may be a coincidence, and those together must move leastMoved of the total.
	leastSteps = 6
	leastLarge = 2
	leastMoved = 0.25

	worth = 0.25 // of its own goodput: a link that raises the total by less adds nothing
	sure  = 3    // standard errors by which a measurement must differ from that

	firstHold = 20 * time.Second // after a wrong verdict, before the next one; it doubles
)

// Traffic is a transfer's report about a link.
type Traffic struct {
	Got     int64 // total bytes that it brought
	Usable  bool  // it may be asked for more
	Metered bool
}

// Contention finds links that share one bottleneck, such as two radios on one channel: the others lose what one of them
// gains, when it joins and whenever its goodput changes. Such a link raises the total by less than a quarter of its own
// goodput, and can be left out. A link that is merely slow raises the total by all of its goodput.
//
// A verdict is checked: if the total falls without the link, it is used again. Contention is for a transfer that runs
// alone. The zero value is ready to use.
type Contention struct {
	from   time.Time     // time before which nothing is measured
	since  time.Time     // start of the window
	got    []int64       // bytes by link at that time
	stood  time.Duration // idle time at that time
	rates  []float64     // by link in the last window, bytes per second; nil = the window does not count
	steps  [][]float64   // changes of rates from one window to the next
	joined []time.Time   // by link: when it became usable, if that was seen
	usable []bool
	left   leftOut

	holdUntil time.Time
	hold      time.Duration // last hold time
}

// leftOut is the link that is left out.
type leftOut struct {
	is         bool
	link       int8
	total, own float64 // rates before, in bytes per second
}

// Verdict is a decision to leave a link out, or to use it again.
type Verdict struct {
	Link int8
	Out  bool
}

// Observe records the transfer's current figures for its links, and the total time for which one of them was idle
// although usable. It is called a few times a second.
func (c *Contention) Observe(now time.Time, links []Traffic, stood time.Duration) (v Verdict, ok bool) {
	if c.from.IsZero() {
		c.from = now.Add(startUp)
	}
	c.look(now, links)
	took := now.Sub(c.since)
	switch {
	case now.Before(c.from) || len(c.got) != len(links):
		if len(c.got) != len(links) {
			c.steps = nil
		}
		c.rates = nil
		c.open(now, links, stood)
		return Verdict{}, false
	case took < goodputWindow:
		return Verdict{}, false
	}
	before := c.rates
	c.rates = nil
	if float64(stood-c.stood) <= standstill*float64(took) {
		for i, l := range links {
			c.rates = append(c.rates, float64(l.Got-c.got[i])/took.Seconds())
		}
	}
	c.open(now, links, stood)
	switch {
	case c.left.is && links[c.left.link].Usable: // its ban is over
		c.left, c.steps = leftOut{}, nil
	case c.rates == nil:
	case c.left.is:
		return c.try(now)
	case before != nil:
		c.step(before)
		if !now.Before(c.holdUntil) {
			return c.judge(now, links)
		}
	}
	return Verdict{}, false
}

// Stop resets c. If a link is left out, Stop returns the verdict to use it again, since nothing checks any longer
// whether it is needed.
func (c *Contention) Stop() (v Verdict, ok bool) {
	v, ok = Verdict{Link: c.left.link}, c.left.is
	*c = Contention{}
	return v, ok
}

// look records which links have joined.
func (c *Contention) look(now time.Time, links []Traffic) {
	for i, l := range links {
		if i == len(c.joined) {
			c.joined, c.usable = append(c.joined, time.Time{}), append(c.usable, l.Usable)
		}
		if l.Usable && !c.usable[i] {
			c.joined[i] = now
		}
		c.usable[i] = l.Usable
	}
}

// open starts a window.
func (c *Contention) open(now time.Time, links []Traffic, stood time.Duration) {
	c.since, c.stood = now, stood
	c.got = c.got[:0]
	for _, l := range links {
		c.got = append(c.got, l.Got)
	}
}

// step records how the rates changed.
func (c *Contention) step(before []float64) {
	var d []float64
	for i, r := range c.rates {
		d = append(d, r-before[i])
	}
	if c.steps = append(c.steps, d); len(c.steps) > mostSteps {
		c.steps = c.steps[1:]
	}
}

// judge returns the link to leave out: one that costs money first, then the one that joined last, then the one that
// brings least.
func (c *Contention) judge(now time.Time, links []Traffic) (v Verdict, ok bool) {
	for i, l := range links {
		j := int8(i)
		if !l.Usable || !c.useless(j) || !c.spare(j, links) {
			continue
		}
		if !ok || c.rather(j, v.Link, links) {
			v, ok = Verdict{j, true}, true
		}
	}
	if ok {
		c.left = leftOut{true, v.Link, sum(c.rates), c.rates[v.Link]}
		c.steps, c.from = nil, now.Add(settling)
	}
	return v, ok
}

// rather reports whether to leave out link i rather than link j.
func (c *Contention) rather(i, j int8, links []Traffic) bool {
	switch {
	case links[i].Metered != links[j].Metered:
		return links[i].Metered
	case !c.joined[i].Equal(c.joined[j]):
		return c.joined[i].After(c.joined[j])
	}
	return c.rates[i] < c.rates[j]
}

// useless reports whether the others lose what a link gains. It fits a line to the steps of the others' rate against
// those of the link's own.
func (c *Contention) useless(link int8) bool {
	var own, others, both float64 // sums of squares and products
	large, moved := 0, 0.
	for _, d := range c.steps {
		x := d[link]
		y := sum(d) - x
		own, others, both = own+x*x, others+y*y, both+x*y
		if math.Abs(x) >= noise*sum(c.rates) {
			large++
			moved += math.Abs(x)
		}
	}
	if len(c.steps) < leastSteps || large < leastLarge || moved < leastMoved*sum(c.rates) {
		return false
	}
	lost := -both / own
	spread := math.Sqrt(max(0, others-lost*lost*own) / float64(len(c.steps)-1) / own)
	return math.Abs(1-lost)+sure*spread < worth
}

// spare reports whether the transfer can do without a link: another one works, and no metered link must replace an
// unmetered one.
func (c *Contention) spare(link int8, links []Traffic) bool {
	for i, l := range links {
		if int8(i) != link && l.Usable && c.rates[i] > 0 && (!l.Metered || links[link].Metered) {
			return true
		}
	}
	return false
}

// try takes a link back if the total fell without it.
func (c *Contention) try(now time.Time) (Verdict, bool) {
	l := c.left
	if sum(c.rates) >= l.total-worth*l.own {
		return Verdict{}, false
	}
	c.hold = max(firstHold, 2*c.hold)
	c.holdUntil = now.Add(c.hold)
	c.left = leftOut{}
	return Verdict{l.link, false}, true
}

func sum(all []float64) (s float64) {
	for _, x := range all {
		s += x
	}
	return s
}
