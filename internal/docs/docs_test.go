package docs

import (
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func pages(t *testing.T) []Page {
	t.Helper()
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 15 {
		t.Fatalf("only %d pages", len(all))
	}
	return all
}

func TestBlocks(t *testing.T) {
	const text = "# A\n\n    make x\n\ntext\n\n<!-- not run: no y -->\n```sh\n  y \\\n  z\n# c\n```\n\n1. item\n\n        not code\n\n" +
		"   <!-- run by TestB -->\n   ```sh\n   b\n   ```\n\nend\n\n<!-- away -->\n\ntext\n\n    $ make c\n    output\n"
	want := []Block{
		{Line: 3, Text: "make x\n"},
		{Line: 9, Language: "sh", Text: "  y \\\n  z\n# c\n", Note: "not run: no y"},
		{Line: 20, Language: "sh", Text: "b\n", Note: "run by TestB"},
		{Line: 29, Text: "$ make c\noutput\n"},
	}
	got := Blocks(text)
	if !slices.Equal(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
	for i, commands := range [][]string{{"make x"}, {"  y    z"}, {"b"}, {"make c"}} {
		if c := got[i].Commands(); !slices.Equal(c, commands) {
			t.Errorf("%d: commands %q, want %q", i, c, commands)
		}
		if !got[i].IsCommands() {
			t.Errorf("%d: no commands", i)
		}
	}
}

func TestAnchors(t *testing.T) {
	got := Anchors("# A b, c: d?\n\n## `e` f-g (h)\n\n    # no heading\n")
	if len(got) != 2 || !got["a-b-c-d"] || !got["e-f-g-h"] {
		t.Errorf("%v", got)
	}
}

// wholePages are pages whose commands are all run by a target of the Makefile; they say so.
var wholePages = map[string]string{"docs/INSTALL.md": "dist-test"}

// Every block of commands is run by TestDocs, is run by an existing test, or has a reason next to it.
func TestCommandsAreRun(t *testing.T) {
	tests, targets := testNames(t), makeTargets(t)
	counted := map[string]int{}
	for _, p := range pages(t) {
		target := wholePages[p.Path]
		whole := target != "" && targets[target] && strings.Contains(p.Text, "`make "+target+"` runs the commands of this page")
		for _, b := range Blocks(p.Text) {
			if !b.IsCommands() {
				continue
			}
			commands := len(b.Commands())
			reason, not := strings.CutPrefix(b.Note, "not run: ")
			by, run := strings.CutPrefix(b.Note, "run by ")
			switch {
			case whole && b.Note == "":
				counted["run by a target of the Makefile"] += commands
			case b.IsRun():
				counted["run by TestDocs"] += commands
			case not && len(reason) >= 10:
				counted["not run, with a reason"] += commands
			case run:
				counted["run by other tests"] += commands
				for name := range strings.SplitSeq(by, ", ") {
					if !tests[name] {
						t.Errorf("%s:%d: there is no test %s", p.Path, b.Line, name)
					}
				}
			default:
				t.Errorf("%s:%d: %q is not run: fence it with ```sh, or put <!-- run by TestName --> or <!-- not run: REASON --> above it",
					p.Path, b.Line, b.Commands()[0])
			}
			for _, c := range b.Commands() {
				if m := regexp.MustCompile(`(?:^|sudo |&& )make (?:[A-Z]+=\S+ )*([a-z-]+)`).FindStringSubmatch(c); m != nil && !targets[m[1]] {
					t.Errorf("%s:%d: the Makefile has no target %s", p.Path, b.Line, m[1])
				}
			}
		}
	}
	t.Log(counted)
	if counted["run by TestDocs"] < 40 {
		t.Errorf("TestDocs runs %d commands only", counted["run by TestDocs"])
	}
}

// testNames returns the tests of both modules.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names, declared := map[string]bool{}, regexp.MustCompile(`(?m)^func ((?:Test|Example)\w+)\(`)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil || len(names) < 100 {
		t.Fatal(len(names), err)
	}
	return names
}

func makeTargets(t *testing.T) map[string]bool {
	t.Helper()
	targets := map[string]bool{}
	for _, line := range strings.Split(read(t, "Makefile"), "\n") {
		if m := regexp.MustCompile(`^([a-z-]+):`).FindStringSubmatch(line); m != nil {
			targets[m[1]] = true
		}
	}
	return targets
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every link to a file or a heading of the repository has an existing target.
func TestLinksLead(t *testing.T) {
	checked := 0
	for _, p := range pages(t) {
		for _, l := range Links(p.Text) {
			u, err := url.Parse(l.Target)
			if err != nil {
				t.Errorf("%s:%d: %v", p.Path, l.Line, err)
				continue
			}
			if u.Scheme != "" {
				continue
			}
			checked++
			to := p.Path
			if u.Path != "" {
				to = path.Join(path.Dir(p.Path), u.Path)
			}
			text, err := os.ReadFile(filepath.Join(root, to))
			if info, statErr := os.Stat(filepath.Join(root, to)); statErr != nil || !info.IsDir() && err != nil {
				t.Errorf("%s:%d: %s is not in the repository", p.Path, l.Line, l.Target)
				continue
			}
			if u.Fragment != "" && !Anchors(string(text))[u.Fragment] {
				t.Errorf("%s:%d: %s has no heading %q", p.Path, l.Line, to, u.Fragment)
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d links only", checked)
	}
}
