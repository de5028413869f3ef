package main

import (
	"fmt"
	"slices"
	"strings"
)

// row is one line of the benchmark: the measurement, and its target. The first contender is judged.
type row struct {
	ID         string
	Links      string // description of the links
	Scenario   string
	Size       string
	Origin     string
	HTTPS      bool
	HTTP1      bool // and no HTTP/2
	Physical   bool // judged by the physical bound, since loss and traces make the limit a matter of luck
	Traced     bool // its link lte follows a trace
	Upload     bool
	Warm       bool // Bar and Goal apply to the second object
	Contenders []string
	Bar, Goal  float64 // percent
}

// peers are the alternatives that people use; each row adds the fastest single link.
var peers = []string{"aria2-2", "aria2-8", "aria2-16", "mptcp", "single:best"}

// managers are the alternatives where the origin limits each connection; there, the bar is 1.05 times the time of the
// best of them, and the goal is its time.
var managers = []string{"aria2-8", "aria2-16"}

// rows is the benchmark. Every scenario's events are played.
var rows = []row{
	{
		ID:       "1",
		Links:    "80 + 60 Mbit/s (ramp)",
		Scenario: "hs",
		Size:     "50MB",
		Bar:      99,
		Goal:     100,
		Contenders: with(
			"tributary:default", "tributary:default?transfer_window=4MiB", "tributary:default?transfer_window=1MiB",
			"tributary:single", "relay"),
	},
	{
		ID:         "2",
		Links:      "8 + 66 Mbit/s (ramp)",
		Scenario:   "ls",
		Size:       "50MB",
		Bar:        99.5,
		Goal:       100,
		Contenders: with("tributary:default", "tributary:default?transfer_window=4MiB"),
	},
	{
		ID:         "3",
		Links:      "15 + 82 Mbit/s (0.05 % loss)",
		Scenario:   "ts",
		Size:       "50MB",
		Bar:        98.5,
		Goal:       100,
		Contenders: with("tributary:default", "tributary:default?transfer_window=4MiB"),
	},
	{
		ID:         "4",
		Links:      "20 Mbit/s (0.1 % loss) + LTE trace of 17",
		Scenario:   "drive",
		Size:       "50MB",
		Physical:   true,
		Traced:     true,
		Bar:        96,
		Goal:       99,
		Contenders: with("tributary:default", "tributary:default?transfer_window=4MiB"),
	},
	{
		ID:         "5",
		Links:      "8 Mbit/s (0.5 % loss) + LTE trace of 9.5",
		Scenario:   "fringe",
		Size:       "20MB",
		Physical:   true,
		Traced:     true,
		Bar:        96,
		Goal:       99,
		Contenders: with("tributary:default", "tributary:default?transfer_window=4MiB"),
	},
	{
		ID:         "6",
		Links:      "20 + 20 Mbit/s, one blackholed at 2 s",
		Scenario:   "equal-dark",
		Size:       "20MB",
		Bar:        99,
		Goal:       100,
		Contenders: with("tributary:default"),
	},
	{
		ID:         "7",
		Links:      "5 + 10 Mbit/s, 50 and 70 ms",
		Scenario:   "far",
		Size:       "4MB",
		Bar:        98,
		Goal:       99.5,
		Contenders: with("tributary:default"),
	},
	{
		ID:         "8",
		Links:      "5 + 10 Mbit/s, 50 and 70 ms",
		Scenario:   "far",
		Size:       "512kB",
		Bar:        97,
		Goal:       99.5,
		Contenders: with("tributary:default"),
	},
	{
		ID:         "9a",
		Links:      "row 7, second object",
		Scenario:   "far",
		Size:       "4MB",
		Bar:        99,
		Goal:       102,
		Contenders: []string{"again:default", "single:best"},
	},
	{
		ID:         "9b",
		Links:      "row 8, second object",
		Scenario:   "far",
		Size:       "512kB",
		Bar:        98,
		Goal:       110,
		Contenders: []string{"again:default", "single:best"},
	},
	{
		ID:         "10",
		Links:      "row 1, https, tributary get",
		Scenario:   "hs",
		Size:       "50MB",
		HTTPS:      true,
		Bar:        97,
		Goal:       99,
		Contenders: with("get"),
	},
	{
		ID:         "10b",
		Links:      "row 10, an origin without HTTP/2",
		Scenario:   "hs",
		Size:       "50MB",
		HTTPS:      true,
		HTTP1:      true,
		Bar:        97,
		Goal:       99,
		Contenders: with("get"),
	},
	{
		ID:         "11a",
		Links:      "row 1, Apache",
		Scenario:   "hs",
		Size:       "50MB",
		Origin:     "apache",
		Bar:        94,
		Goal:       98,
		Contenders: with("tributary:default"),
	},
	{
		ID:         "11b",
		Links:      "row 1, breaks under pipelining",
		Scenario:   "hs",
		Size:       "50MB",
		Origin:     "brokenpipe",
		Bar:        90,
		Goal:       94,
		Contenders: with("tributary:default"),
	},
	{
		ID:         "12a",
		Links:      "20 + 30 + 40 Mbit/s",
		Scenario:   "three",
		Size:       "50MB",
		Bar:        97,
		Goal:       99,
		Contenders: with("tributary:default"),
	},
	{
		ID:         "12b",
		Links:      "8 x 10 Mbit/s",
		Scenario:   "eight",
		Size:       "50MB",
		Bar:        95,
		Goal:       98,
		Contenders: with("tributary:default"),
	},
	{
		ID:         "13a",
		Links:      "100 + 100 Mbit/s, origin: 1 MiB/s for each connection",
		Scenario:   "wide",
		Size:       "40MB",
		Origin:     "paced:1MiB",
		Bar:        53,
		Goal:       56,
		Contenders: slices.Concat([]string{"tributary:default"}, managers),
	},
	{
		ID:         "13b",
		Links:      "row 13a, https, tributary get",
		Scenario:   "wide",
		Size:       "40MB",
		Origin:     "paced:1MiB",
		HTTPS:      true,
		Bar:        52,
		Goal:       55,
		Contenders: slices.Concat([]string{"get"}, managers),
	},
	{
		ID:         "13c",
		Links:      "row 13a, 500 KiB/s",
		Scenario:   "wide",
		Size:       "40MB",
		Origin:     "paced:500KiB",
		Bar:        27,
		Goal:       28,
		Contenders: slices.Concat([]string{"tributary:default"}, managers),
	},
	{
		ID:         "13d",
		Links:      "row 13a, 2 MiB at full speed first",
		Scenario:   "wide",
		Size:       "40MB",
		Origin:     "paced:1MiB+2MiB",
		Bar:        84,
		Goal:       89,
		Contenders: slices.Concat([]string{"tributary:default"}, managers),
	},
	{
		ID:         "13e",
		Links:      "row 13b, nginx limits each response to 1 MiB/s",
		Scenario:   "wide",
		Size:       "40MB",
		Origin:     "nginx:limit_rate 1m;",
		HTTPS:      true,
		Bar:        56,
		Goal:       59,
		Contenders: slices.Concat([]string{"get"}, managers),
	},
}

func with(contenders ...string) []string { return slices.Concat(contenders, peers) }

// rowsNamed returns the rows that have the given IDs, in the order of rows, or all rows if no ID is given.
func rowsNamed(rows []row, ids []string) ([]row, error) {
	var chosen []row
	var known []string
	for _, r := range rows {
		known = append(known, r.ID)
		if len(ids) == 0 || slices.Contains(ids, r.ID) {
			chosen = append(chosen, r)
		}
	}
	for _, id := range ids {
		if !slices.Contains(known, id) {
			return nil, fmt.Errorf("--row %s: want one of %s", id, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

// options returns the options of a run of all rows, adapted to this row.
func (r row) options(o benchOptions) benchOptions {
	o.size, o.contenders, o.events, o.https, o.http1, o.upload = r.Size, r.Contenders, true, r.HTTPS, r.HTTP1, r.Upload
	if o.origin = r.Origin; o.origin == "" {
		o.origin = "nginx"
	}
	return o
}
