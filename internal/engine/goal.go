package engine

import (
	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/schedule"
)

// asked returns the link as the request's goal has it: that of the configuration if it names none.
func (q *Request) asked(l link.Link) link.Link {
	switch q.Goal {
	case schedule.Fastest:
		l.Frugal, l.PerPercent = false, 0
	case schedule.FrugalGoal:
		if l.Frugal, l.PerPercent = true, 0; l.Radio == nil {
			l.Radio = l.Presumed
		}
	case schedule.CheapestGoal:
		if l.Frugal = false; l.PerPercent == 0 {
			l.PerPercent = schedule.DefaultPerPercent
		}
	}
	return l
}
