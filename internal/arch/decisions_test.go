package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDecisions: the index and the comment of a package name each page of docs/decisions, and no other.
func TestDecisions(t *testing.T) {
	index, err := os.ReadFile("../../docs/decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]string{} // page -> package
	for _, p := range packages(t, "../..") {
		for _, f := range p.files {
			_, list, _ := strings.Cut(f.Doc.Text(), "Reasons: docs/decisions/")
			for _, page := range regexp.MustCompile(`[a-z0-9-]+\.md`).FindAllString(list, -1) {
				named[page] = p.path
			}
		}
	}
	pages, err := filepath.Glob("../../docs/decisions/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		name := filepath.Base(page)
		if name == "README.md" {
			continue
		}
		if p := named[name]; p == "" {
			t.Errorf("no package comment names docs/decisions/%s", name)
		} else if !regexp.MustCompile(`(?m)^\| ` + p + ` \|.*\(` + name + `\)`).Match(index) {
			t.Errorf("docs/decisions/README.md does not list %s in the row of %s", name, p)
		}
		delete(named, name)
	}
	for page, p := range named {
		t.Errorf("%s names docs/decisions/%s, which is not there", p, page)
	}
}
