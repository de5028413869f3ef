package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/lab/netlab"
)

type benchOptions struct {
	size       string
	rounds     int
	seed       uint64
	contenders []string
	traces     []string
	origin     string
	binary     string
	timeout    time.Duration
	events     bool
	https      bool
	http1      bool
	json       bool
	markdown   bool
	svg        string
	upload     bool
	all        bool
	energy     bool
	relay      bool
	rows       []string
	docs       string
	congestion []string // congestion controls of the origin, each in turn; none = the system's
	recorded   string   // folder of recorded traces
}

// originHelp lists the origins.
const originHelp = "nginx, apache (closes after 100 requests), brokenpipe (drops connections with two requests at once), " +
	"paced:RATE or paced:RATE+BURST (nginx, each connection at RATE bytes per second), smooth:RATE (the same, paced " +
	"by the kernel) or nginx:DIRECTIVES, such as 'nginx:limit_rate 1m;'"

func benchCommand() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench SCENARIO | --all | --energy | --relay",
		Short: "Measure downloaders side by side against the bundling limit",
		Long: `In each round, measures the bundling limit and each contender, in random order. The limit is one unbounded GET per link at the
same moment, each on a new connection: the time until their bodies add up to the size. Before each of them, the links are
silent, and their ramps and traces start again. Prints limit time / contender time as a percentage, paired by round.

Contenders:
  tributary:SCHEDULER   curl through tributary, which is started each time; default = its default scheduler. Settings of the
                        configuration file may follow: tributary:alg3?transfer_window=4MiB&threshold=64KiB
  frugal                curl through tributary with the goal frugal and the radios of the energy model
  again:SCHEDULER       the same, but the second object from this origin is timed
  lanes                 curl through tributary and a tributary relay next to the origin, with --https
  get                   tributary get
  run                   tributary run curl
  single:LINK           curl over one link; single:* = each, single:best = the fastest by its capacity
  aria2-2, -8, -16      aria2 with so many connections
  mptcp                 curl with MPTCP, from an origin that accepts it
  connect:aria2-8       aria2 with this many connections through tributary; with --https by tunnels, which are spread
  connect:queue-16      a client whose 16 connections take ranges of 1 MiB from a queue, the same way
  lanes:again, connect:aria2-8:again, connect:queue-16:again
                        the same, but the second object from this origin is timed; with lanes the first one has
                        at most 4 MB
  relay, splice         curl through a plain relay over the first link that copies the bytes, or lets the kernel do it
  NAME=CMD              run by sh in the client namespace with {url}, {out}, {ca} (the certificate to trust) and {links}
                        (comma-separated) replaced
If curl downloads, the time that it reports counts, otherwise the time of the command from start to end.

Columns: quartiles of the share of the limit; of bound = the time that the links' capacity needs / the time; delta =
between the last data of the first and of the last link; waste = bytes that the links delivered beyond those of a plain
download (the least of single, otherwise computed), of the size; in order = bytes at the client of those delivered by the
links, at half of the time; pause = the longest at the client after its first byte; conns = the most per link that the
origin saw in a round; requests = seen by the origin; CPU/GB = of the proxy, or of a downloader other than curl; joules =
what a phone would take, by a model: the first link is its Wi-Fi, the others its LTE. Medians.

With --all it runs the rows of docs/BENCHMARKS.md instead, each with its own size, origin, contenders and events, and
writes its tables, the two pictures in it and docs/bench/results.json: 9 rounds of all rows take about 100 minutes for each
congestion control.

With --energy it runs rows 1 to 8 of them with other contenders, and writes the tables of docs/ENERGY.md, a plot of joules over
time for each row, what each link carried every 100 ms, and docs/bench/energy.json.

With --relay it runs the rows of docs/RELAY.md, downloads and uploads by https, and writes the tables there and docs/bench/relay.json.

With --upload curl uploads the object by PUT instead; then "delivered" and "in order" are what the origin has.

With --https the origin speaks TLS 1.3 and HTTP/2. The limit is then measured by HTTP/1.1 over TLS; through a tributary,
curl gets one tunnel over one link.`,
		Example: `  tributary-lab bench hs --size 50MB --contender tributary:alg3 --contender single:best --contender aria2-2
  tributary-lab bench hs --contender tributary:confluence --contender 'tributary:alg3?transfer_window=1MiB'
  tributary-lab bench drive --trace lte=/tmp/recorded.gz --rounds 9
  tributary-lab bench hs --https --contender get --contender single:wifi
  tributary-lab bench ls --contender 'wget=wget -q -O {out} {url}' --json
  tributary-lab bench --all --rounds 9
  tributary-lab bench --energy --rounds 9
  tributary-lab bench --relay --rounds 9 --congestion bbr --congestion cubic --recorded ~/traces
  tributary-lab bench uplinks --upload --contender lanes --contender mptcp
  tributary-lab bench --all --row 7 --row 8 --congestion bbr --congestion cubic
  tributary-lab bench --all --row 4 --recorded ~/traces`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.all || o.energy || o.relay {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.relay {
				return benchRelay(cmd.Context(), o, o.docs, cmd.ErrOrStderr())
			}
			if o.energy {
				return benchEnergy(cmd.Context(), o, o.docs, cmd.ErrOrStderr())
			}
			if o.all {
				return benchAll(cmd.Context(), o, o.docs, cmd.ErrOrStderr())
			}
			sc, err := load(args[0])
			if err != nil {
				return err
			}
			res, err := bench(cmd.Context(), sc, o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if o.svg != "" {
				if err := res.writePlots(o.svg, cmp.Or(sc.Name, "lab")); err != nil {
					return err
				}
			}
			switch w := cmd.OutOrStdout(); {
			case o.json:
				return printJSON(w, res)
			case o.markdown:
				res.markdown(w)
				return nil
			default:
				return res.print(w)
			}
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.size, "size", "", "size of the object (default the scenario's first, with --relay the row's)")
	roundsFlag(f, &o.rounds, 5)
	f.Uint64Var(&o.seed, "seed", 1, "of the order in each round")
	f.StringArrayVar(&o.contenders, "contender", nil, "contender, repeatable (default tributary:default)")
	f.StringArrayVar(&o.traces, "trace", nil, "LINK=PATH: let the link follow this trace instead, repeatable")
	f.StringVar(&o.origin, "origin", "nginx", originHelp)
	binaryFlag(f, &o.binary)
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "longest time of one download")
	f.BoolVar(&o.events, "events", false, "play the scenario's events during each download and during the limit")
	f.BoolVar(&o.https, "https", false, "download by https, with HTTP/2")
	f.BoolVar(&o.http1, "http1", false, "with --https: the origin speaks HTTP/1.1 only")
	jsonFlag(f, &o.json)
	f.BoolVar(&o.markdown, "markdown", false, "print a Markdown table")
	f.StringVar(&o.svg, "svg", "", "write three plots into this folder, with --all of each row")
	f.BoolVar(&o.all, "all", false, "run the rows of docs/BENCHMARKS.md")
	f.BoolVar(&o.energy, "energy", false, "measure time and joules of the rows of docs/ENERGY.md")
	f.BoolVar(&o.relay, "relay", false, "run the rows of docs/RELAY.md")
	f.BoolVar(&o.upload, "upload", false, "upload the object by https")
	f.StringArrayVar(&o.rows, "row", nil, "with --all, --energy or --relay: this row only, repeatable")
	f.StringArrayVar(&o.congestion, "congestion", nil,
		"TCP congestion control of both ends, repeatable with --all and --relay (default the system's)")
	f.StringVar(&o.recorded, "recorded", "",
		"with --all or --relay: folder of LTE traces (mahimahi format) for rows 4 and 5, in place of the generated ones")
	f.StringVar(&o.docs, "docs", "docs",
		"with --all: folder of BENCHMARKS.md, with --energy of ENERGY.md, with --relay of RELAY.md")
	return cmd
}

