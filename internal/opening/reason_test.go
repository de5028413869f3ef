package opening

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestReasonsAreDocumented checks the table in docs/ARCHITECTURE.md against the constants.
func TestReasonsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := parser.ParseFile(token.NewFileSet(), "reason.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	ast.Inspect(source, func(n ast.Node) bool {
		v, ok := n.(*ast.BasicLit)
		if !ok || v.Kind != token.STRING || v.Value == `""` {
			return true
		}
		reason := strings.Trim(v.Value, `"`)
		if seen[reason] {
			t.Errorf("two reasons are called %s", reason)
		}
		seen[reason] = true
		if !strings.Contains(string(page), "\n| `"+reason+"` | ") {
			t.Errorf("docs/ARCHITECTURE.md does not say what %s means", reason)
		}
		return true
	})
	if len(seen) < 20 {
		t.Errorf("only %d reasons found", len(seen))
	}
}
