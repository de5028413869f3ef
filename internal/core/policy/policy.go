// Package policy decides which links a request may use: one question, one answer. PURE.
//
// Every user of links asks it: divided requests, requests and tunnels over one link, and the relay's lanes; status
// shows its reasons. [For] takes a [Request], and what is known about each link: its [Terms], which the user and the
// network set, and its state. It returns a [Verdict] per link and the order in which links are tried. It keeps no
// state. Ask again when the terms or the state of a link change, when a link appears, when a link turns out not to
// serve the object, and when the client's consent changes.
//
// Which interfaces are links at all is decided in package link. Which of the links that may be used carries the next
// range is decided by a scheduler, and which of them an undivided request tries first by package spread.
//
// Reasons: docs/decisions/which-link.md
package policy

import (
	"math"
	"slices"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/core/schedule"
)

// Terms are the conditions on which a link may be used. Two links with equal terms get equal verdicts if they are in
// the same state.
type Terms struct {
	Disabled  bool // the configuration leaves the link out
	Spent     bool // its account has reached its data limit
	Metered   bool // bytes cost money: the link joins after the others and is tested rarely
	Untrusted bool // the operator of the network must not see credentials, see opening.Exposes

	// Goal is the goal of downloads over the link, one of schedule.Goals; "" is schedule.Fastest.
	Goal string
	// PerPercent is how many metered bytes one percent of speed is worth, see schedule.Cheapest. It is set whatever the
	// Goal, since a request may have its own.
	PerPercent int64
	Radio      *energy.Radio // nil = unknown
	Presumed   *energy.Radio // stands in for an unknown Radio if a request has the goal frugal; nil = nothing does

	Account string // account that its bytes count against, as reported by the app; "" = the link's own
}

// costlyWake is the least energy for waking a radio, in joules, at which its link joins after the others: more than
// Wi-Fi's 0.04, less than LTE's 2.
const costlyWake = 0.5

// costly reports whether bytes on the link cost money, or waking it costs joules.
func (t *Terms) costly() bool {
	return t.Metered || t.Radio != nil && t.Radio.WakeJoules(math.MaxInt64) >= costlyWake
}

// Last reports whether the link joins after the others and is tested rarely, whatever the request.
func (t *Terms) Last() bool { return t.Metered || t.Goal == schedule.FrugalGoal && t.costly() }

// OnDemand reports whether the link is connected only when a request needs it.
func (t *Terms) OnDemand() bool { return t.Metered || t.Goal == schedule.FrugalGoal }

// Closed returns why no request may use the link, NoReason if some may.
func (t *Terms) Closed() Reason {
	switch {
	case t.Disabled:
		return Disabled
	case t.Spent:
		return Spent
	}
	return NoReason
}

// Deadline says by when a request needs its bytes: Within, or Bitrate and Startup.
type Deadline = schedule.Deadline

// Link is what is known about a link.
type Link struct {
	Name string
	Terms
	State   health.State
	Metric  int  // metric of the system's routes: the lowest is preferred
	Late    bool // another link overtook it recently
	Refused bool // the origin recently refused an object over it that it served over another one
	Out     bool // it cannot serve the object of the request
	Seen    bool // it was permitted to see the request before
	Carries bool // it was permitted to carry it until now
}

// alive reports whether the link carries bytes, as far as is known.
func (l *Link) alive() bool { return l.State == health.Up || l.State == health.Suspect }

// Request is what a request asks for and permits. The zero value may use every link.
type Request struct {
	Exposes   bool // its content reveals credentials to the operator of a link
	Unmetered bool // it may not cost money now
	Shared    bool // it stands for many requests: links that join last carry it only if there are no others

	Goal       string    // one of schedule.Goals, in place of those of the links; "" = those of the links
	Deadline   *Deadline // uses costly links only for bytes that the others cannot deliver in time; overrides the goals
	Background bool      // it gives way to other traffic

	MaxLinks int    // most links that may carry it at a time; 0 = any number
	Avoid    string // name of a link that it does not use
	Began    bool   // something was sent: the links that may see what it exposes have been chosen, see Link.Seen
}

// Use says whether a link may be used.
type Use uint8

