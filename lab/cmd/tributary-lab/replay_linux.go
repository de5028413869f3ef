package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/lab/netlab"
	"github.com/tributary-http/tributary/lab/sim"
)

type replayOptions struct {
	traces  []string
	shares  string
	least   string
	seed    uint64
	rtts    []time.Duration
	radios  []string
	size    string
	window  string
	schemes []string
	json    bool
}

func replayCommand() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Download one object in the simulator over links that do what traces say, under each scheme (no root)",
		Long: `Each --trace adds one or more links. It may be a file of tributary get --trace (FILE.json, or FILE.json#LINK for one of its
links), a table (FILE.csv with the columns "seconds" and either "mbit_per_s" or "bytes"), or a trace in mahimahi's format (any other
name, gzipped or not; tributary-lab trace generates some). A trace repeats after its end. Rates are those of content; in mahimahi's
format, 1448 of 1500 bytes are content.

--shares SUM creates two links instead, whose rates change every 2 to 10 s while their sum stays the same (Evensen 2011 section
4.3.1); --seed chooses the changes.

Schemes are those of docs/SCHEDULERS.md, including the oracles. The limit is the time at which the links, each alone, have together
delivered as many bytes as the object has (Nika 2015 section 2.2). Tail is the 10th percentile of the rates over 100 ms. The scheme
"frugal" is the default scheduler with the goal frugal.

Joules are the energy that a phone would use, by the models of internal/core/energy: the radios with their tails, and the waiting phone.
--radio names the radio of a link, such as galaxy-s3/wifi; the error for an unknown radio lists the known ones.`,
		Example: `  tributary-lab replay --trace links.json --size 250MB --scheme confluence --scheme alg3
  tributary-lab replay --trace wifi.csv --trace lte.gz --rtt 20ms --rtt 50ms --size 20MB
  tributary-lab replay --trace wifi.csv --trace lte.gz --radio galaxy-note/wifi --radio galaxy-note/lte --scheme frugal
  tributary-lab replay --shares 3Mbit/s --least 500kbit/s --seed 7 --size 10MB --scheme static --scheme dynamic`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := replay(o)
			if err != nil {
				return err
			}
			if o.json {
				return printJSON(cmd.OutOrStdout(), rows)
			}
			printReplay(cmd.OutOrStdout(), rows)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.traces, "trace", nil, "`FILE` of a link; repeatable")
	f.StringVar(&o.shares, "shares", "", "two links of this rate together, with moving shares")
	f.StringVar(&o.least, "least", "", "lowest rate of each of these (default a sixth of the sum)")
	f.Uint64Var(&o.seed, "seed", 1, "of --shares and of schemes that draw")
	f.DurationSliceVar(&o.rtts, "rtt", []time.Duration{20 * time.Millisecond, 50 * time.Millisecond},
		"round trip of each link; the last one holds for further links")
	f.StringSliceVar(&o.radios, "radio", []string{firstRadio, otherRadios},
		"radio of each link, DEVICE/RADIO; the last one holds for further links")
	f.StringVar(&o.size, "size", "20MB", "size of the object")
	f.StringVar(&o.window, "window", "16MiB", "memory for reordering, but for schemes that know the future")
	f.StringArrayVar(&o.schemes, "scheme", []string{"confluence", "alg3", "alg3-literal", "mphttp", "naive"},
		"scheme; repeatable")
	jsonFlag(f, &o.json)
	return cmd
}

// replayRow is the result of one scheme.
type replayRow struct {
	Scheme  string       `json:"scheme"`
	Seconds float64      `json:"seconds"`
	Share   float64      `json:"share_of_limit"` // limit / time
	Delta   float64      `json:"link_delta_seconds"`
	Tail    float64      `json:"tail_mbit_per_s"`
	Waste   int64        `json:"waste_bytes"`
	Joules  float64      `json:"joules"` // modelled: the radios and the waiting phone
	Links   []replayLink `json:"links"`
}

type replayLink struct {
	Name        string  `json:"name"`
	Bytes       int64   `json:"bytes"`
	RadioJoules float64 `json:"radio_joules"` // its tail included
}

