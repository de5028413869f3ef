package config

import (
	"cmp"
	"path"
	"reflect"
	"slices"
	"strings"
)

// alternatives separates patterns in one name: a link has to match only one.
const alternatives = "|"

// IsPattern reports whether the name of a [link.NAME] table is a pattern. A pattern stands for every link that one of
// its alternatives matches, as defined by [path.Match].
func IsPattern(name string) bool { return strings.ContainsAny(name, `*?[\`+alternatives) }

// matches reports whether a pattern matches a link.
func matches(pattern, link string) bool {
	for one := range strings.SplitSeq(pattern, alternatives) {
		if ok, err := path.Match(one, link); ok && err == nil {
			return true
		}
	}
	return false
}

// Tables returns the names of the [link.NAME] tables that apply to a link: its own first, then patterns, the longest
// first.
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

// LinkOf returns the settings of a link. The value of each key comes from the first of its Tables that sets the key.
func (c Config) LinkOf(link string) (l Link) {
	all := reflect.ValueOf(&l).Elem()
	for _, name := range c.Tables(link) {
		table := reflect.ValueOf(c.Link[name])
		for i := range all.NumField() {
			if key := all.Field(i); key.IsZero() {
				key.Set(table.Field(i))
			}
		}
	}
	return l
}

// Account returns the name of the table whose Monthly limits a link, "" if there is none. All links that the table
// matches share that limit.
func (c Config) Account(link string) string {
	return c.first(link, func(l Link) bool { return l.Monthly > 0 })
}

// RateTable returns the name of the table whose MaxRate limits a link, "" if there is none. All links that the table
// matches share that limit.
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
