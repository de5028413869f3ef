package httprules

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write writes files, given as alternating path and text, below a new root.
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
	rules, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	tests := Tests{2: {{"d", "d/f", "T"}, {"d", "d/f", "U"}, {"e", "e/g", "V"}}, 7: {{"d", "d/f", "T"}}}
	bad := rules.Check(tests)
	for i, want := range []string{"R3 has no test", "R9 is required", "names R7"} {
		if len(bad) != 3 || !strings.Contains(bad[i], want) {
			t.Fatalf("%q, want %q at %d", bad, want, i)
		}
	}
	const doc = "\n## First\n\n**R3** three *(design)*\n\n**R1** one *(RFC)*\n- not yet\n" +
		"\n## Second\n\n**R2** two *(RFC)*\n- d/f T, U\n- e/g V\n"
	if got, ok := strings.CutPrefix(rules.Render(tests), preface); !ok || got != doc {
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
	if got, err := ParseList("R1-R3, R9"); err != nil || !slices.Equal(got, []int{1, 2, 3, 9}) {
		t.Errorf("%v, %v", got, err)
	}
}
