package arch

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/tributary-http/tributary/internal/arch/httprules"
)

var update = flag.Bool("update", false, "write docs/HTTP.md")

func TestHTTPDoc(t *testing.T) {
	const root = "../.."
	book, err := httprules.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := httprules.Scan(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range book.Check(tests) {
		t.Error(bad)
	}
	name := filepath.Join(root, httprules.Document)
	want := book.Render(tests)
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%s is out of date (%v): run  make httpdoc", httprules.Document, err)
	}
}
