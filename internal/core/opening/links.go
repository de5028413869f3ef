package opening

import (
	"slices"

	"github.com/tributary-http/tributary/internal/core/health"
)

// Link holds the known facts about a link when a GET starts.
type Link struct {
	Name      string
	State     health.State
	Metric    int  // metric of the system's routes: the lowest is preferred
	Untrusted bool // the link's operator must not see credentials
}

// Order returns the indices of the links that may carry requests, in order of preference for the first request. Links over which the
// origin recently refused its objects become a last resort, unless they are the only ones up (R118).
func (o *Opening) Order(all []Link) (order []int8) {
	for _, l := range all {
		if l.State == health.Up && !o.memory.Excluded[l.Name] {
			o.barred = o.memory.Excluded
			break
		}
	}
	for i := range all {
		order = append(order, int8(i))
	}
	slices.SortStableFunc(order, func(a, b int8) int { return all[a].Metric - all[b].Metric })
	if o.exposes {
		return entrusted(order, all)
	}
	return order
}

// Allows reports whether a link that appears after Order may also carry requests.
func (o *Opening) Allows(untrusted bool) bool { return !o.exposes || !untrusted }

// Resort reports whether a link is a last resort: it carries requests only when no other link can serve the object.
func (o *Opening) Resort(name string) bool { return o.barred[name] }

// entrusted returns the links, best first, that may see the content of the request: the trusted links and, unless one of them is
// up, the best untrusted one (R205).
func entrusted(order []int8, all []Link) (out []int8) {
	resort, up := int8(-1), false
	for _, i := range order {
		switch {
		case !all[i].Untrusted:
			out = append(out, i)
			up = up || all[i].State == health.Up
		case resort < 0 && all[i].State != health.Down:
			resort = i
		}
	}
	if !up && resort >= 0 {
		out = append(out, resort)
	}
	return out
}
