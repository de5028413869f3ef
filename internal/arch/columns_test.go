package arch

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is how long a line of the product, the laboratory or the tools may be; a tab counts as four. Tests may have
// wider tables.
const columns = 120

// sentence is a string that would be harder to read and to find in two pieces.
var sentence = regexp.MustCompile(`"([^"\\]|\\.){40,}"`)

// TestColumns: two files fit beside each other on a screen.
func TestColumns(t *testing.T) {
	sources(t, 300, []string{"cmd", "internal", "pkg", "lab", "tools"}, func(path string, text []byte) {
		raw := false // within a raw string
		for n, line := range strings.Split(strings.ReplaceAll(string(text), "\t", "    "), "\n") {
			ticks := strings.Count(line, "`")
			if w := utf8.RuneCountInString(line); w > columns && !raw && ticks == 0 && !sentence.MatchString(line) {
				t.Errorf("%s:%d: %d columns, may have %d", path, n+1, w, columns)
			}
			raw = raw != (ticks%2 == 1)
		}
	})
}
