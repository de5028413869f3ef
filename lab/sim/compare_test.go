package sim

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

var update = flag.Bool("update", false, "write the golden summary")

// perClass is the number of scenarios of each class in the summary.
const perClass = 10

// checked is the number of scenarios of each class in which the invariants are checked.
const checked = 50

// whole reports whether tables are computed as a whole: with SIM_LONG (make sim), and to write them. Otherwise a part of each is, and
// compared with the same part of the file: the simulation is deterministic, so that a change of behaviour shows there, too.
func whole() bool { return *update || os.Getenv("SIM_LONG") != "" }

// TestSummary compares the product's schedulers over all classes; all schedulers if the table is computed as a whole. The result is a
// file in the tree, so that a change to any of them shows: go test -C lab ./sim -run Summary -update
func TestSummary(t *testing.T) {
	table := &Table{Schedulers: schedule.Names(), Classes: Classes()}
	if whole() {
		table.Schedulers = Contenders()
	}
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
					for n := uint64(perClass); n < checked; n++ { // only to check the invariants
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
	if err != nil {
		t.Fatal(err)
	}
	if whole() && string(want) != b.String() || !contains(string(want), b.String()) {
		t.Errorf("%s differs. If that is meant: go test -C lab ./sim -run Summary -update\n%s", golden, b.String())
	}
	before := inDoc(t, doc, "summary", string(want))
	for _, name := range Contenders() {
		if !strings.Contains(before, "**"+name+"**") {
			t.Errorf("%s does not describe %s", doc, name)
		}
	}
}

// contains reports whether each line of part is a line of text.
func contains(text, part string) bool {
	for line := range strings.Lines(part) {
		if !strings.Contains("\n"+text, "\n"+line) {
			return false
		}
	}
	return true
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
