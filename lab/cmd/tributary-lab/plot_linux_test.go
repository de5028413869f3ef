package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// measured returns a result with two rounds of two contenders; the output of one was not observed.
func measured() *result {
	now := time.Now()
	m := measurement{
		Seconds: 2, Delivered: 500, Connections: map[string]int{"wifi": 1, "lte": 2}, Requests: 3, began: now,
		tapes: []netlab.Tape{tape(now, 100, 150), tape(now, 50, 100)},
	}
	observed := m
	observed.download.Reads = []netlab.Read{{At: time.Second, N: 150}, {At: 2 * time.Second, N: 250}}
	r := &result{
		Scenario: "a<b & c", Size: 400, Bound: 1, Limit: []float64{1.9, 2.1}, limits: []measurement{m, m},
		Links: []string{"wifi", "lte"}, Contenders: []*contenderResult{{Name: "tributary:alg3"}, {Name: "aria2-2"}},
	}
	observed.examine(400)
	for _, limit := range r.Limit {
		r.Contenders[0].add(observed, limit, r.Bound)
		r.Contenders[1].add(m, limit, r.Bound)
	}
	r.sum()
	return r
}

// wellFormed fails the test unless a text is well-formed XML; it returns how often each element occurs.
func wellFormed(t *testing.T, text string) map[string]int {
	t.Helper()
	count := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return count
		}
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		if e, ok := token.(xml.StartElement); ok {
			count[e.Name.Local]++
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
			t.Fatalf("not a number:\n%s", text)
		}
	}
}

func TestPlots(t *testing.T) {
	r := measured()
	if n := wellFormed(t, r.ratePlot())["polyline"]; n != 2*2 { // one line and one sample in the legend each
		t.Errorf("rate: %d lines", n)
	}
	if n := wellFormed(t, r.orderPlot())["polyline"]; n != 2*2 { // the limit and the contender whose output was observed
		t.Errorf("order: %d lines", n)
	}
	r.Contenders[0].Name, r.Contenders[1].Name = "tributary:default", "single:a"
	if n := wellFormed(t, r.gainPlot())["polyline"]; n != 2*4 { // both clients, and both links of the first
		t.Errorf("gain: %d lines", n)
	}
	if n := wellFormed(t, r.sharePlot())["circle"]; n != 4 {
		t.Errorf("share: %d rounds", n)
	}
	for _, c := range r.Contenders {
		for i := range c.Runs {
			c.Runs[i].Error = "failed"
		}
	}
	r.sum()
	for _, svg := range []string{r.ratePlot(), r.orderPlot(), r.sharePlot(), r.gainPlot()} {
		wellFormed(t, svg)
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		a    axis
		want []float64
	}{
		{axis{"", 0, 10}, []float64{0, 2, 4, 6, 8, 10}},
		{axis{"", 62, 101}, []float64{70, 80, 90, 100}},
		{axis{"", 0, 0.35}, []float64{0, 0.1, 0.2, 0.3}},
		{axis{"", 5, 5}, nil},
	} {
		got := c.a.ticks(5)
		if len(got) != len(c.want) {
			t.Errorf("%v: %v, want %v", c.a, got, c.want)
			continue
		}
		for i := range got {
			if number(got[i]) != number(c.want[i]) {
				t.Errorf("%v: %v, want %v", c.a, got, c.want)
			}
		}
	}
}

func TestArrived(t *testing.T) {
	m := measured().Contenders[0].Runs[0]
	points := arrived(m)
	if p := points[len(points)/2-1]; p.y != 0 {
		t.Errorf("before the first second %v", p)
	}
	if p := points[len(points)-1]; p.x != 2 || p.y != 400e-6 {
		t.Errorf("at the end %v", p)
	}
	if p := carried(m, 390)[plotPoints]; p.y != 390e-6 {
		t.Errorf("the links carried more than the object: %v", p)
	}
	if points := rates(m.tapes[0], m.began, 2, time.Second); !slices.Equal(points, []point{{0.5, 800e-6}, {1.5, 1200e-6}}) {
		t.Errorf("rates %v", points)
	}
}

func TestRows(t *testing.T) {
	t.Chdir("../../..")
	for _, r := range rows {
		sc, err := load(r.Scenario)
		if err != nil {
			t.Error(err)
			continue
		}
		size, err := benchSize(sc, r.Size)
		if err == nil {
			_, err = netlab.PhysicalBound(sc, size)
		}
		if err != nil {
			t.Errorf("row %s: %v", r.ID, err)
		}
		for _, text := range r.Contenders {
			if _, err := parseContender(text); err != nil {
				t.Errorf("row %s: %v", r.ID, err)
			}
		}
	}
	if chosen, err := rowsNamed(rows, []string{"7", "1"}); err != nil || len(chosen) != 2 || chosen[0].ID != "1" {
		t.Errorf("%v, %v", chosen, err)
	}
	if _, err := rowsNamed(rows, []string{"99"}); err == nil {
		t.Error("row 99 is accepted")
	}
}

func TestKeep(t *testing.T) {
	docs := t.TempDir()
	path := filepath.Join(docs, "BENCHMARKS.md")
	if err := os.WriteFile(path, []byte("before\n"+blockBegin+"\nold\n"+blockEnd+"\nafter\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct{ id, congestion, trace string }{{"4", "bbr", ""}, {"1", "bbr", ""}, {"4", "bbr", ""}, {"1", "cubic", ""}, {"4", "bbr", "drive"}} {
		r := *measured()
		r.Congestion = v.congestion
		if err := keep(docs, rowResult{Row: v.id, Version: "tributary " + v.id, Rounds: 2, Trace: v.trace, result: r}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if !strings.HasPrefix(got, "before\n") || !strings.HasSuffix(got, "\nafter\n") || strings.Contains(got, "old") {
		t.Errorf("%s", got)
	}
	first, fourth := strings.Index(got, "### Row 1:"), strings.Index(got, "### Row 4:")
	if first < 0 || fourth < first || strings.Count(got, "### Row") != 4 || !strings.Contains(got, "| 1+2 |") {
		t.Errorf("%s", got)
	}
	// row 1 is judged by the limit of 2 s, row 4 by the bound of 1 s
	for _, want := range []string{"| limit | 100.0 (97.5-102.5) |", "| physical bound | 50.0 (50.0-50.0) |"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in:\n%s", want, got)
		}
	}
	for plot, want := range map[string]bool{"row1-rate.svg": true, "row1-order.svg": true, "row1-share.svg": false, "row4-rate.svg": false} {
		_, err := os.Stat(filepath.Join(docs, "bench", plot))
		if shown := strings.Contains(got, "(bench/"+plot+")"); shown != want || (err == nil) != want {
			t.Errorf("%s: shown %v, %v, want %v", plot, shown, err, want)
		}
	}
	plots := filepath.Join(docs, "plots")
	plot := plotCommand()
	plot.SetArgs([]string{"--docs", docs, plots})
	if err := plot.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"1", "4"} {
		svg, err := os.ReadFile(filepath.Join(plots, "row"+id+"-share.svg"))
		if err != nil {
			t.Fatal(err)
		}
		if n := wellFormed(t, string(svg))["circle"]; n != 4 {
			t.Errorf("row %s, from its results: %d rounds", id, n)
		}
	}
	if err := replaceBlock(filepath.Join(docs, "bench", "results.json"), blockBegin, blockEnd, ""); err == nil {
		t.Error("a document without the lines is replaced")
	}
}