// The answers.
const (
	Yes    Use = iota
	Resort     // only if no other link can serve the object
	Spare      // not now, since enough others may be used
	No         // not unless the terms or the request change
)

// Reason says why a link is not used like any other.
type Reason uint8

// The reasons.
const (
	NoReason    Reason = iota
	Disabled           // the configuration leaves it out
	Spent              // its data limit is reached
	Avoided            // the request names it
	Costs              // it costs money or joules, which the request may not
	Exposed            // its operator must not see what the request says
	OverRefused        // the origin recently refused objects over it
	Enough             // as many links as the request wants carry it
)

var reasons = [...]struct{ name, text string }{
	Disabled:    {"disabled", "the configuration leaves it out"},
	Spent:       {"limit_reached", "its data limit is reached"},
	Avoided:     {"avoided", "this request avoids it"},
	Costs:       {"metered", "it is metered, and this client may not use metered links"},
	Exposed:     {"untrusted", "its network must not see the request's credentials (trusted = false)"},
	OverRefused: {"refused", "the server recently refused requests over it"},
	Enough:      {"max_links", "not needed: as many links as --max-links allows carry the download"},
}

func (r Reason) String() string { return reasons[r].name }

// Text says the reason to people.
func (r Reason) Text() string { return reasons[r].text }

// Verdict is the answer for one link.
type Verdict struct {
	Use      Use
	Reason   Reason        // of any Use but Yes
	Last     bool          // it joins after the others
	Optional bool          // the Goal of the Answer may do without it
	Radio    *energy.Radio // what the goal reckons with; nil = unknown
}

// May reports whether the link may carry the request now.
func (v *Verdict) May() bool { return v.Use == Yes || v.Use == Resort }

// Answer says which links a request may use.
type Answer struct {
	Verdicts []Verdict     // by link
	Order    []int8        // links that may carry the request, in order of preference for the first request
	Goal     schedule.Goal // which of the optional links to leave unused; nil = none. It is new, and for one transfer
	Dear     bool          // bytes that turn out to be unwanted cost something
}

// For returns which of all links a request may use.
func For(r Request, all []Link) (a Answer) {
	a.Verdicts = make([]Verdict, len(all))
	for i := range all {
		a.Verdicts[i] = r.verdict(&all[i])
	}
	order := preference(all, a.Verdicts)
	r.entrust(order, all, a.Verdicts)
	r.share(all, a.Verdicts)
	resort(all, a.Verdicts)
	r.limit(order, all, a.Verdicts)
	for _, i := range order {
		if a.Verdicts[i].May() {
			a.Order = append(a.Order, i)
		}
	}
	a.Goal = r.goal(all)
	a.Dear = r.Background || a.Goal != nil || dear(all, &a)
	return a
}

// Permits reports whether a request may use a link with these terms at all, other links aside.
func (r *Request) Permits(t Terms) bool {
	v := r.verdict(&Link{Terms: t})
	return v.Use != No
}

// verdict answers for one link, other links aside. A rule of the configuration that says which requests use a link is a
// case here, and what it matches is a field of Request.
func (r *Request) verdict(l *Link) (v Verdict) {
	v.Last, v.Radio = l.Terms.Last(), l.Radio
	switch r.goalOf(&l.Terms) {
	case schedule.FrugalGoal:
		if v.Radio == nil {
			v.Radio = l.Presumed
		}
		v.Optional = true
	case schedule.CheapestGoal:
		v.Optional = l.Metered
	}
	if r.Deadline != nil {
		v.Optional = l.costly()
	}
	switch reason := l.Closed(); {
	case reason != NoReason:
		v.Use, v.Reason = No, reason
	case r.Avoid != "" && r.Avoid == l.Name:
		v.Use, v.Reason = No, Avoided
	case r.Unmetered && l.Metered:
		v.Use, v.Reason = No, Costs
	}
	return v
}

// goalOf returns the goal of the request for a link.
func (r *Request) goalOf(t *Terms) string {
	if r.Goal != "" {
		return r.Goal
	}
	return t.Goal
}

