package httprules

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write puts files, path and text in turn, below a new root.
func write(t *testing.T, files ...string) (root string) {
	t.Helper()
	root = t.TempDir()
	for i := 0; i < len(files); i += 2 {
		name := filepath.Join(root, files[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const tested = `package x
var table = []string{"R1 row"}
var unused = []string{"R2 row"}
type rig struct{}
func (rig) check() { run("R3 R4 of a method") }
func TestOne(t *testing.T) {
	for _, n := range table { t.Run(n, nil) }
	rig{}.check()
	t.Errorf("R5 %v", t)
	run("not R6", "R7", "R8, R9", "R10x", "R96/R97 both")
}
func TestR011_R012_Two(t *testing.T) {
	table := 0
	_ = table
}
func FuzzR13(f *testing.F) {}
`

func TestScan(t *testing.T) {
	root := write(t, "a/x_test.go", tested, "a/x.go", `package x; var R = "R20 no test"`, "a/testdata/x_test.go", "no Go")
	tests, err := Scan(root)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int]string{}
	for n, of := range tests {
		for _, t := range of {
			got[n] += t.Dir + " " + t.File + " " + t.Func + ";"
		}
	}
	const one, two, three = "a a/x_test.go TestOne;", "a a/x_test.go TestR011_R012_Two;", "a a/x_test.go FuzzR13;"
	want := map[int]string{1: one, 3: one, 4: one, 7: one, 8: one, 9: one, 96: one, 97: one, 11: two, 12: two, 13: three}
	for n := range 100 {
		if got[n] != want[n] {
			t.Errorf("R%d: %q, want %q", n, got[n], want[n])
		}
	}
}

func TestCheck(t *testing.T) {
	root := write(t, RulesFile, `
required = "R1-R3, R9"
[[section]]
title = "First"
[section.rules]
R3.text = "three"
R3.source = "design"
R1.text = "one"
R1.source = "RFC"
R1.reason = "not yet"
[[section]]
title = "Second"
[section.rules]
R2.text = "two"
R2.source = "RFC"
`)
	book, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	tests := Tests{2: {{"d", "d/f", "T"}, {"d", "d/f", "U"}, {"e", "e/g", "V"}}, 7: {{"d", "d/f", "T"}}}
	bad := book.Check(tests)
	for i, want := range []string{"R3 has no test", "R9 is required", "names R7"} {
		if len(bad) != 3 || !strings.Contains(bad[i], want) {
			t.Fatalf("%q, want %q at %d", bad, want, i)
		}
	}
	const doc = "\n## First\n\n**R3** three *(design)*\n\n**R1** one *(RFC)*\n- not yet\n" +
		"\n## Second\n\n**R2** two *(RFC)*\n- d/f T, U\n- e/g V\n"
	if got, ok := strings.CutPrefix(book.Render(tests), preface); !ok || got != doc {
		t.Errorf("%s", got)
	}
}

func TestLoadErrors(t *testing.T) {
	const head = "required = \"R1\"\n[[section]]\ntitle = \"x\"\n[section.rules]\n"
	for _, tt := range []struct{ text, want string }{
		{"required = \"1-2\"", `"1"`},
		{head + "R01.text = \"a\"\nR01.source = \"b\"", "R01"},
		{head + "R1.text = \"a\"", "source"},
		{head + "R1.text = \"a\"\nR1.source = \"b\"\nR1.why = \"c\"", "why"},
		{head + "R1.text = \"a\"\nR1.source = \"b\"\n[[section]]\n[section.rules]\nR1.text = \"a\"\nR1.source = \"b\"", "twice"},
	} {
		if _, err := Load(write(t, RulesFile, tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.text, err, tt.want)
		}
	}
	if got, err := parseList("R1-R3, R9"); err != nil || !slices.Equal(got, []int{1, 2, 3, 9}) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestMutations(t *testing.T) {
	const rules = "required = \"R1-R3\"\n[[section]]\ntitle = \"x\"\n[section.rules]\n"
	tests := Tests{
		1: {{"a", "a/x_test.go", "TestOne"}, {"b", "b/x_test.go", "TestR001_Other"}},
		2: {{"b", "b/x_test.go", "TestR001_Other"}},
	}
	load := func(list string) (*Mutations, []string, error) {
		root := write(t, RulesFile, rules, MutationsFile, list, "a/x.go", "package a\n\nvar twice, twice2, once = 1, 2, 3\n")
		book, err := Load(root)
		if err != nil {
			t.Fatal(err)
		}
		return LoadMutations(root, book, tests)
	}
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
	all, bad, err := load(good)
	if err != nil || len(bad) > 0 || len(all.All) != 1 || all.Exempt[3] != "others do it" {
		t.Fatalf("%+v, %q, %v", all, bad, err)
	}
	m := all.All[0]
	if m.Line != 3 || !slices.Equal(m.Dirs, []string{"a"}) || m.Run != "^TestOne$/(^|[^0-9A-Za-z])R1([^0-9]|$)" {
		t.Errorf("%+v", m)
	}
	if got := m.Apply("a once b"); got != "a never b" {
		t.Errorf("%q", got)
	}
	all, _, err = load(good + "tests = [\"a\", \"b\"]")
	if err != nil || all.All[0].Run != "^TestOne$/(^|[^0-9A-Za-z])R1([^0-9]|$)|^TestR001_Other$" {
		t.Errorf("%+v, %v", all, err)
	}
	for _, tt := range []struct{ change, to, want string }{
		{`old = "once"`, `old = "gone"`, "0 times"},
		{`old = "once"`, `old = "twice"`, "2 times"},
		{`new = "never"`, `new = "once"`, "say nothing"},
		{`"a/x.go"`, `"a/y.go"`, "y.go"},
		{`"a/x.go"`, `"a/x.go"` + "\ntests = [\"c\"]", "no test in c"},
		{"R2-R3", "R2", "R3 has no mutation"},
		{"R2-R3", "R1-R3", "R1 has a mutation and a reason"},
	} {
		_, bad, err := load(strings.Replace(good, tt.change, tt.to, 1))
		if err != nil || !strings.Contains(strings.Join(bad, "; "), tt.want) {
			t.Errorf("%s: %q, %v, want %q", tt.to, bad, err, tt.want)
		}
	}
	for _, tt := range []struct{ change, to, want string }{
		{`rule = "R1"`, `rule = "1"`, "rule number"},
		{`reason = "others do it"`, "", "reason"},
		{"old =", "olde =", "unknown keys"},
	} {
		if _, _, err := load(strings.Replace(good, tt.change, tt.to, 1)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.to, err, tt.want)
		}
	}
}
