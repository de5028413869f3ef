package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// rowResult is the result of a row, as results.json keeps it.
type rowResult struct {
	Row     string `json:"row"`
	Date    string `json:"date"`    // UTC, when the row ended
	Version string `json:"version"` // of tributary
	Rounds  int    `json:"rounds"`
	Trace   string `json:"trace,omitempty"` // recorded trace of the LTE link
	result
}

// The generated part of BENCHMARKS.md lies between these lines.
const (
	blockBegin = "<!-- make bench: begin -->"
	blockEnd   = "<!-- make bench: end -->"
)

// pictured is the row whose plots BENCHMARKS.md shows.
const pictured = "1"

// benchRows measures rows one after the other, and keeps each result before the next row begins; with --svg it draws
// plots.
func benchRows(ctx context.Context, chosen []row, o benchOptions, keep func(rowResult) error, say io.Writer) error {
	version, err := exec.CommandContext(ctx, o.binary, "version").Output()
	if err != nil {
		return fmt.Errorf("%s version: %w: make build, or name it with --binary", o.binary, err)
	}
	first, _, _ := strings.Cut(string(version), "\n")
	for _, r := range chosen {
		for _, v := range r.variants(o) {
			found, err := v.measure(ctx, o, strings.TrimSpace(first), say)
			if err == nil {
				err = keep(found)
			}
			if err == nil && o.svg != "" {
				err = found.writePlots(o.svg,
					strings.Join(strings.Fields("row"+found.Row+" "+v.congestion+" "+found.Trace), "-"))
			}
			if err != nil {
				return fmt.Errorf("row %s: %w", r.ID, err)
			}
		}
	}
	return nil
}

// benchAll measures rows of the benchmark. After each it writes DOCS/bench/results.json, the tables of
// DOCS/BENCHMARKS.md and the pictures there; rows that are not measured keep their old results.
func benchAll(ctx context.Context, o benchOptions, docs string, say io.Writer) error {
	chosen, err := rowsNamed(rows, o.rows)
	if err != nil {
		return err
	}
	return benchRows(ctx, chosen, o, func(found rowResult) error { return keep(docs, found) }, say)
}

// variant is a row with one congestion control and, if links follow traces, one trace.
type variant struct {
	row
	congestion string // "" = the system's
	trace      string // path; "" = the scenario's
}

// variants returns the ways in which to measure a row.
func (r row) variants(o benchOptions) []variant {
	traces := []string{""}
	if o.recorded != "" && r.Traced {
		traces, _ = filepath.Glob(filepath.Join(o.recorded, "*.gz"))
	}
	congestion := o.congestion
	if len(congestion) == 0 {
		congestion = []string{""}
	}
	var all []variant
	for _, trace := range traces {
		for _, name := range congestion {
			all = append(all, variant{r, name, trace})
		}
	}
	return all
}

// measure measures a variant.
func (v variant) measure(ctx context.Context, o benchOptions, version string, say io.Writer) (rowResult, error) {
	fmt.Fprintf(say, "row %s: %s, %s %s %s\n", v.ID, v.Links, v.Size, v.congestion, v.trace)
	found := rowResult{Row: v.ID, Version: version, Rounds: o.rounds}
	sc, err := load(v.Scenario)
	if err != nil {
		return found, err
	}
	o = v.options(o)
	o.congestion, o.traces = nil, nil
	if v.congestion != "" {
		o.congestion = []string{v.congestion}
	}
	if v.trace != "" {
		o.traces = []string{"lte=" + v.trace}
		found.Trace, _, _ = strings.Cut(filepath.Base(v.trace), ".")
	}
	began := time.Now()
	res, err := bench(ctx, sc, o, say)
	if err != nil {
		return found, err
	}
	if err := res.print(say); err != nil {
		return found, err
	}
	fmt.Fprintf(say, "%d rounds took %v\n", o.rounds, time.Since(began).Round(time.Second))
	found.Date, found.result = time.Now().UTC().Format("2006-01-02 15:04"), *res
	return found, nil
}

// keep adds a row's result to the documents.
func keep(docs string, found rowResult) error {
	dir := filepath.Join(docs, "bench")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if found.pictured() {
		if err := found.writePlots(dir, "row"+found.Row, "rate", "order", "gain"); err != nil {
			return err
		}
	}
	path := filepath.Join(dir, "results.json")
	all, err := readResults(path)
	if err != nil {
		return err
	}
	if all, err = writeResults(path, rows, append(all, found)); err != nil {
		return err
	}
	return replaceBlock(filepath.Join(docs, "BENCHMARKS.md"), blockBegin, blockEnd, report(all))
}

