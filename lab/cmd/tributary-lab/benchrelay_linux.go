package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tributary-http/tributary/lab/netlab"
)

// relayContenders are compared in the rows of relayRows that name no others. In rows where a link goes dark, earlier
// downloads hardly matter.
var (
	relayContenders = []string{"lanes", "lanes:again", "mptcp"}
	relayCold       = []string{"lanes", "mptcp"}
)

// relayRows are the rows of docs/RELAY.md: those of the benchmark that one tunnel's bytes can show, over https, and an
// upload. Their objects are smaller than those of the benchmark where that does not change the result.
var relayRows = []row{
	{
		ID:       "1",
		Links:    "80 + 60 Mbit/s (ramp)",
		Scenario: "hs",
		Size:     "50MB",
		Bar:      98,
		Goal:     99.5,
	},
	{
		ID:       "2",
		Links:    "8 + 66 Mbit/s (ramp)",
		Scenario: "ls",
		Size:     "30MB",
		Bar:      98.5,
		Goal:     99.5,
	},
	{
		ID:       "3",
		Links:    "15 + 82 Mbit/s (0.05 % loss)",
		Scenario: "ts",
		Size:     "50MB",
		Bar:      98,
		Goal:     99.5,
	},
	{
		ID:       "4",
		Links:    "20 Mbit/s (0.1 % loss) + LTE trace of 17",
		Scenario: "drive",
		Size:     "20MB",
		Physical: true,
		Traced:   true,
		Bar:      96,
		Goal:     98.5,
	},
	{
		ID:       "5",
		Links:    "8 Mbit/s (0.5 % loss) + LTE trace of 9.5",
		Scenario: "fringe",
		Size:     "10MB",
		Physical: true,
		Traced:   true,
		Bar:      96,
		Goal:     98.5,
	},
	{
		ID:         "6",
		Links:      "20 + 20 Mbit/s, one blackholed at 2 s",
		Scenario:   "equal-dark",
		Size:       "20MB",
		Bar:        97.5,
		Goal:       99,
		Contenders: relayCold,
	},
	{
		ID:         "6b",
		Links:      "20 + 20 Mbit/s, one blackholed from 2 s to 5 s",
		Scenario:   "equal-blackhole",
		Size:       "20MB",
		Bar:        97.5,
		Goal:       99,
		Contenders: relayCold,
	},
	{
		ID:       "7",
		Links:    "5 + 10 Mbit/s, 50 and 70 ms",
		Scenario: "far",
		Size:     "4MB",
		Warm:     true,
		Bar:      96,
		Goal:     99,
	},
	{
		ID:       "8",
		Links:    "5 + 10 Mbit/s, 50 and 70 ms",
		Scenario: "far",
		Size:     "512kB",
		Warm:     true,
		Bar:      95,
		Goal:     112,
	},
	{
		ID:       "up",
		Links:    "upload, 40 + 25 Mbit/s",
		Scenario: "uplinks",
		Size:     "20MB",
		Upload:   true,
		Bar:      98.5,
		Goal:     101,
	},
}

// The generated part of RELAY.md lies between these lines.
const (
	relayBlockBegin = "<!-- tributary-lab bench --relay: begin -->"
	relayBlockEnd   = "<!-- tributary-lab bench --relay: end -->"
)

// benchRelay measures rows of relayRows. After each it writes DOCS/bench/relay.json and the tables of DOCS/RELAY.md;
// rows that are not measured keep their old results.
func benchRelay(ctx context.Context, o benchOptions, docs string, say io.Writer) error {
	chosen, err := rowsNamed(relayRows, o.rows)
	if err != nil {
		return err
	}
	for i := range chosen {
		r := &chosen[i]
		r.HTTPS = true
		if r.Contenders == nil {
			r.Contenders = relayContenders
		}
		if o.size != "" {
			r.Size = o.size
		}
	}
	return benchRows(ctx, chosen, o, func(found rowResult) error { return keepRelay(docs, found) }, say)
}

// keepRelay adds a row's result to the documents.
func keepRelay(docs string, found rowResult) error {
	dir := filepath.Join(docs, "bench")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(dir, "relay.json")
	all, err := readResults(path)
	if err != nil {
		return err
	}
	if all, err = writeResults(path, relayRows, append(all, found)); err != nil {
		return err
	}
	return replaceBlock(filepath.Join(docs, "RELAY.md"), relayBlockBegin, relayBlockEnd, relayReport(all))
}

// relayReport writes the tables of all rows as Markdown: shares, then pauses and costs.
func relayReport(all []rowResult) string {
	var shares, costs [][]string
	for _, found := range all {
		r := relayRows[slices.IndexFunc(relayRows, func(r row) bool { return r.ID == found.Row })]
		of := func(name string, cell func(c *contenderResult) string) string {
			i := slices.IndexFunc(found.Contenders, func(c *contenderResult) bool { return c.Name == name })
			if i < 0 || found.Contenders[i].Failed == len(found.Contenders[i].Runs) {
				return "-"
			}
			return cell(found.Contenders[i])
		}
		share := func(c *contenderResult) string {
			q, failed := c.Percent, ""
			if r.Physical {
				q = c.Physical
			}
			if c.Failed > 0 {
				failed = fmt.Sprintf(", %d failed", c.Failed)
			}
			return fmt.Sprintf("%.1f (%.1f-%.1f%s)", q.Median, q.Q1, q.Q3, failed)
		}
		pause := func(c *contenderResult) string {
			if c.Pause == nil {
				return "-"
			}
			return fmt.Sprintf("%.2f", c.Pause.Median)
		}
		back := func(c *contenderResult) string {
			if c.Back == nil {
				return "-"
			}
			return fmt.Sprintf("%.2f", c.Back.Median)
		}
		extra := func(c *contenderResult) string { return fmt.Sprintf("%.2f", c.Waste.Median) }
		processor := func(c *contenderResult) string {
			if c.CPUPerGB == nil {
				return "-"
			}
			return fmt.Sprintf("%.1f", *c.CPUPerGB)
		}
		measure, warm := "limit", ""
		if r.Physical {
			measure = "bound"
		}
		if r.Warm {
			warm = " (second)"
		}
		links := r.Links + ", " + netlab.Bytes(found.Size).String() + found.traced()
		shares = append(shares, []string{
			r.ID, links, found.Congestion, measure, of("lanes", share), of("lanes:again", share), of("mptcp", share),
			number(r.Bar) + " / " + number(r.Goal) + warm,
		})
		costs = append(costs, []string{
			r.ID + found.traced(), found.Congestion, of("lanes", pause), of("mptcp", pause), of("lanes", back),
			of("mptcp", back),
			of("lanes", extra), of("mptcp", extra), of("lanes", processor),
			fmt.Sprintf("%d, %s, %s", found.Rounds, strings.TrimPrefix(found.Version, "tributary "), found.Date),
		})
	}
	var b strings.Builder
	writeMarkdown(&b, []string{
		"row", "links, object", "both ends", "share of", "first", "second", "MPTCP",
		"bar / goal",
	}, shares)
	b.WriteString("\n")
	writeMarkdown(&b, []string{
		"row", "both ends", "pause", "MPTCP's", "back", "MPTCP's", "extra bytes", "MPTCP's", "CPU/GB",
		"rounds, version, date",
	}, costs)
	return b.String()
}