// preference returns the links in order of preference: those that join last come after all others, then those that were
// overtaken, those that are silent or down, and those that the system itself would not choose.
func preference(all []Link, verdicts []Verdict) []int8 {
	order := make([]int8, len(all))
	for i := range all {
		order[i] = int8(i)
	}
	rank := func(i int8) (rank int) {
		switch {
		case verdicts[i].Last:
			rank = 6
		case all[i].Late:
			rank = 3
		}
		switch all[i].State {
		case health.Up:
			return rank
		case health.Suspect:
			return rank + 1
		}
		return rank + 2
	}
	slices.SortStableFunc(order, func(a, b int8) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return all[a].Metric - all[b].Metric
	})
	return order
}

// entrust forbids links whose operator must not see the request. If no trusted link is alive, the best untrusted one
// may be used (R205): a trusted one counts even if this request may not use it, or avoiding one link would reveal the
// request to another. Once the request has begun, no further untrusted link sees it, and one that saw it stays.
func (r *Request) entrust(order []int8, all []Link, verdicts []Verdict) {
	if !r.Exposes {
		return
	}
	best, trusted := int8(-1), false
	for _, i := range order {
		l, v := &all[i], &verdicts[i]
		switch {
		case !l.Untrusted:
			trusted = trusted || l.alive() && l.Closed() == NoReason
		case v.Use == No, r.Began && l.Seen:
		default:
			v.Use, v.Reason = No, Exposed
			if best < 0 && l.State != health.Down {
				best = i
			}
		}
	}
	if !r.Began && !trusted && best >= 0 {
		verdicts[best].Use, verdicts[best].Reason = Yes, NoReason
	}
}

// share spares links that join last if a request that stands for many may use others.
func (r *Request) share(all []Link, verdicts []Verdict) {
	some := slices.ContainsFunc(verdicts, func(v Verdict) bool { return v.Use == Yes && !v.Last })
	if !r.Shared || !some {
		return
	}
	for i := range all {
		if v := &verdicts[i]; v.Use == Yes && v.Last {
			v.Use, v.Reason = Spare, Costs
		}
	}
}

// resort keeps links over which the origin refuses its objects for the case that no other can serve, unless they are
// the only ones up (R118).
func resort(all []Link, verdicts []Verdict) {
	other := false
	for i := range all {
		other = other || verdicts[i].Use == Yes && !all[i].Refused && all[i].State == health.Up
	}
	for i := range all {
		if v := &verdicts[i]; other && v.Use == Yes && all[i].Refused {
			v.Use, v.Reason = Resort, OverRefused
		}
	}
}

// limit spares links beyond MaxLinks. Links that cannot carry the request now do not count; a link that carries it
// keeps its place.
func (r *Request) limit(order []int8, all []Link, verdicts []Verdict) {
	if r.MaxLinks <= 0 {
		return
	}
	left := r.MaxLinks
	serves := func(l *Link) bool { return l.alive() && !l.Out }
	for _, use := range []Use{Yes, Resort} {
		for _, carries := range []bool{true, false} {
			for _, i := range order {
				if l, v := &all[i], &verdicts[i]; v.Use == use && serves(l) && l.Carries == carries {
					if left--; left < 0 {
						v.Use, v.Reason = Spare, Enough
					}
				}
			}
		}
	}
	for i := range all { // one that comes back waits for its turn
		if v := &verdicts[i]; v.May() && !serves(&all[i]) && left <= 0 {
			v.Use, v.Reason = Spare, Enough
		}
	}
}

// goal returns the goal of a transfer: a deadline, or the goal of the request, or that of the first link that has one.
func (r *Request) goal(all []Link) schedule.Goal {
	if r.Deadline != nil {
		d := *r.Deadline
		return &d
	}
	for i := range all {
		t := &all[i].Terms
		switch r.goalOf(t) {
		case schedule.FrugalGoal:
			return &schedule.Frugal{}
		case schedule.CheapestGoal:
			if t.Metered {
				return &schedule.Cheapest{PerPercent: t.PerPercent}
			}
		}
	}
	return nil
}

// dear reports whether the link of the first request costs money.
func dear(all []Link, a *Answer) bool {
	for _, i := range a.Order {
		if all[i].State == health.Up {
			return all[i].Metered
		}
	}
	return false
}
