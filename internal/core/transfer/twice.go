package transfer

import (
	"slices"

	"github.com/tributary-http/tributary/internal/core/segment"
)

// compareTwice starts the spot checks that cost nothing: an attempt over a proven link will deliver once more what a
// doubtful link delivered last, for example because the kept attempt is read on.
func (m *Machine) compareTwice() {
	if m.doubtful() < 0 {
		return
	}
	for i := range m.links {
		s := &m.links[i].spot
		if s.trust != unknown || s.only.Len() == 0 || s.tail.Len() < spotLeast || m.twice(s) {
			continue
		}
		for j := range m.attempts {
			a := &m.attempts[j]
			if a.cursor <= s.tail.Start && m.brings(a, s.tail) && m.links[a.link].spot.trust == proven {
				c := check{attempt: m.id(), twice: a.id, prefix: s.tail, with: -1}
				m.addCheck(s, c)
				m.act(Action{Kind: Compare, Link: int8(i), Attempt: c.attempt, Range: c.prefix})
				break
			}
		}
	}
}

// twice reports whether such a check is under way.
func (m *Machine) twice(s *spot) bool {
	return slices.ContainsFunc(s.checks, func(c check) bool { return c.twice != 0 })
}

// brings reports whether an attempt is to deliver the end of a range.
func (m *Machine) brings(a *attempt, r segment.Range) bool {
	return a.hasHead && a.prefix == 0 && r.End <= a.want.End && !m.links[a.link].silent
}

// dropTwice ends those of these checks whose bytes will not arrive a second time.
func (m *Machine) dropTwice() {
	for i := range m.links {
		s := &m.links[i].spot
		for j := len(s.checks) - 1; j >= 0; j-- {
			if c := s.checks[j]; c.twice != 0 {
				if a := m.attempt(c.twice); a == nil || !m.brings(a, c.prefix) {
					m.uncheck(s, j)
				}
			}
		}
	}
}
