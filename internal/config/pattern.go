package config

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// alternatives separates patterns in one name: a link has to match only one.
const alternatives = "|"

// IsPattern reports whether the name of a [link.NAME] table stands for every link that it matches: one of its alternatives, as
// [path.Match] does.
func IsPattern(name string) bool { return strings.ContainsAny(name, `*?[\`+alternatives) }

// matches reports whether a pattern stands for a link.
func matches(pattern, link string) bool {
	for one := range strings.SplitSeq(pattern, alternatives) {
		if ok, err := path.Match(one, link); ok && err == nil {
			return true
		}
	}
	return false
}

// Tables returns the names of the [link.NAME] tables that apply to a link: its own first, then patterns, the longest first.
func (c Config) Tables(link string) (names []string) {
	for name := range c.Link {
		if name == link || IsPattern(name) && matches(name, link) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		switch link {
		case a:
			return -1
		case b:
			return 1
		}
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	return names
}

// LinkOf returns the settings of a link. Each key is that of the first of its Tables that sets it.
func (c Config) LinkOf(link string) (l Link) {
	for _, name := range c.Tables(link) {
		t := c.Link[name]
		if len(l.DNS) == 0 {
			l.DNS = t.DNS
		}
		l.Via = cmp.Or(l.Via, t.Via)
		l.Enabled = cmp.Or(l.Enabled, t.Enabled)
		l.Metered = cmp.Or(l.Metered, t.Metered)
		l.Trusted = cmp.Or(l.Trusted, t.Trusted)
		l.MaxRate = cmp.Or(l.MaxRate, t.MaxRate)
		l.Goal = cmp.Or(l.Goal, t.Goal)
		l.Radio = cmp.Or(l.Radio, t.Radio)
		l.Monthly = cmp.Or(l.Monthly, t.Monthly)
	}
	return l
}

// Account returns the table whose Monthly bounds a link: all links that it matches share that limit. "" = none does.
func (c Config) Account(link string) string {
	return c.first(link, func(l Link) bool { return l.Monthly > 0 })
}

// RateTable returns the table whose MaxRate bounds a link, together with the others that it matches. "" = none does.
func (c Config) RateTable(link string) string {
	return c.first(link, func(l Link) bool { return l.MaxRate > 0 })
}

func (c Config) first(link string, sets func(Link) bool) string {
	for _, name := range c.Tables(link) {
		if sets(c.Link[name]) {
			return name
		}
	}
	return ""
}
