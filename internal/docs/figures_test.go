package docs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// row is a row of docs/bench/results.json.
type row struct {
	Row        string    `json:"row"`
	Trace      string    `json:"trace"`
	Control    string    `json:"congestion_control"`
	Rounds     int       `json:"rounds"`
	Limit      []float64 `json:"limit_seconds"`
	Contenders []struct {
		Name    string
		Percent struct{ Median float64 }
		Runs    []struct{ Seconds float64 }
	} `json:"contenders"`
}

func results(t *testing.T) func(name, trace string) row {
	t.Helper()
	var all []row
	if err := json.Unmarshal([]byte(read(t, "docs/bench/results.json")), &all); err != nil {
		t.Fatal(err)
	}
	return func(name, trace string) row {
		t.Helper()
		for _, r := range all {
			if r.Row == name && r.Control == "bbr" && (trace == "" || r.Trace == trace) {
				return r
			}
		}
		t.Fatalf("results.json has no row %s %s", name, trace)
		return row{}
	}
}

// best returns the lowest median, in seconds, of the contenders with a prefix.
func (r row) best(prefix string) string {
	seconds := 1e9
	for _, c := range r.Contenders {
		if !strings.HasPrefix(c.Name, prefix) || strings.Contains(c.Name, "?") {
			continue
		}
		var all []float64
		for _, run := range c.Runs {
			all = append(all, run.Seconds)
		}
		seconds = min(seconds, median(all))
	}
	return fmt.Sprintf("%.2f", seconds)
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return (of[(len(of)-1)/2] + of[len(of)/2]) / 2
}

// The README's table contains the medians of docs/bench/results.json.
func TestReadmeTable(t *testing.T) {
	find, readme := results(t), read(t, "README.md")
	for _, l := range []struct{ row, trace, links string }{
		{"1", "", "80 + 60 Mbit/s, 50 MB"},
		{"2", "", "8 + 66 Mbit/s, 50 MB"},
		{"5", "ATT-LTE-driving-2016", "8 Mbit/s with 0.5 % loss + LTE trace, 20 MB"},
		{"6", "", "20 + 20 Mbit/s, one dies after 2 s, 20 MB"},
	} {
		r := find(l.row, l.trace)
		want := fmt.Sprintf("| %s | %s s | %s s | %s s | **%s s** | %.2f s |\n", l.links, r.best("single:"), r.best("aria2-"), r.best("mptcp"),
			r.best("tributary:default"), median(r.Limit))
		if !strings.Contains(readme, want) {
			t.Errorf("row %s of the README's table is not\n%s", l.row, want)
		}
		if r.Rounds != 9 {
			t.Errorf("row %s has %d rounds, the README says 9", l.row, r.Rounds)
		}
	}
	if lines := strings.Count(readme, "\n"); lines > 150 {
		t.Errorf("the README has %d lines", lines)
	}
}

// The guides quote results of the benchmarks unchanged.
func TestGuidesFigures(t *testing.T) {
	find := results(t)
	one, two, six, ten := find("1", ""), find("2", ""), find("6", ""), find("10", "")
	percent := 0.0
	for _, c := range ten.Contenders {
		if c.Name == "get" {
			percent = c.Percent.Median
		}
	}
	faster := fmt.Sprintf("%s s instead of %s s", one.best("tributary:default"), one.best("single:"))
	for page, wants := range map[string][]string{
		"docs/guides/curl.md":    {faster},
		"docs/guides/browser.md": {fmt.Sprintf("%s s instead of %s s", ten.best("get"), ten.best("single:"))},
		"docs/guides/server.md":  {two.best("tributary:default") + " s", two.best("single:") + " s", six.best("tributary:default") + " s"},
		"docs/guides/go.md":      {fmt.Sprintf("%.1f %%", percent)},
	} {
		text := strings.ReplaceAll(read(t, page), "\n", " ")
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q", page, want)
			}
		}
	}
}
