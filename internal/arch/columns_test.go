package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is how long a line of the product, the laboratory or the tools may be; a tab counts as four. Tests may have wider tables.
const columns = 120

// sentence is a string that would be harder to read and to find in two pieces.
var sentence = regexp.MustCompile(`"([^"\\]|\\.){40,}"`)

// TestColumns: two files fit beside each other on a screen.
func TestColumns(t *testing.T) {
	root, looked := filepath.Join("..", ".."), 0
	for _, folder := range []string{"cmd", "internal", "pkg", "lab", "tools"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			looked++
			raw := false // within a raw string
			for n, line := range strings.Split(strings.ReplaceAll(string(text), "\t", "    "), "\n") {
				ticks := strings.Count(line, "`")
				if w := utf8.RuneCountInString(line); w > columns && !raw && ticks == 0 && !sentence.MatchString(line) {
					t.Errorf("%s:%d: %d columns, may have %d", path, n+1, w, columns)
				}
				raw = raw != (ticks%2 == 1)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if looked < 300 {
		t.Errorf("%d files only", looked)
	}
}
