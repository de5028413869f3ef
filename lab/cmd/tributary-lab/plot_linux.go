package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/lab/netlab"
)

const (
	plotWidth  = 620
	plotHeight = 300
	// plotPoints is the maximum number of points of a line.
	plotPoints = 250
	// rateStep is the time over which a link's rate is averaged, except in downloads that are too short for that.
	rateStep = 100 * time.Millisecond
)

// writePlots writes the plots of a result to PREFIX-NAME.svg: rate, order, share and gain, or those named. Only share
// can be drawn from results.json; the others need recordings of the measurement.
func (r *result) writePlots(dir, prefix string, names ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, draw := range map[string]func() string{
		"rate": r.ratePlot, "order": r.orderPlot, "share": r.sharePlot, "gain": r.gainPlot,
	} {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		path := filepath.Join(dir, prefix+"-"+name+".svg")
		if err := os.WriteFile(path, []byte(draw()), 0o644); err != nil {
			return fmt.Errorf("plot: %w", err)
		}
	}
	return nil
}

func plotCommand() *cobra.Command {
	docs := "docs"
	cmd := &cobra.Command{
		Use:   "plot FOLDER",
		Short: "Draw every round's share of the limit, of each row of docs/bench/results.json",
		Long: `Draws every round's share of the limit, with quartiles and median, of each row of docs/bench/results.json. Rates and
bytes over time are drawn while they are measured: bench --svg FOLDER.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := readResults(filepath.Join(docs, "bench", "results.json"))
			if err != nil {
				return err
			}
			for _, found := range all {
				if err := found.writePlots(args[0], "row"+found.Row, "share"); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&docs, "docs", docs, "folder of BENCHMARKS.md")
	return cmd
}

// ratePlot shows what each link carried over time in the first contender's typical round.
func (r *result) ratePlot() string {
	c := r.Contenders[0]
	plot := &chart{
		title:  r.title() + ": rate of each link, " + c.Name,
		width:  plotWidth,
		height: plotHeight,
		left:   60,
		x:      axis{"seconds", 0, 1},
		y:      axis{"Mbit/s of TCP payload", 0, 1},
	}
	i := c.typical()
	if i < 0 {
		return plot.svg()
	}
	m := c.Runs[i]
	step := min(rateStep, time.Duration(m.Seconds/20*float64(time.Second)))
	plot.x.to = m.Seconds
	lines := make([][]point, len(m.tapes))
	for n, t := range m.tapes {
		lines[n] = rates(t, m.began, m.Seconds, step)
		for _, p := range lines[n] {
			plot.y.to = max(plot.y.to, p.y*1.05)
		}
	}
	for n, points := range lines {
		plot.line(r.Links[n], colour(n), noDash, points)
	}
	return plot.svg()
}

// rates returns a link's rate in Mbit/s at the middle of each step, starting at began.
func rates(t netlab.Tape, began time.Time, seconds float64, step time.Duration) []point {
	var points []point
	last := t.Sum(began)
	for at := step; at.Seconds() <= seconds+step.Seconds()/2; at += step {
		sum := t.Sum(began.Add(at))
		points = append(points, point{(at - step/2).Seconds(), float64(sum-last) * 8 / step.Seconds() / 1e6})
		last = sum
	}
	return points
}

// orderPlot shows how much the client had in order over time, in each contender's typical round, beside what the links
// carried in the limit.
func (r *result) orderPlot() string {
	plot := &chart{
		title:  r.title() + ": bytes at the client, in order",
		width:  plotWidth,
		height: plotHeight,
		left:   60,
		x:      axis{"seconds", 0, 0},
		y:      axis{"MB", 0, float64(r.Size) / 1e6},
	}
	type entry struct {
		name, colour, dash string
		points             []point
	}
	var lines []entry
	if len(r.limits) > 0 {
		m := r.limits[max(0, r.Contenders[0].typical())]
		lines = append(lines, entry{"limit (carried)", "#000000", dashed, carried(m, r.Size)})
		plot.x.to = m.Seconds
	}
	for n, c := range r.Contenders {
		i := c.typical()
		if i < 0 || len(c.Runs[i].download.Reads) == 0 {
			continue // programs that write to a file write in any order
		}
		m := c.Runs[i]
		lines = append(lines, entry{c.Name, colour(n), noDash, arrived(m)})
		plot.x.to = max(plot.x.to, m.Seconds)
	}
	if plot.x.to == 0 {
		plot.x.to = 1
	}
	for _, l := range lines {
		plot.line(l.name, l.colour, l.dash, l.points)
	}
	return plot.svg()
}

// gainPlot is the README's picture: how much the client had in order over time through Tributary and over the best link
// alone, and which part of the former each link carried. Each curve is from a contender's typical round.
func (r *result) gainPlot() string {
	plot := &chart{
		title:  fmt.Sprintf("One download of %d MB over two links", r.Size/1e6),
		width:  plotWidth,
		height: plotHeight,
		left:   60,
		x:      axis{"seconds", 0, 1},
		y:      axis{"MB at the client", 0, float64(r.Size) / 1e6},
	}
	type entry struct {
		name, colour, dash string
		points             []point
	}
	var lines []entry
	for _, c := range r.Contenders {
		alone, single := strings.CutPrefix(c.Name, "single:")
		i := c.typical()
		if i < 0 || !single && c.Name != "tributary:default" {
			continue
		}
		name := "curl through Tributary"
		if single {
			name = "curl over " + alone + " alone"
		}
		m := c.Runs[i]
		plot.x.to = max(plot.x.to, m.Seconds)
		lines = append(lines, entry{name, colour(len(lines)), noDash, arrived(m)})
		if !single {
			for n, t := range m.tapes {
				part := m
				part.tapes = []netlab.Tape{t}
				lines = append(lines, entry{
					"  of these over " + r.Links[n], colour(len(lines)), dashed,
					carried(part, r.Size),
				})
			}
		}
	}
	for _, l := range lines {
		plot.line(l.name, l.colour, l.dash, l.points)
	}
	return plot.svg()
}

// carried returns the payload of all links over time, in MB, up to size.
func carried(m measurement, size int64) []point {
	points := make([]point, 0, plotPoints+1)
	for n := range plotPoints + 1 {
		at := m.Seconds * float64(n) / plotPoints
		var sum int64
		for _, t := range m.tapes {
			sum += t.Sum(m.began.Add(time.Duration(at * float64(time.Second))))
		}
		points = append(points, point{at, float64(min(sum, size)) / 1e6})
	}
	return points
}

// arrived returns the client's progress over time, in MB.
func arrived(m measurement) []point {
	points := make([]point, 0, plotPoints+1)
	var sum int64
	next := 0
	reads := m.download.Reads
	for n := range plotPoints + 1 {
		at := m.Seconds * float64(n) / plotPoints
		for next < len(reads) && (reads[next].At.Seconds() <= at || n == plotPoints) {
			sum += int64(reads[next].N)
			next++
		}
		points = append(points, point{at, float64(sum) / 1e6})
	}
	return points
}

// sharePlot shows each contender's share of the limit: every round, quartiles and median.
func (r *result) sharePlot() string {
	rows := float64(len(r.Contenders))
	plot := &chart{
		title:  r.title() + ": share of the limit, rounds, quartiles and median",
		width:  plotWidth,
		height: 26 * rows,
		left:   250,
		x:      axis{"percent of the limit", 100, 100},
		y:      axis{"", 0, rows},
	}
	for _, c := range r.Contenders {
		for _, m := range c.Runs {
			if m.Error == "" {
				plot.x.from, plot.x.to = min(plot.x.from, m.Percent), max(plot.x.to, m.Percent)
			}
		}
	}
	margin := max(1, (plot.x.to-plot.x.from)*0.04)
	plot.x.from, plot.x.to = max(0, plot.x.from-margin), plot.x.to+margin
	plot.rule(point{100, 0}, point{100, rows}, "#333333", 1)
	for i, c := range r.Contenders {
		y := rows - float64(i) - 0.5
		plot.rowLabel(y, c.Name)
		if c.Percent.Q1 >= plot.x.from {
			plot.rect(point{c.Percent.Q1, y - 0.28}, point{c.Percent.Q3, y + 0.28}, colour(i), 0.35)
			plot.rule(point{c.Percent.Median, y - 0.34}, point{c.Percent.Median, y + 0.34}, colour(i), 2.5)
		}
		for _, m := range c.Runs {
			if m.Error == "" {
				plot.dot(point{m.Percent, y}, colour(i))
			}
		}
	}
	return plot.svg()
}
