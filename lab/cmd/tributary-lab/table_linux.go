package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// columns are the heads of a result's table; cells returns one line per contender.
var columns = []string{
	"contender", "Q1", "median", "Q3", "of bound", "delta", "waste", "in order", "pause", "conns", "requests", "CPU/GB",
	"joules", "bytes",
}

func (r *result) cells() [][]string {
	lines := make([][]string, 0, len(r.Contenders))
	for _, c := range r.Contenders {
		line := []string{
			c.Name, percent(c.Percent.Q1), percent(c.Percent.Median), percent(c.Percent.Q3), percent(c.Physical.Median),
		}
		if c.Failed == len(c.Runs) {
			line = append(line, slices.Repeat([]string{"-"}, 8)...)
		} else {
			line = append(line, fmt.Sprintf("%.3fs", c.LinkDelta.Median), fmt.Sprintf("%.2f%%", c.Waste.Median))
			if c.InOrder != nil {
				line = append(line, percent(c.InOrder.Median), fmt.Sprintf("%.2fs", c.Pause.Median))
			} else {
				line = append(line, "-", "-")
			}
			line = append(line, r.connections(c), fmt.Sprintf("%.0f", c.Requests.Median))
			if c.CPUPerGB != nil {
				line = append(line, fmt.Sprintf("%.2fs", *c.CPUPerGB))
			} else {
				line = append(line, "-")
			}
			if c.Joules > 0 {
				line = append(line, fmt.Sprintf("%.1fJ", c.Joules))
			} else {
				line = append(line, "-")
			}
		}
		right := "right"
		if c.Failed > 0 {
			right = fmt.Sprintf("%d FAILED", c.Failed)
		}
		lines = append(lines, append(line, right))
	}
	return lines
}

// connections returns the maximum number of connections of each link, in the scenario's order: 2+2.
func (r *result) connections(c *contenderResult) string {
	var all []string
	for _, link := range r.Links {
		all = append(all, fmt.Sprint(c.Most[link]))
	}
	return strings.Join(all, "+")
}

func percent(v float64) string { return fmt.Sprintf("%.1f%%", v) }

// head returns the line above the table.
func (r *result) head() string {
	limit := quartilesOf(r.Limit)
	return fmt.Sprintf("%s, %s, %d rounds in random order (seed %d): limit %.2f s (%.2f-%.2f), physical bound %.2f s",
		r.title(), r.Congestion, len(r.Limit), r.Seed, limit.Median, slices.Min(r.Limit), slices.Max(r.Limit), r.Bound)
}

// print writes the table as text.
func (r *result) print(w io.Writer) error {
	fmt.Fprintln(w, r.head())
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, line := range append([][]string{columns}, r.cells()...) {
		fmt.Fprintln(tw, strings.Join(line, "\t")+"\t")
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, c := range r.Contenders {
		for _, e := range c.errors() {
			fmt.Fprintf(w, "%s: %s\n", c.Name, e)
		}
	}
	return nil
}

// markdown writes the table as Markdown.
func (r *result) markdown(w io.Writer) {
	fmt.Fprintf(w, "%s.\n\n", r.head())
	writeMarkdown(w, columns, r.cells())
}

func writeMarkdown(w io.Writer, head []string, lines [][]string) {
	rule := append([]string{"---"}, slices.Repeat([]string{"---:"}, len(head)-1)...)
	for _, line := range append([][]string{head, rule}, lines...) {
		fmt.Fprintf(w, "| %s |\n", strings.Join(line, " | "))
	}
}