// replay first runs the limit and each link alone, then every scheme.
func replay(o replayOptions) (rows []replayRow, err error) {
	links, err := o.links()
	if err != nil {
		return nil, err
	}
	var size, window netlab.Bytes
	if err := size.UnmarshalText([]byte(o.size)); err != nil {
		return nil, fmt.Errorf("--size: %w", err)
	}
	if err := window.UnmarshalText([]byte(o.window)); err != nil {
		return nil, fmt.Errorf("--window: %w", err)
	}
	switch {
	case size <= 0:
		return nil, errors.New("--size: want an object of one byte or more")
	case window < least:
		return nil, fmt.Errorf("--window: want %v or more", least)
	case len(o.rtts) == 0:
		return nil, errors.New("--rtt: want one or more")
	case len(o.radios) == 0:
		return nil, errors.New("--radio: want one or more")
	}
	s := sim.Spec{Size: int64(size), First: firstRange, Window: int64(window), Seed: o.seed}
	for i, l := range links {
		rtt := o.rtts[min(i, len(o.rtts)-1)]
		if rtt <= 0 {
			return nil, fmt.Errorf("--rtt %v: want a round trip of more than 0", rtt)
		}
		radio, err := energy.FindRadio(o.radios[min(i, len(o.radios)-1)])
		if err != nil {
			return nil, fmt.Errorf("--radio: %w", err)
		}
		s.Links = append(s.Links, sim.Link{Trace: l.rates, RTT: rtt, Radio: radio})
	}
	limit, err := sim.Bundle(s)
	if err != nil {
		return nil, err
	}
	row := func(scheme string, of []replayed, r sim.Result) {
		x := replayRow{
			Scheme:  scheme,
			Seconds: r.Took.Seconds(),
			Share:   limit.Took.Seconds() / r.Took.Seconds(),
			Tail:    r.Received.Tail() * 8 / 1e6,
			Waste:   r.Waste,
			Joules:  energy.AwakeWatts * r.Took.Seconds(),
		}
		if len(r.Last) > 0 {
			x.Delta = r.Delta().Seconds()
		}
		for i, l := range of {
			radio := r.Joules[i].Radio()
			x.Links = append(x.Links, replayLink{l.name, r.Bytes[i], radio})
			x.Joules += radio
		}
		rows = append(rows, x)
	}
	row("limit", links, limit)
	for i, l := range links {
		alone := s
		alone.Scheduler, alone.Links = "single", s.Links[i:i+1]
		r, err := sim.Run(alone)
		if err != nil {
			continue // it takes more than an hour
		}
		row(l.name+" alone", links[i:i+1], r)
	}
	for _, name := range o.schemes {
		r, err := sim.Run(s.Under(name))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		row(name, links, r)
	}
	return rows, nil
}

const (
	firstRange = 256 << 10               // bytes: the product's
	least      = netlab.Bytes(512 << 10) // of memory
)

// links reads or makes the links.
func (o replayOptions) links() (links []replayed, err error) {
	if (len(o.traces) == 0) == (o.shares == "") {
		return nil, errors.New("want --trace or --shares")
	}
	for _, arg := range o.traces {
		more, err := readTrace(arg)
		if err != nil {
			return nil, err
		}
		links = append(links, more...)
	}
	if o.shares == "" {
		return links, nil
	}
	var sum, low netlab.BitRate
	if err := sum.UnmarshalText([]byte(o.shares)); err != nil {
		return nil, fmt.Errorf("--shares: %w", err)
	}
	if low = sum / 6; o.least != "" {
		if err := low.UnmarshalText([]byte(o.least)); err != nil {
			return nil, fmt.Errorf("--least: %w", err)
		}
	}
	if low <= 0 || 2*low > sum {
		return nil, errors.New("--least: want more than 0 and at most half of the sum")
	}
	const length = 10 * time.Minute
	first, second := sim.MovingShares(o.seed, float64(sum)/8, float64(low)/8, length)
	return []replayed{{"first", first}, {"second", second}}, nil
}

func printReplay(w io.Writer, rows []replayRow) {
	width := 0
	for _, r := range rows {
		width = max(width, len(r.Scheme))
	}
	fmt.Fprintf(w, "%*s  %9s  %8s  %7s  %12s  %8s  %7s  bytes\n", width, "scheme", "time", "of limit", "delta", "tail",
		"waste", "joules")
	for _, r := range rows {
		var links []string
		for _, l := range r.Links {
			links = append(links, fmt.Sprintf("%s %.2f MB %.1f J", l.Name, mega(l.Bytes), l.RadioJoules))
		}
		fmt.Fprintf(w, "%*s  %7.2f s  %6.1f %%  %5.2f s  %5.1f Mbit/s  %5.2f MB  %5.1f J  %s\n",
			width, r.Scheme, r.Seconds, 100*r.Share, r.Delta, r.Tail, mega(r.Waste), r.Joules,
			strings.Join(links, ", "))
	}
}
