package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoWallClock: laptops set their clocks and sleep. Times are compared as time.Time, which contains the monotonic clock; a
// number made from one does not.
func TestNoWallClock(t *testing.T) {
	sources(t, 100, []string{"internal"}, func(path string, text []byte) {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				switch s.Sel.Name {
				case "UnixNano", "UnixMicro", "UnixMilli":
					t.Errorf("%s: %s: a change of the clock would move it; subtract times instead", set.Position(s.Pos()), s.Sel.Name)
				}
			}
			return true
		})
	})
}

// sources calls do for each Go file in the folders of the repository, at least as many as given, tests and test data left out.
func sources(t *testing.T, least int, folders []string, do func(path string, text []byte)) {
	t.Helper()
	looked := 0
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join("..", "..", folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testdata") {
				return err
			}
			text, err := os.ReadFile(path)
			if err == nil {
				looked++
				do(path, text)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if looked < least {
		t.Fatalf("%d files only", looked)
	}
}
