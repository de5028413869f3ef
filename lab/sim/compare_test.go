package sim

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

var update = flag.Bool("update", false, "write the golden summary")

// perClass is the number of scenarios of each class in the summary.
const perClass = 10

// perPair returns how many scenarios of each class a scheduler runs: 50 if it is the product's own, otherwise no more than the
// summary needs; with SIM_LONG (make sim) always 50.
func perPair(scheduler string) uint64 {
	if os.Getenv("SIM_LONG") != "" || slices.Contains(schedule.Names(), scheduler) {
		return 50
	}
	return perClass
}

// TestSummary compares all schedulers over all classes. The result is a file in the tree, so that a change to any of them shows: go
// test -C lab ./sim -run Summary -update
func TestSummary(t *testing.T) {
	table := &Table{Schedulers: Contenders(), Classes: Classes()}
	table.Scores = make([][]Score, len(table.Schedulers))
	for i := range table.Scores {
		table.Scores[i] = make([]Score, len(table.Classes))
	}
	t.Run("classes", func(t *testing.T) {
		for k, c := range table.Classes {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				scenarios, err := c.Scenarios(perClass)
				if err != nil {
					t.Fatal(err)
				}
				for i, name := range table.Schedulers {
					s, err := Compare(scenarios, name)
					if err != nil {
						t.Error(err)
					}
					table.Scores[i][k] = s
					for n := uint64(perClass); n < perPair(name); n++ { // only to check the invariants
						s := c.At(n)
						s.Scheduler = name
						if _, err := Run(s); err != nil {
							t.Errorf("%s, scenario %d: %v", name, n, err)
						}
					}
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	var b strings.Builder
	if _, err := table.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	golden, doc := filepath.Join("testdata", "summary.md"), filepath.Join("..", "..", "docs", "SCHEDULERS.md")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(want) != b.String() {
		t.Errorf("%s differs (%v). If that is meant: go test -C lab ./sim -run Summary -update\n%s", golden, err, b.String())
	}
	before := inDoc(t, doc, "summary", b.String())
	for _, name := range table.Schedulers {
		if !strings.Contains(before, "**"+name+"**") {
			t.Errorf("%s does not describe %s", doc, name)
		}
	}
}

// inDoc checks a part of a document, between two comments of that name, against want, or writes it. It returns the text before that
// part.
func inDoc(t *testing.T, doc, name, want string) (before string) {
	t.Helper()
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
	before, rest, ok := strings.Cut(string(text), begin)
	shown, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s: where is the %s?", doc, name)
	}
	switch {
	case *update:
		if err := os.WriteFile(doc, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case shown != want:
		t.Errorf("%s shows something else: go test -C lab ./sim -run %s -update\n%s", doc, t.Name(), want)
	}
	return before
}