func bench(ctx context.Context, sc netlab.Scenario, o benchOptions, say io.Writer) (_ *result, err error) {
	size, err := benchSize(sc, o.size)
	if err != nil {
		return nil, err
	}
	sc.Objects = []netlab.Bytes{size}
	if err := replaceTraces(&sc, o.traces); err != nil {
		return nil, err
	}
	if len(o.congestion) > 1 {
		return nil, errors.New("--congestion: one at a time without --all")
	}
	if len(o.congestion) == 1 {
		sc.Congestion = o.congestion[0]
	}
	if len(o.contenders) == 0 {
		o.contenders = []string{"tributary:default"}
	}
	if !o.events {
		sc.Events = nil
	}
	contenders, err := parseContenders(o, sc, size)
	if err != nil {
		return nil, err
	}
	capacity := sc
	if o.upload {
		capacity = reversed(sc)
	}
	bound, err := netlab.PhysicalBound(capacity, size)
	if err != nil {
		return nil, err
	}
	sc.MPTCP = sc.MPTCP || slices.ContainsFunc(contenders, func(c contender) bool {
		return c.mptcp
	})
	l, err := netlab.New(ctx, sc)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	b, err := newBed(ctx, l, size, o)
	if err != nil {
		return nil, err
	}
	stop, err := b.startFarEnds(ctx, contenders)
	if err != nil {
		return nil, err
	}
	defer stop()
	res := &result{
		Scenario:   sc.Name,
		Size:       int64(size),
		Origin:     o.origin,
		HTTPS:      o.https,
		Upload:     o.upload,
		Congestion: l.CongestionControl(),
		Seed:       o.seed,
		Bound:      bound.Seconds(),
		Links:      l.LinkNames(),
	}
	for _, c := range contenders {
		res.Contenders = append(res.Contenders, &contenderResult{Name: c.name, plain: c.plain})
	}
	order := rand.New(rand.NewPCG(o.seed, 0))
	for round := range o.rounds {
		fmt.Fprintf(say, "round %d:", round+1)
		if err := b.round(ctx, res, contenders, order.Perm(len(contenders)+1), say); err != nil {
			return nil, err
		}
		fmt.Fprintln(say)
	}
	if err := b.countRequests(res.Contenders); err != nil {
		return nil, err
	}
	res.sum()
	return res, nil
}

