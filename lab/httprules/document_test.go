package httprules

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write docs/HTTP.md")

// TestHTTPDoc holds the product to its rules: each has a test or a reason, and docs/HTTP.md shows them.
func TestHTTPDoc(t *testing.T) {
	const root = "../.."
	rules, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := Scan(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range rules.Check(tests) {
		t.Error(bad)
	}
	name := filepath.Join(root, Document)
	want := rules.Render(tests)
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s is out of date (%v): run  make httpdoc", Document, err)
	}
}
