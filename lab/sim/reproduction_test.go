package sim

import (
	"path/filepath"
	"testing"
)

// TestReproduction writes the sources' tables beside Tributary's figures into docs/REPRODUCTION.md, or checks that they are up to
// date: go test -C lab ./sim -run Reproduction -update. The text around the tables says which figures differ, and why.
func TestReproduction(t *testing.T) {
	tables := []struct {
		name  string // name of the part of the document
		write func(t *testing.T) string
	}{
		{"skjolden", skjoldenTable},
		{"correlations", correlationsTable},
		{"failing", failingTable},
		{"capped", cappedTable},
		{"video", videoTable},
		{"partitions", partitionsTable},
		{"places", placesTable},
		{"evensen", evensenTable},
	}
	text := make([]string, len(tables))
	t.Run("tables", func(t *testing.T) {
		for i, table := range tables {
			t.Run(table.name, func(t *testing.T) {
				t.Parallel()
				text[i] = table.write(t)
			})
		}
	})
	if t.Failed() {
		return
	}
	for i, table := range tables {
		if text[i] != "" { // otherwise another table was selected
			inDoc(t, filepath.Join("..", "..", "docs", "REPRODUCTION.md"), table.name, text[i])
		}
	}
}

// verdict returns the text for a pass criterion that is met or not.
func verdict(ok bool) string {
	if ok {
		return "reproduced"
	}
	return "not reproduced"
}
