package sim

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tributary-http/tributary/lab/literature"
)

// Score is the score of a scheduler over the scenarios of a class: medians, except for Worst.
type Score struct {
	Share  float64       // bundling limit divided by the time taken
	Worst  float64       // the lowest share
	Delta  time.Duration // link delta: time between the ends of the first and the last link
	Waste  float64       // wasted bytes, as a share of the object
	Order  float64       // bytes delivered at half of the time, as a share of those received
	Window int64         // most bytes held when the window is as large as the object
}

// Contenders returns the names of all compared schedulers: first those that can run in the product, then the oracles.
func Contenders() []string { return append(literature.Names(), Oracles()...) }

// Scenario is one situation with its bundling limit.
type Scenario struct {
	Spec
	Limit time.Duration
}

// Scenarios returns the first n scenarios of a class.
func (c Class) Scenarios(n int) (all []Scenario, err error) {
	for i := range uint64(n) {
		s := Scenario{Spec: c.At(i)}
		if s.Limit, s.carried, err = Limit(s.Spec); err != nil {
			return nil, fmt.Errorf("%s, scenario %d: %w", c.Name, i, err)
		}
		if s.Client > 0 {
			s.Limit = max(s.Limit, time.Duration(float64(s.Size)/s.Client*float64(time.Second)))
		}
		all = append(all, s)
	}
	return all, nil
}

// Compare runs each scenario under a scheduler, and again with a window as large as the object.
func Compare(all []Scenario, scheduler string) (Score, error) {
	var share, waste, order []float64
	var delta []time.Duration
	var window []int64
	var sc Score
	for i, c := range all {
		s := c.Spec
		s.Scheduler = scheduler
		r, err := Run(s)
		if err != nil {
			return sc, fmt.Errorf("scenario %d, %s: %w", i, scheduler, err)
		}
		share = append(share, c.Limit.Seconds()/r.Took.Seconds())
		waste = append(waste, float64(r.Waste)/float64(s.Size))
		order = append(order, r.InOrder)
		delta = append(delta, r.Delta())
		s.Window = s.Size + 1
		if r, err = Run(s); err != nil {
			return sc, fmt.Errorf("scenario %d, %s, window = object: %w", i, scheduler, err)
		}
		window = append(window, r.MaxHeld)
	}
	sc.Worst = slices.Min(share)
	sc.Share, sc.Waste, sc.Order = median(share), median(waste), median(order)
	sc.Delta, sc.Window = median(delta), median(window)
	return sc, nil
}

func median[T float64 | int64 | time.Duration](all []T) T {
	slices.Sort(all)
	return all[len(all)/2]
}

// Table holds the scores by scheduler and class.
type Table struct {
	Schedulers []string
	Classes    []Class
	Scores     [][]Score // [scheduler][class]
}

// WriteTo writes the table as Markdown: the shares by class, then the other measures, as medians over the classes.
func (t *Table) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	b.WriteString("| scheduler |")
	for _, c := range t.Classes {
		fmt.Fprintf(&b, " %s |", c.Name)
	}
	b.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(t.Classes)) + "\n")
	for i, name := range t.Schedulers {
		fmt.Fprintf(&b, "| %s |", name)
		for _, s := range t.Scores[i] {
			fmt.Fprintf(&b, " %.1f |", 100*s.Share)
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n| scheduler | share of the limit | worst | link delta | waste | in order | window needed |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for i, name := range t.Schedulers {
		var share, worst, waste, order []float64
		var delta []time.Duration
		var window []int64
		for _, s := range t.Scores[i] {
			share, worst, waste = append(share, s.Share), append(worst, s.Worst), append(waste, s.Waste)
			order, delta, window = append(order, s.Order), append(delta, s.Delta), append(window, s.Window)
		}
		fmt.Fprintf(&b, "| %s | %.1f %% | %.1f %% | %.2f s | %.2f %% | %.0f %% | %.1f MB |\n", name, 100*median(share),
			100*slices.Min(worst), median(delta).Seconds(), 100*median(waste), 100*median(order),
			float64(median(window))/1e6)
	}
	n, err := io.WriteString(w, b.String())
	return int64(n), err
}