// round measures everything once in the given order: i stands for contender i, and the number after the last contender
// for the limit.
func (b *bed) round(ctx context.Context, res *result, contenders []contender, order []int, say io.Writer) error {
	runs := make([]measurement, len(contenders))
	var limit measurement
	for _, i := range order {
		if i == len(contenders) {
			var err error
			if limit, err = b.limit(ctx); err != nil {
				return err
			}
			fmt.Fprintf(say, " limit %.2f s", limit.Seconds)
			continue
		}
		runs[i] = b.measure(ctx, contenders[i])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Fprintf(say, " %s %.2f s", contenders[i].name, runs[i].Seconds)
		if runs[i].Error != "" {
			fmt.Fprint(say, " FAILED")
		}
	}
	res.Limit, res.limits = append(res.Limit, limit.Seconds), append(res.limits, limit)
	for i, r := range runs {
		res.Contenders[i].add(r, limit.Seconds, res.Bound)
	}
	return nil
}

// benchSize returns the requested size, or the scenario's first if none is requested.
func benchSize(sc netlab.Scenario, asked string) (netlab.Bytes, error) {
	switch {
	case asked != "":
		return netlab.ParseBytes(asked)
	case len(sc.Objects) > 0:
		return sc.Objects[0], nil
	}
	return 0, errors.New("the scenario names no objects: say --size")
}

// replaceTraces replaces traces of links, each given as LINK=PATH: always downwards, and upwards if that direction
// follows a trace.
func replaceTraces(sc *netlab.Scenario, traces []string) error {
	for _, text := range traces {
		name, path, _ := strings.Cut(text, "=")
		i := slices.IndexFunc(sc.Links, func(l netlab.LinkSpec) bool { return l.Name == name })
		if i < 0 || path == "" {
			return fmt.Errorf("--trace %s: want LINK=PATH with a link of the scenario", text)
		}
		trace, err := netlab.LoadTrace(path)
		if err != nil {
			return err
		}
		sc.Links = slices.Clone(sc.Links)
		l := &sc.Links[i]
		if l.Up.Trace != nil {
			l.Up.Trace = trace
		}
		l.Down.Trace, l.Down.Ramp = trace, 0
	}
	return nil
}

// checkSum compares a file's SHA-256 with the object's and removes the file.
func checkSum(path string, o netlab.Object) error {
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
