package httprules

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// MutationsFile is the list of mutations, relative to the root of the module.
const MutationsFile = "tools/mutations.toml"

// Mutation breaks the code that guards a rule.
type Mutation struct {
	Rule int
	File string
	Line int    // where Old begins in File
	Old  string // occurs once in File
	New  string
	Dirs []string // of the packages whose tests must fail
	Run  string   // the argument of go test -run
}

// Apply returns the text of File with the mutation in it. The text must hold Old.
func (m Mutation) Apply(text string) string { return strings.Replace(text, m.Old, m.New, 1) }

// Mutations is the list.
type Mutations struct {
	All    []Mutation     // in the order of the file
	Exempt map[int]string // why a required rule has none, by number
}

// LoadMutations reads MutationsFile below root. The second result says what is wrong with it, a line each: a guard that is
// no longer where it was, a rule that none of the tests named proves, a required rule without a mutation or a reason.
func LoadMutations(root string, book *Book, tests Tests) (all *Mutations, bad []string, err error) {
	var file struct {
		Mutation []struct {
			Rule  string   `toml:"rule"`
			File  string   `toml:"file"`
			Old   string   `toml:"old"`
			New   string   `toml:"new"`
			Tests []string `toml:"tests"` // packages, that of the file if there is none
			Run   string   `toml:"run"`   // "" = the subtests that carry the number
		} `toml:"mutation"`
		Exempt []struct {
			Rules  string `toml:"rules"`
			Reason string `toml:"reason"`
		} `toml:"exempt"`
	}
	meta, err := toml.DecodeFile(filepath.Join(root, MutationsFile), &file)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", MutationsFile, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, nil, fmt.Errorf("%s: unknown keys: %v", MutationsFile, unknown)
	}
	all = &Mutations{Exempt: map[int]string{}}
	has := map[int]bool{}
	for _, f := range file.Mutation {
		m := Mutation{File: f.File, Old: f.Old, New: f.New, Dirs: f.Tests, Run: f.Run}
		if m.Rule, err = parseNumber(f.Rule); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", MutationsFile, err)
		}
		if len(m.Dirs) == 0 {
			m.Dirs = []string{path.Dir(m.File)}
		}
		if m.Run == "" {
			m.Run = pattern(m.Rule, tests, m.Dirs)
		}
		has[m.Rule] = true
		bad = append(bad, m.locate(root)...)
		for _, dir := range m.Dirs {
			if !slices.ContainsFunc(tests[m.Rule], func(t Test) bool { return t.Dir == dir }) {
				bad = append(bad, fmt.Sprintf("R%d: no test in %s carries its number: name others by tests = [...]", m.Rule, dir))
			}
		}
		all.All = append(all.All, m)
	}
	for _, x := range file.Exempt {
		numbers, err := parseList(x.Rules)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: exempt: %w", MutationsFile, err)
		}
		if x.Reason == "" {
			return nil, nil, fmt.Errorf("%s: exempt %q needs a reason", MutationsFile, x.Rules)
		}
		for _, n := range numbers {
			if has[n] {
				bad = append(bad, fmt.Sprintf("R%d has a mutation and a reason for having none", n))
			}
			all.Exempt[n] = x.Reason
		}
	}
	for _, n := range book.Required {
		if !has[n] && all.Exempt[n] == "" {
			bad = append(bad, fmt.Sprintf("R%d has no mutation in %s: add the line that guards it, or a reason", n, MutationsFile))
		}
	}
	return all, bad, nil
}

// locate finds the line and says what keeps the mutation from being applied.
func (m *Mutation) locate(root string) (bad []string) {
	text, err := os.ReadFile(filepath.Join(root, m.File))
	switch n := strings.Count(string(text), m.Old); {
	case err != nil:
		return []string{fmt.Sprintf("R%d: %v", m.Rule, err)}
	case m.Old == "" || m.Old == m.New:
		return []string{fmt.Sprintf("R%d: old and new say nothing", m.Rule)}
	case n != 1:
		return []string{fmt.Sprintf("R%d: %s holds %q %d times, want once: update %s", m.Rule, m.File, m.Old, n, MutationsFile)}
	}
	before, _, _ := strings.Cut(string(text), m.Old)
	m.Line = 1 + strings.Count(before, "\n")
	return nil
}

// pattern matches the tests in dirs that carry the number of a rule: functions named after it, and subtests of others.
func pattern(rule int, tests Tests, dirs []string) string {
	var all []string
	for _, t := range tests[rule] {
		if !slices.Contains(dirs, t.Dir) {
			continue
		}
		p := "^" + t.Func + "$"
		if !slices.Contains(functionNumbers(t.Func), rule) {
			p += fmt.Sprintf("/(^|[^0-9A-Za-z])R%d([^0-9]|$)", rule)
		}
		all = append(all, p)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "|")
}
