package tributary

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The package comment lists every reason that a response of this package can have, and no other reason.
func TestReasonsAreListed(t *testing.T) {
	source, err := parser.ParseFile(token.NewFileSet(), "../../internal/core/opening/reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	ast.Inspect(source, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			word, _ := strconv.Unquote(l.Value)
			want = append(want, word)
		}
		return true
	})
	want = slices.DeleteFunc(want, func(word string) bool { return word == "" || word == "crowded" }) // used only by the proxy
	doc, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(doc.Doc.Text()) {
		if item, ok := strings.CutPrefix(line, "  - "); ok {
			words, _, _ := strings.Cut(item, ":")
			got = append(got, strings.Split(words, ", ")...)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 20 || !slices.Equal(got, want) {
		t.Errorf("listed: %q\nreasons: %q", got, want)
	}
}

// The program in the guide is the same as ExampleTransport.
func TestGuide(t *testing.T) {
	main := function(t, "../../docs/guides/go.md", "func main() {\n", "}\n")
	if example := function(t, "example_test.go", "func ExampleTransport() {\n", "}\n"); main != example {
		t.Errorf("docs/guides/go.md has\n%s\nexample_test.go\n%s", main, example)
	}
}

// function returns the body of a function in a file.
func function(t *testing.T, file, first, last string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "\n"+first)
	body, _, closed := strings.Cut(rest, "\n"+last)
	if !ok || !closed {
		t.Fatalf("%s has no function %q", file, first)
	}
	return body
}
