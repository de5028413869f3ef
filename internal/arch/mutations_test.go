package arch

import (
	"testing"

	"github.com/tributary-http/tributary/internal/arch/httprules"
)

// TestMutations holds the list of mutations to the code: every required rule has one whose line is where the list says, or
// a reason. tools/mutate.sh tries them.
func TestMutations(t *testing.T) {
	const root = "../.."
	book, err := httprules.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := httprules.Scan(root)
	if err != nil {
		t.Fatal(err)
	}
	_, bad, err := httprules.LoadMutations(root, book, tests)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bad {
		t.Error(b)
	}
}
