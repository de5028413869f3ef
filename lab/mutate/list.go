package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/tributary-http/tributary/lab/httprules"
)

//go:embed mutations.toml
var listed string

// listName is the name of the list in messages.
const listName = "lab/mutate/mutations.toml"

// mutation breaks one line of the product.
type mutation struct {
	rule   int    // the HTTP rule that the line guards, 0 = an invariant of the core
	guards string // what the line guards if it is not a rule
	file   string // relative to the root of the repository
	line   int    // where old begins in file
	old    string // occurs once in file
	new    string
	dirs   []string // packages whose tests must fail, relative to the root
	run    string   // argument of go test -run
	stale  string   // why the mutation cannot be applied, "" = it can
}

// name returns what the mutation is about, for a column.
func (m mutation) name() string {
	if m.rule == 0 {
		return "core"
	}
	return fmt.Sprintf("R%d", m.rule)
}

// apply returns the text of file with the mutation in it. The text must contain old.
func (m mutation) apply(text string) string { return strings.Replace(text, m.old, m.new, 1) }

// parse reads a list of mutations of the tree below root. The second result lists the faults, one per line: a line that
// is no longer in the code, a rule that none of the named tests proves, or a required rule that has neither a mutation
// nor a reason for having none.
func parse(list, root string, rules *httprules.Rules, tests httprules.Tests) (all []mutation, bad []string, err error) {
	var file struct {
		Mutation []struct {
			Rule   string   `toml:"rule"`
			Guards string   `toml:"guards"`
			File   string   `toml:"file"`
			Old    string   `toml:"old"`
			New    string   `toml:"new"`
			Tests  []string `toml:"tests"` // packages; that of the file if empty
			Run    string   `toml:"run"`   // "" = the subtests that carry the number
		} `toml:"mutation"`
		Exempt []struct {
			Rules  string `toml:"rules"`
			Reason string `toml:"reason"`
		} `toml:"exempt"`
	}
	meta, err := toml.Decode(list, &file)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", listName, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return nil, nil, fmt.Errorf("%s: unknown keys: %v", listName, unknown)
	}
	has, exempt := map[int]bool{}, map[int]bool{}
	for _, f := range file.Mutation {
		m := mutation{
			guards: f.Guards,
			file:   f.File,
			old:    f.Old,
			new:    f.New,
			dirs:   f.Tests,
			run:    f.Run,
		}
		if len(m.dirs) == 0 {
			m.dirs = []string{path.Dir(m.file)}
		}
		switch {
		case (f.Rule == "") == (f.Guards == ""):
			return nil, nil, fmt.Errorf("%s: %q: want a rule, or what the line guards", listName, m.old)
		case f.Rule == "" && m.run == "":
			return nil, nil, fmt.Errorf("%s: %q: want the tests to run", listName, m.guards)
		case f.Rule != "":
			if m.rule, err = httprules.ParseNumber(f.Rule); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", listName, err)
			}
			if m.run == "" {
				m.run = pattern(m.rule, tests, m.dirs)
			}
			has[m.rule] = true
			for _, dir := range m.dirs {
				if !slices.ContainsFunc(tests[m.rule], func(t httprules.Test) bool { return t.Dir == dir }) {
					bad = append(bad, fmt.Sprintf("R%d: no test in %s carries its number: name others by tests = [...]",
						m.rule, dir))
				}
			}
		}
		if m.locate(root); m.stale == "" && f.Run != "" {
			m.stale = noTest(root, m.dirs, f.Run)
		}
		if m.stale != "" {
			bad = append(bad, fmt.Sprintf("%s: stale: %s: update %s", cmp.Or(f.Rule, f.Guards), m.stale, listName))
		}
		all = append(all, m)
	}
	for _, x := range file.Exempt {
		numbers, err := httprules.ParseList(x.Rules)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: exempt: %w", listName, err)
		}
		if x.Reason == "" {
			return nil, nil, fmt.Errorf("%s: exempt %q needs a reason", listName, x.Rules)
		}
		for _, n := range numbers {
			if has[n] {
				bad = append(bad, fmt.Sprintf("R%d has a mutation and a reason for having none", n))
			}
			exempt[n] = true
		}
	}
	for _, n := range rules.Required {
		if !has[n] && !exempt[n] {
			bad = append(bad, fmt.Sprintf("R%d has no mutation in %s: add the line that guards it, or a reason", n,
				listName))
		}
	}
	return all, bad, nil
}

// locate finds the line, or records why the mutation cannot be applied.
func (m *mutation) locate(root string) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	switch n := strings.Count(string(text), m.old); {
	case err != nil:
		m.stale = err.Error()
	case m.old == "" || m.old == m.new:
		m.stale = "old and new say nothing"
	case n != 1:
		m.stale = fmt.Sprintf("%s holds %q %d times, want once", m.file, m.old, n)
	default:
		before, _, _ := strings.Cut(string(text), m.old)
		m.line = 1 + strings.Count(before, "\n")
	}
}

// testFunc matches the name of a test in a Go file.
var testFunc = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// noTest says which part of a pattern for go test -run matches no test of any of dirs; "" = each matches one.
func noTest(root string, dirs []string, run string) string {
	var names []string
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(root, dir, "*_test.go")) // fails only for a bad pattern
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err.Error()
			}
			for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
				names = append(names, m[1])
			}
		}
	}
	for part := range strings.SplitSeq(run, "|") {
		function, _, _ := strings.Cut(part, "/")
		matches, err := regexp.Compile(function)
		if err != nil {
			return err.Error()
		}
		if !slices.ContainsFunc(names, matches.MatchString) {
			return fmt.Sprintf("no test of %v is named like %q", dirs, function)
		}
	}
	return ""
}

// pattern returns a pattern for the tests in dirs that carry the number of a rule: functions named after it, and
// subtests of other functions.
func pattern(rule int, tests httprules.Tests, dirs []string) string {
	var all []string
	for _, t := range tests[rule] {
		if !slices.Contains(dirs, t.Dir) {
			continue
		}
		p := "^" + t.Func + "$"
		if !t.NamedAfter(rule) {
			p += fmt.Sprintf("/(^|[^0-9A-Za-z])R%d([^0-9]|$)", rule)
		}
		all = append(all, p)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), "|")
}
