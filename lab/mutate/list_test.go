package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/lab/httprules"
)

func TestParse(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "a", "x.go"), []byte("package a\n\nvar twice, twice2, once = 1, 2, 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "a", "x_test.go"), []byte("package a\n\nfunc TestInvariants(t *testing.T) {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	rules := &httprules.Rules{Required: []int{1, 2, 3}}
	tests := httprules.Tests{
		1: {{Dir: "a", File: "a/x_test.go", Func: "TestOne"}, {Dir: "b", File: "b/x_test.go", Func: "TestR001_Other"}},
		2: {{Dir: "b", File: "b/x_test.go", Func: "TestR001_Other"}},
	}
	load := func(list string) ([]mutation, []string, error) { return parse(list, root, rules, tests) }
	const good = `
[[exempt]]
rules = "R2-R3"
reason = "others do it"
[[mutation]]
rule = "R1"
file = "a/x.go"
old = "once"
new = "never"
`
	const core = `
[[mutation]]
guards = "an invariant"
file = "a/x.go"
old = "once"
new = "never"
tests = ["a"]
run = "Invariants"
`
	all, bad, err := load(good + core)
	if err != nil || len(bad) > 0 || len(all) != 2 {
		t.Fatalf("%+v, %q, %v", all, bad, err)
	}
	m := all[0]
	if m.line != 3 || !slices.Equal(m.dirs, []string{"a"}) || m.run != "^TestOne$/(^|[^0-9A-Za-z])R1([^0-9]|$)" || m.name() != "R1" {
		t.Errorf("%+v", m)
	}
	if got := m.apply("a once b"); got != "a never b" {
		t.Errorf("%q", got)
	}
	if m := all[1]; m.name() != "core" || m.run != "Invariants" || !slices.Equal(m.dirs, []string{"a"}) {
		t.Errorf("%+v", m)
	}
	all, _, err = load(good + "tests = [\"a\", \"b\"]")
	if err != nil || all[0].run != "^TestOne$/(^|[^0-9A-Za-z])R1([^0-9]|$)|^TestR001_Other$" {
		t.Errorf("%+v, %v", all, err)
	}
	all, bad, err = load(good + strings.Replace(core, "Invariants", "Invariants|TestRetired/x", 1))
	if err != nil || !strings.Contains(strings.Join(bad, "; "), `is named like "TestRetired"`) || all[1].stale == "" {
		t.Errorf("a pattern that matches no test: %q, %v", bad, err)
	}
	for _, tt := range []struct {
		change, to, want string
		stale            bool
	}{
		{`old = "once"`, `old = "gone"`, "0 times", true},
		{`old = "once"`, `old = "twice"`, "2 times", true},
		{`new = "never"`, `new = "once"`, "say nothing", true},
		{`"a/x.go"`, `"a/y.go"`, "y.go", true},
		{`"a/x.go"`, `"a/x.go"` + "\ntests = [\"c\"]", "no test in c", false},
		{"R2-R3", "R2", "R3 has no mutation", false},
		{"R2-R3", "R1-R3", "R1 has a mutation and a reason", false},
	} {
		all, bad, err := load(strings.Replace(good, tt.change, tt.to, 1))
		if err != nil || !strings.Contains(strings.Join(bad, "; "), tt.want) || (all[0].stale != "") != tt.stale {
			t.Errorf("%s: %q, %v, want %q", tt.to, bad, err, tt.want)
		}
	}
	for _, tt := range []struct{ change, to, want string }{
		{`rule = "R1"`, `rule = "1"`, "rule number"},
		{`rule = "R1"`, "", "want a rule"},
		{`rule = "R1"`, `guards = "x"`, "want the tests"},
		{`reason = "others do it"`, "", "reason"},
		{"old =", "olde =", "unknown keys"},
	} {
		if _, _, err := load(strings.Replace(good, tt.change, tt.to, 1)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.to, err, tt.want)
		}
	}
}

// TestListed: every mutation of the list can be applied to the code as it is, and every rule has one.
func TestListed(t *testing.T) {
	all, bad, err := load(filepath.Join("..", ".."))
	if err != nil || len(all) == 0 {
		t.Fatalf("%d mutations, %v", len(all), err)
	}
	for _, b := range bad {
		t.Error(b)
	}
}
