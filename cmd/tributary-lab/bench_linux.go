package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/lab"
)

type benchOptions struct {
	size       string
	rounds     int
	contenders []string
	binary     string
	timeout    time.Duration
	events     bool
	https      bool
	http1      bool
	json       bool
}

func benchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench SCENARIO",
		Short: "Measure downloaders side by side against the bundling limit",
		Long: `In each round measures the bundling limit (one unbounded GET per link at the same moment, one fresh connection
each, the time until their bodies sum to the size) and then each contender, all on links that were silent before and
whose ramps and traces begin anew. Prints limit time / contender time as a percentage, paired by round.

Contenders: tributary:SCHEDULER, get (tributary get), single:LINK, aria2-2, aria2-8, mptcp, or NAME=CMD, run by sh in
the client namespace with {url}, {out}, {ca} (the certificate to trust) and {links} (comma-separated) replaced. Where
curl downloads, its own time counts, else the command's from start to end.

With --https the origin speaks TLS 1.3 and HTTP/2. The limit is then measured by HTTP/1.1 over TLS; through a tributary,
curl gets one tunnel over one link.`,
		Example: `  tributary-lab bench hs --size 50MB --contender tributary:alg3 --contender single:wifi --contender aria2-2
  tributary-lab bench hs --https --contender get --contender single:wifi
  tributary-lab bench ls --contender 'wget=wget -q -O {out} {url}' --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sc, err := load(args[0])
			if err != nil {
				return err
			}
			res, err := bench(cmd.Context(), sc, o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if o.json {
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetIndent("", "  ")
				return enc.Encode(res)
			}
			return res.print(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.size, "size", "", "size of the object (default the scenario's first)")
	f.IntVar(&o.rounds, "rounds", 5, "rounds")
	f.StringArrayVar(&o.contenders, "contender", nil, "contender, repeatable (default tributary:alg3)")
	f.StringVar(&o.binary, "binary", filepath.Join("bin", "tributary"), "tributary to measure")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "longest time of one download")
	f.BoolVar(&o.events, "events", false, "play the scenario's events during each contender's download, not during the limit")
	f.BoolVar(&o.https, "https", false, "download by https, with HTTP/2")
	f.BoolVar(&o.http1, "http1", false, "with --https: the origin speaks HTTP/1.1 only")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// result is what a benchmark found.
type result struct {
	Scenario   string            `json:"scenario"`
	Size       int64             `json:"size"`
	Congestion string            `json:"congestion_control"`
	Limit      []float64         `json:"limit_seconds"` // per round
	Contenders []contenderResult `json:"contenders"`
}

type contenderResult struct {
	Name    string    `json:"name"`
	Seconds []float64 `json:"seconds"` // per round; 0 = failed
	Percent []float64 `json:"percent"` // limit / contender, per round
	Min     float64   `json:"min"`
	Median  float64   `json:"median"`
	Max     float64   `json:"max"`
	Right   bool      `json:"right"` // every output had the object's SHA-256
	Errors  []string  `json:"errors,omitempty"`
}

func bench(ctx context.Context, sc lab.Scenario, o benchOptions, say io.Writer) (_ *result, err error) {
	size, err := benchSize(sc, o.size)
	if err != nil {
		return nil, err
	}
	sc.Objects = []lab.Bytes{size}
	if len(o.contenders) == 0 {
		o.contenders = []string{"tributary:alg3"}
	}
	if o.rounds < 1 {
		return nil, errors.New("--rounds: want 1 or more")
	}
	contenders, err := parseContenders(o)
	if err != nil {
		return nil, err
	}
	sc.MPTCP = sc.MPTCP || slices.ContainsFunc(contenders, func(c contender) bool { return c.mptcp })
	l, err := lab.New(ctx, sc)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	b, err := newBed(ctx, l, size, o)
	if err != nil {
		return nil, err
	}
	res := &result{Scenario: sc.Name, Size: int64(size), Congestion: l.CongestionControl()}
	for _, c := range contenders {
		res.Contenders = append(res.Contenders, contenderResult{Name: c.name, Right: true})
	}
	for round := range o.rounds {
		limit, err := b.limit(ctx)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(say, "round %d: limit %.2f s", round+1, limit.Seconds())
		res.Limit = append(res.Limit, limit.Seconds())
		for i, c := range contenders {
			took, err := b.measure(ctx, c)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			res.Contenders[i].add(limit, took, err)
			fmt.Fprintf(say, ", %s %.2f s", c.name, took.Seconds())
		}
		fmt.Fprintln(say)
	}
	for i := range res.Contenders {
		res.Contenders[i].sum()
	}
	return res, nil
}

// benchSize is the size asked for, else the scenario's first.
func benchSize(sc lab.Scenario, asked string) (lab.Bytes, error) {
	switch {
	case asked != "":
		return lab.ParseBytes(asked)
	case len(sc.Objects) > 0:
		return sc.Objects[0], nil
	}
	return 0, errors.New("the scenario names no objects: say --size")
}

func (c *contenderResult) add(limit, took time.Duration, err error) {
	c.Seconds = append(c.Seconds, took.Seconds())
	if err != nil {
		c.Right = false
		c.Errors = append(c.Errors, err.Error())
		c.Percent = append(c.Percent, 0)
		return
	}
	c.Percent = append(c.Percent, 100*limit.Seconds()/took.Seconds())
}

// sum fills the summary in; a failed round counts as 0 %.
func (c *contenderResult) sum() {
	sorted := slices.Sorted(slices.Values(c.Percent))
	n := len(sorted)
	c.Min, c.Max = sorted[0], sorted[n-1]
	c.Median = (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func (r *result) print(w io.Writer) error {
	limits := slices.Sorted(slices.Values(r.Limit))
	fmt.Fprintf(w, "%s, %s, %s, limit %.2f-%.2f s, %d rounds; share of the limit:\n",
		cmp.Or(r.Scenario, "lab"), lab.Bytes(r.Size), r.Congestion, limits[0], limits[len(limits)-1], len(limits))
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "contender\tmin\tmedian\tmax\tbytes\t")
	for _, c := range r.Contenders {
		right := "right"
		if !c.Right {
			right = "FAILED"
		}
		fmt.Fprintf(tw, "%s\t%.1f%%\t%.1f%%\t%.1f%%\t%s\t\n", c.Name, c.Min, c.Median, c.Max, right)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, c := range r.Contenders {
		for _, e := range c.Errors {
			fmt.Fprintf(w, "%s: %s\n", c.Name, e)
		}
	}
	return nil
}

// checkSum compares a file's SHA-256 with the object's and removes the file.
func checkSum(path string, o lab.Object) error {
	defer os.Remove(path)
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != o.SHA256 {
		return fmt.Errorf("wrong bytes: %d of %d, sha256 %s, want %s", n, o.Size, got, o.SHA256)
	}
	return nil
}
