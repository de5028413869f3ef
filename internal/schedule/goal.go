package schedule

import (
	"fmt"
	"strings"
	"time"
)

// Goal decides which links a transfer does not use, whatever scheduler divides the ranges among the others. It may keep state;
// it is not safe for concurrent use. The goal "fastest" is nil: all links are used.
type Goal interface {
	// Spare takes links out of v, as if no new ranges could be asked of them: Usable is false then, and Spared says why. It
	// returns when to ask again if nothing happens before; zero = never.
	Spare(now time.Time, v *View) time.Time
}

// Goals returns the names of the goals.
func Goals() []string { return []string{Fastest, FrugalGoal, CheapestGoal} }

// The names of goals.
const (
	Fastest      = "fastest"
	FrugalGoal   = "frugal"
	CheapestGoal = "cheapest"
)

// DefaultPerPercent is the PerPercent of Cheapest if nothing else is said.
const DefaultPerPercent = 1 << 20

// NewGoal returns a new goal for one transfer; nil for "fastest".
func NewGoal(name string) (Goal, error) {
	switch name {
	case Fastest:
		return nil, nil
	case FrugalGoal:
		return &Frugal{}, nil
	case CheapestGoal:
		return &Cheapest{PerPercent: DefaultPerPercent}, nil
	}
	return nil, fmt.Errorf("unknown goal %q: use one of %s", name, strings.Join(Goals(), ", "))
}

// Spared says why a goal does not use a link.
type Spared uint8

// The reasons.
const (
	NotSpared  Spared = iota
	TooEarly          // it is not known yet what the links in use can do
	NoRoom            // the reorder window is full, or the client does not read faster: another link would not help
	CostsMore         // in joules, than it saves
	JustSilent        // the links in use are silent, but not for long
	InTime            // the links in use will be in time without it
	CostsMoney        // more metered bytes than its speed may cost
)

var sparedNames = [...]string{"", "too_early", "no_room", "costs_more", "just_silent", "in_time", "costs_money"}

func (s Spared) String() string { return sparedNames[s] }

// spare takes a link out of the view.
func (v *View) spare(link int8, reason Spared) {
	v.Links[link].Usable, v.Links[link].Spared = false, reason
}

// left returns how many bytes are still to come.
func (v *View) left() (n int64) {
	n = v.free()
	for i := range v.Attempts {
		if a := &v.Attempts[i]; !a.Hedge {
			n += a.Left()
		}
	}
	return n
}
