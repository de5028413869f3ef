package demo

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// result is a row of the table.
type result struct {
	title string
	download
	carried []int64 // bytes of each link
	right   bool    // the bytes are those of the origin
}

// printer writes the output for people; it keeps the first error.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(p.out, format, args...); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *printer) intro(s show, o *origin) {
	p.printf("One object of %.0f MB (SHA-256 %x...) and two emulated links on this machine:\n", mega(s.size), o.sum[:6])
	for _, l := range []shape{s.wifi, s.lte} {
		p.printf("  %-5s %3.0f Mbit/s, round trip %v\n", l.name, l.rate*8/1e6, 2*l.delay)
	}
	p.printf("\n")
}

func (p *printer) begin(i, n int, title string) { p.printf("%d/%d  %-30s", i, n, title) }

func (p *printer) end(d download) { p.printf("%6.2f s\n", d.took.Seconds()) }

// table prints the results, each compared with the faster of the links alone.
func (p *printer) table(links []*relay, results []result) {
	best := better(links, results)
	p.printf("\n")
	w := tabwriter.NewWriter(p.out, 0, 0, 3, ' ', tabwriter.AlignRight)
	line := "\ttime\tMbit/s\tspeed-up\t"
	for _, l := range links {
		line += l.name + " MB\t"
	}
	fmt.Fprintln(w, line+"SHA-256\tlongest pause\t")
	for _, r := range results {
		line := fmt.Sprintf("%-30s\t%.2f s\t%.1f\t%.2fx\t", r.title, r.took.Seconds(),
			float64(r.bytes)*8/1e6/r.took.Seconds(), best.took.Seconds()/r.took.Seconds())
		for _, n := range r.carried {
			line += fmt.Sprintf("%.1f\t", mega(n))
		}
		verdict := "matches"
		if !r.right {
			verdict = "DIFFERS"
		}
		fmt.Fprintf(w, "%s%s\t%v\t\n", line, verdict, r.pause.Round(time.Millisecond))
	}
	if err := w.Flush(); err != nil && p.err == nil {
		p.err = err
	}
}

// closing prints a sentence that sums up the table.
func (p *printer) closing(links []*relay, results []result) {
	both, dying := results[len(links)], results[len(links)+1]
	best := better(links, results)
	p.printf("\nBoth links together took %.2f s where the better one alone took %.2f s (%.2f times as fast). When %s died\n"+
		"half-way, the download continued over %s: every byte right, longest pause %v.\n",
		both.took.Seconds(), best.took.Seconds(), best.took.Seconds()/both.took.Seconds(),
		links[0].name, links[1].name, dying.pause.Round(time.Millisecond))
}

// better returns the result of the faster link alone; the first elements of results are those of the links.
func better(links []*relay, results []result) result {
	best := results[0]
	for _, r := range results[1:len(links)] {
		if r.took < best.took {
			best = r
		}
	}
	return best
}

func mega(n int64) float64 { return float64(n) / 1e6 }
