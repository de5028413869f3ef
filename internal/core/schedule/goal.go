package schedule

import "time"

// Goal decides which links a transfer leaves unused. Any scheduler can divide the ranges among the others. A Goal may
// keep state; it is not safe for concurrent use. The goal "fastest" is nil: all links are used.
type Goal interface {
	// Spare takes links out of v, as if no new ranges could be requested on them: it clears Usable and sets Spared to the
	// reason. It returns when to call it again if nothing happens before; zero = never.
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

var sparedNames = [...]string{"", "too_early", "no_room", "costs_more", "just_silent", "in_time", "costs_money"}

func (s Spared) String() string { return sparedNames[s] }

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
