package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// energyRows are the rows of the benchmark whose time and joules are compared.
var energyRows = []string{"1", "2", "3", "4", "5", "6", "7", "8"}

// energyContenders returns the contenders to compare. A link that an event takes away cannot complete a download alone.
func energyContenders(sc netlab.Scenario) []string {
	all := []string{"tributary:default", "frugal", "tributary:alg3", "mptcp", "aria2-2", "aria2-8"}
	for _, l := range sc.Links {
		if !slices.ContainsFunc(sc.Events, func(e netlab.Event) bool { return e.Link == l.Name }) {
			all = append(all, "single:"+l.Name)
		}
	}
	return all
}

// benchEnergy measures time and joules of rows. After each it writes DOCS/bench/energy.json, the row's plot and series,
// and the tables of DOCS/ENERGY.md.
func benchEnergy(ctx context.Context, o benchOptions, docs string, say io.Writer) error {
	version, err := exec.CommandContext(ctx, o.binary, "version").Output()
	if err != nil {
		return fmt.Errorf("%s version: %w: make build, or name it with --binary", o.binary, err)
	}
	first, _, _ := strings.Cut(string(version), "\n")
	if len(o.rows) == 0 {
		o.rows = energyRows
	}
	chosen, err := rowsNamed(rows, o.rows)
	if err != nil {
		return err
	}
	for _, r := range chosen {
		if !slices.Contains(energyRows, r.ID) {
			return fmt.Errorf("--row %s: with --energy want one of %s", r.ID, strings.Join(energyRows, ", "))
		}
		fmt.Fprintf(say, "row %s: %s, %s\n", r.ID, r.Links, r.Size)
		sc, err := load(r.Scenario)
		if err != nil {
			return err
		}
		of := r.options(o)
		of.contenders = energyContenders(sc)
		res, err := bench(ctx, sc, of, say)
		if err != nil {
			return fmt.Errorf("row %s: %w", r.ID, err)
		}
		found := rowResult{
			Row:     r.ID,
			Version: strings.TrimSpace(first),
			Rounds:  o.rounds,
			Date:    time.Now().UTC().Format("2006-01-02 15:04"),
			result:  *res,
		}
		if err := keepEnergy(docs, found); err != nil {
			return fmt.Errorf("row %s: %w", r.ID, err)
		}
	}
	return nil
}

// keepEnergy adds a row's result to the documents.
func keepEnergy(docs string, found rowResult) error {
	dir := filepath.Join(docs, "bench")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	prefix := "energy-row" + found.Row
	if err := os.WriteFile(filepath.Join(dir, prefix+".svg"), []byte(found.energyPlot()), 0o644); err != nil {
		return err
	}
	if err := found.writeSeries(filepath.Join(dir, prefix+".csv")); err != nil {
		return err
	}
	path := filepath.Join(dir, "energy.json")
	all, err := readResults(path)
	if err != nil {
		return err
	}
	if all, err = writeResults(path, rows, append(all, found)); err != nil {
		return err
	}
	return replaceBlock(filepath.Join(docs, "ENERGY.md"), blockBegin, blockEnd, energyReport(all))
}

// spent is the time and energy that a contender needs: medians of the rounds that did not fail.
type spent struct {
	name            string
	seconds, joules float64
}

// spends returns the time and energy of each contender that did not fail in every round.
func (r *result) spends() (all []spent) {
	for _, c := range r.Contenders {
		var seconds, joules []float64
		for _, m := range c.good() {
			seconds, joules = append(seconds, m.Seconds), append(joules, m.Joules)
		}
		if len(seconds) > 0 {
			all = append(all, spent{c.Name, quartilesOf(seconds).Median, quartilesOf(joules).Median})
		}
	}
	return all
}

// front returns the entries that no other entry beats in both time and energy, in order of time.
func front(all []spent) (best []spent) {
	for _, a := range all {
		if !slices.ContainsFunc(all, func(b spent) bool {
			return b.seconds <= a.seconds && b.joules <= a.joules && (b.seconds < a.seconds || b.joules < a.joules)
		}) {
			best = append(best, a)
		}
	}
	slices.SortFunc(best, func(a, b spent) int {
		if a.seconds < b.seconds {
			return -1
		}
		return 1
	})
	return best
}

// energyPlot shows the joules of each contender over its time, and the front.
func (r *result) energyPlot() string {
	plot := &chart{
		title:  r.title() + ": joules over time",
		width:  plotWidth,
		height: plotHeight,
		left:   60,
		x:      axis{"seconds", 0, 1},
		y:      axis{"joules (model)", 0, 1},
	}
	all := r.spends()
	for _, s := range all {
		plot.x.to, plot.y.to = max(plot.x.to, s.seconds*1.05), max(plot.y.to, s.joules*1.05)
	}
	var line []point
	for _, s := range front(all) {
		line = append(line, point{s.seconds, s.joules})
	}
	plot.line("front", "#333333", dashed, line)
	for i, s := range all {
		p := point{s.seconds, s.joules}
		plot.dot(p, colour(i))
		plot.line(s.name, colour(i), noDash, []point{p})
	}
	return plot.svg()
}

// writeSeries writes what each link carried in each contender's typical round, one line per step of 100 ms.
func (r *result) writeSeries(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := csv.NewWriter(f)
	_ = w.Write(append([]string{"contender", "seconds"}, r.Links...)) // Error below reports it
	for _, c := range r.Contenders {
		i := c.typical()
		if i < 0 {
			continue
		}
		m := c.Runs[i]
		last := make([]int64, len(m.tapes))
		for n, t := range m.tapes {
			last[n] = t.Sum(m.began)
		}
		for at := time.Duration(0); at.Seconds() < m.Seconds; at += rateStep {
			line := []string{c.Name, strconv.FormatFloat(at.Seconds(), 'f', 1, 64)}
			for n, t := range m.tapes {
				sum := t.Sum(m.began.Add(at + rateStep))
				line = append(line, strconv.FormatInt(sum-last[n], 10))
				last[n] = sum
			}
			_ = w.Write(line)
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// energyReport writes a table and a plot for each row as Markdown.
func energyReport(all []rowResult) string {
	var b strings.Builder
	for _, found := range all {
		r := rows[slices.IndexFunc(rows, func(r row) bool { return r.ID == found.Row })]
		fmt.Fprintf(&b, "\n### Row %s: %s, %s, %s\n\n%s, %s UTC, %d rounds.\n\n", r.ID, r.Links, r.Size,
			found.Congestion, found.Version, found.Date, found.Rounds)
		spends := found.spends()
		best := front(spends)
		var lines [][]string
		for _, s := range spends {
			on := ""
			if slices.Contains(best, s) {
				on = "yes"
			}
			lines = append(lines, []string{s.name, fmt.Sprintf("%.2f", s.seconds), fmt.Sprintf("%.2f", s.joules), on})
		}
		writeMarkdown(&b, []string{"contender", "seconds", "joules", "on the front"}, lines)
		fmt.Fprintf(&b, "\n![joules over time](bench/energy-row%s.svg)\n", r.ID)
	}
	return b.String()
}

// frugal returns the contender of that name: the default scheduler with the goal frugal and the radios that joules are
// modelled with.
func frugal(sc netlab.Scenario) (contender, error) {
	settings := "goal=frugal"
	for i, l := range sc.Links {
		settings += "&link." + l.Name + ".radio=" + radioOf(i)
	}
	c, err := parseContender("tributary:default?" + settings)
	c.name = "frugal"
	return c, err
}
