package opening

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"
)

// TestReasonTexts: every reason has a text for people.
func TestReasonTexts(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			word, _ := strconv.Unquote(lit.Value)
			if n++; word != "" && texts[Reason(word)] == "" {
				t.Errorf("%s has no text", word)
			}
		}
		return true
	})
	if n != len(texts)+1 {
		t.Errorf("%d reasons, %d texts", n, len(texts))
	}
}