func readResults(path string) ([]rowResult, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []rowResult
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w: remove it to start again", path, err)
	}
	return all, nil
}

// writeResults writes the newest result of each of the given rows, for each congestion control and trace, one per line,
// and returns them in the rows' order.
func writeResults(path string, rows []row, all []rowResult) ([]rowResult, error) {
	var kept []rowResult
	var text bytes.Buffer
	for _, r := range rows {
		seen := map[[2]string]bool{}
		var of []rowResult
		for _, found := range slices.Backward(all) {
			if key := [2]string{found.Congestion, found.Trace}; found.Row == r.ID && !seen[key] {
				seen[key] = true
				of = append(of, found)
			}
		}
		slices.SortFunc(of, func(a, b rowResult) int {
			return cmp.Or(strings.Compare(a.Trace, b.Trace), strings.Compare(a.Congestion, b.Congestion))
		})
		for _, found := range of {
			line, err := json.Marshal(found)
			if err != nil {
				return nil, err
			}
			text.WriteString(",\n")
			text.Write(line)
			kept = append(kept, found)
		}
	}
	list := slices.Concat([]byte("["), bytes.TrimPrefix(text.Bytes(), []byte(",")), []byte("\n]\n"))
	return kept, os.WriteFile(path, list, 0o644)
}

// report writes the tables as Markdown: the summary, then each row.
func report(all []rowResult) string {
	var b strings.Builder
	b.WriteString("### Summary\n\nMedians in percent, of tributary quartiles, too.\n\n")
	writeSummary(&b, all)
	for _, found := range all {
		r := rows[slices.IndexFunc(rows, func(r row) bool { return r.ID == found.Row })]
		fmt.Fprintf(&b, "\n### Row %s: %s, %s, %s%s\n\n", r.ID, r.Links, r.Size, found.Congestion, found.traced())
		fmt.Fprintf(&b, "%s, %s UTC, %s. ", found.Version, found.Date, runtime.GOARCH)
		found.markdown(&b)
		if found.pictured() {
			b.WriteString("\n![rate of each link over time](bench/row" + pictured + "-rate.svg)\n" +
				"![bytes at the client over time](bench/row" + pictured + "-order.svg)\n")
		}
	}
	return b.String()
}

// pictured reports whether BENCHMARKS.md shows plots of the result.
func (r *rowResult) pictured() bool { return r.Row == pictured && r.Congestion == "bbr" }

// traced names the recorded trace, if there was one.
func (r *rowResult) traced() string {
	if r.Trace == "" {
		return ""
	}
	return ", " + r.Trace
}

func writeSummary(w io.Writer, all []rowResult) {
	var lines [][]string
	for _, found := range all {
		r := rows[slices.IndexFunc(rows, func(r row) bool { return r.ID == found.Row })]
		of := func(c *contenderResult) quartiles {
			if r.Physical {
				return c.Physical
			}
			return c.Percent
		}
		peer := func(prefix string) string {
			i := slices.IndexFunc(found.Contenders,
				func(c *contenderResult) bool { return strings.HasPrefix(c.Name, prefix) })
			if i < 0 {
				return "-"
			}
			return fmt.Sprintf("%.1f", of(found.Contenders[i]).Median)
		}
		measure := "limit"
		if r.Physical {
			measure = "physical bound"
		}
		q := of(found.Contenders[0])
		lines = append(lines, []string{
			r.ID, r.Links + ", " + r.Size + found.traced(), found.Congestion, measure,
			fmt.Sprintf("%.1f (%.1f-%.1f)", q.Median, q.Q1, q.Q3),
			peer("aria2-2"), peer("aria2-8"), peer("aria2-16"), peer("mptcp"), peer("single:"), number(r.Bar),
			number(r.Goal),
		})
	}
	writeMarkdown(w, []string{
		"row", "links, object", "origin", "share of", "tributary", "aria2, 2 conn.", "aria2, 8 conn.",
		"aria2, 16 conn.", "MPTCP", "best single link", "bar", "goal",
	}, lines)
}

// replaceBlock replaces the generated part of a document.
func replaceBlock(path, blockBegin, blockEnd, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(old), blockBegin)
	_, after, ok2 := strings.Cut(rest, blockEnd)
	if !ok || !ok2 {
		return fmt.Errorf("%s: want the lines %q and %q", path, blockBegin, blockEnd)
	}
	return os.WriteFile(path, []byte(before+blockBegin+"\n"+text+blockEnd+after), 0o644)
}
