package engine

import (
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/net/link"
)

// asked returns the link with the goal of the request, or with the goal of the configuration if the request names none.
func (q *Request) asked(l link.Link) link.Link {
	switch q.Goal {
	case schedule.Fastest:
		l.Frugal, l.Cheapest = false, false
	case schedule.FrugalGoal:
		if l.Frugal, l.Cheapest = true, false; l.Radio == nil {
			l.Radio = l.Presumed
		}
	case schedule.CheapestGoal:
		l.Frugal, l.Cheapest = false, true
	}
	return l
}

// pays reports whether a request may use a link.
func (q *Request) pays(l link.Link) bool { return !l.Metered || !q.unmetered() }

// unmetered reports whether only links that cost nothing may carry the request.
func (q *Request) unmetered() bool { return q.Unmetered != nil && q.Unmetered() }
