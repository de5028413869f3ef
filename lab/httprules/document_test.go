package httprules

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write docs/HTTP.md")

// TestHTTPDoc holds the product to its rules: each has a test or a reason. With -update it renders them.
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
	if *update {
		if err := os.WriteFile(filepath.Join(root, Document), []byte(rules.Render(tests)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
