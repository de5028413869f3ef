package schedule

import "time"

// Goal decides which links a transfer leaves unused. Any scheduler can divide the ranges among the others. A Goal may
// keep state; it is not safe for concurrent use. The goal "fastest" is nil: all links are used.
type Goal interface {
	// Spare takes links out of v, as if no new ranges could be requested on them: it clears Usable and sets Spared to
	// the reason. It returns when to call it again if nothing happens before; zero = never.
	Spare(now time.Time, v *View) time.Time
}

// Goals returns the names of the goals; package policy makes them.
func Goals() []string { return []string{Fastest, FrugalGoal, CheapestGoal} }

// The names of goals.
const (
	Fastest      = "fastest"
	FrugalGoal   = "frugal"
	CheapestGoal = "cheapest"
)

// DefaultPerPercent is the default PerPercent of Cheapest.
const DefaultPerPercent = 1 << 20

// Spared says why a goal does not use a link.
type Spared uint8

// The reasons.
const (
	NotSpared  Spared = iota
	TooEarly          // it is not yet known what the links in use can deliver
	NoRoom            // the reorder window is full, or the client does not read faster: another link would not help
	CostsMore         // costs more joules than it saves
	JustSilent        // the links in use are silent, but not for long
	InTime            // the links in use will be in time without it
	CostsMoney        // would use more metered bytes than its speed is worth
)

var spareds = [...]struct{ name, text string }{
	TooEarly:   {"too_early", "not needed yet: the rates of the other links are still being measured"},
	NoRoom:     {"no_room", "not needed: the client does not read faster"},
	CostsMore:  {"costs_more", "waking its radio would use more energy than it saves (goal = \"frugal\")"},
	JustSilent: {"just_silent", "not woken yet: the other links have only just stopped"},
	InTime:     {"in_time", "not needed: the other links will meet the deadline"},
	CostsMoney: {
		"costs_money", "it is metered, and its speed is not worth its data (goal = \"cheapest\", metered_per_percent)",
	},
}

func (s Spared) String() string { return spareds[s].name }

// Text says the reason to people.
func (s Spared) Text() string { return spareds[s].text }

// spare takes a link out of the view.
func (v *View) spare(link int8, reason Spared) {
	v.Links[link].Usable, v.Links[link].Spared = false, reason
}

// left returns the number of bytes that have not arrived.
func (v *View) left() (n int64) {
	n = v.free()
	for i := range v.Attempts {
		if a := &v.Attempts[i]; !a.Hedge {
			n += a.Left()
		}
	}
	return n
}
