package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

func TestFront(t *testing.T) {
	got := front([]spent{{"slow", 5, 5}, {"thrifty", 5, 2}, {"fast", 1, 9}, {"worse", 2, 9}, {"middle", 3, 4}})
	if len(got) != 3 || got[0].name != "fast" || got[1].name != "middle" || got[2].name != "thrifty" {
		t.Errorf("%v", got)
	}
}

// TestKeepEnergy: the documents have the joules, the plot, and what each link carried.
func TestKeepEnergy(t *testing.T) {
	docs := t.TempDir()
	if err := os.WriteFile(filepath.Join(docs, "ENERGY.md"), []byte("before\n"+blockBegin+"\n"+blockEnd+"\nafter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	run := func(name string, seconds, joules float64) *contenderResult {
		m := measurement{Seconds: seconds, Percent: 50, Joules: joules, began: began, tapes: []netlab.Tape{
			{Began: began, Step: 100 * time.Millisecond, Payload: []int64{10, 20, 30}}, {Began: began, Step: 100 * time.Millisecond},
		}}
		return &contenderResult{Name: name, Runs: []measurement{m}, Percent: quartiles{50, 50, 50}}
	}
	found := rowResult{Row: "1", Rounds: 1, Version: "tributary 1", result: result{
		Scenario: "hs", Links: []string{"wifi", "lte"}, Contenders: []*contenderResult{run("fast", 0.3, 9), run("thrifty", 0.4, 2), run("worse", 0.4, 10)},
	}}
	for range 2 { // a second result replaces the first
		if err := keepEnergy(docs, found); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if text := read("ENERGY.md"); strings.Count(text, "### Row 1") != 1 || !strings.HasPrefix(text, "before\n") || !strings.HasSuffix(text, "\nafter\n") ||
		!strings.Contains(text, "| thrifty | 0.40 | 2.00 | yes |") || !strings.Contains(text, "| worse | 0.40 | 10.00 |  |") {
		t.Error(text)
	}
	if text := read("bench/energy-row1.csv"); !strings.HasPrefix(text, "contender,seconds,wifi,lte\nfast,0.0,10,0\nfast,0.1,20,0\nfast,0.2,30,0\nthrifty,0.0,10,0\n") {
		t.Error(text)
	}
	if text := read("bench/energy-row1.svg"); strings.Count(text, "<circle") != 3 {
		t.Error(text)
	}
}

func TestFrugalContender(t *testing.T) {
	c, err := frugal(scenario())
	want := "goal = \"frugal\"\nlink.wifi.radio = \"galaxy-s3/wifi\"\nlink.lte.radio = \"galaxy-s3/lte\"\n"
	if err != nil || c.name != "frugal" || c.proxy.config != want {
		t.Errorf("%+v, %q, %v", c, c.proxy.config, err)
	}
}
