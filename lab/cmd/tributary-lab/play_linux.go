package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/lab/netlab"
)

type playOptions struct {
	size      string
	scheduler string
	rounds    int
	binary    string
	timeout   time.Duration
	json      bool
	verbose   bool
}

func playCommand() *cobra.Command {
	var o playOptions
	cmd := &cobra.Command{
		Use:   "play SCENARIO",
		Short: "Download once through tributary while the scenario's events happen, and report what the client saw",
		Long: `In each round, starts tributary, downloads one object through it with a client that records every read, and plays the
scenario's events, beginning at the moment of the request. Prints the time, whether the bytes are right, the bytes of each link,
the longest time between two reads of the client and when it began, and the longest time in which no link delivered anything
although one was up. For every event after which a link works again, it prints how long it took until the client got its next
byte, and the link its next body byte (within 20 ms). The physical bound counts the links' capacity while they are up, see bench.`,
		Example: `  tributary-lab play equal-blackhole --rounds 3
  tributary-lab play both-gone --scheduler alg3 --json`,
		Args: cobra.ExactArgs(1),
		RunE: over(func(cmd *cobra.Command, sc netlab.Scenario) error {
			rounds, err := play(cmd.Context(), sc, o, cmd.ErrOrStderr())
			if o.json {
				return errors.Join(err, printJSON(cmd.OutOrStdout(), rounds))
			}
			for i, r := range rounds {
				r.print(cmd.OutOrStdout(), i+1)
			}
			return err
		}),
	}
	f := cmd.Flags()
	f.StringVar(&o.size, "size", "", "size of the object (default the scenario's first)")
	f.StringVar(&o.scheduler, "scheduler", "", "scheduler (default tributary's)")
	roundsFlag(f, &o.rounds, 1)
	binaryFlag(f, &o.binary)
	f.DurationVar(&o.timeout, "timeout", time.Minute, "longest time of one download")
	jsonFlag(f, &o.json)
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print tributary's log, at level debug")
	return cmd
}

// playRound is the result of one download. Seconds count from the request.
type playRound struct {
	Seconds    float64     `json:"seconds"`
	Physical   float64     `json:"physical"` // percent: time that the links' capacity needs while they are up / Seconds
	Right      bool        `json:"right"`    // the body has the object's SHA-256
	Bytes      int64       `json:"bytes"`
	Waste      int64       `json:"waste_bytes"`
	Pause      float64     `json:"longest_pause_seconds"`
	PauseBegan float64     `json:"longest_pause_began_seconds"`
	Idle       float64     `json:"longest_idle_seconds"` // over all links, not counting times when none is up
	Links      []playLink  `json:"links"`
	Events     []playEvent `json:"events"`
	Error      string      `json:"error,omitempty"`
}

type playLink struct {
	Name     string `json:"name"`
	Received int64  `json:"received_bytes"` // body bytes according to the metrics, waste included
	Waste    int64  `json:"waste_bytes"`
	Carried  int64  `json:"carried_bytes"` // counted by the emulator, headers and lost packets included
}

type playEvent struct {
	Began       float64  `json:"began_seconds"`
	Link        string   `json:"link"`
	What        string   `json:"what"`
	ClientAfter *float64 `json:"client_after_seconds"` // null: no byte arrived after the event
	LinkAfter   *float64 `json:"link_after_seconds"`   // null: no byte arrived over the link after the event
}

// play plays the rounds. Failed rounds are returned too, and cause an error at the end.
func play(ctx context.Context, sc netlab.Scenario, o playOptions, say io.Writer) (rounds []playRound, err error) {
	size, err := benchSize(sc, o.size)
	if err != nil {
		return nil, err
	}
	sc.Objects = []netlab.Bytes{size}
	bound, err := netlab.PhysicalBound(sc, size)
	if err != nil {
		return nil, err
	}
	l, err := netlab.New(ctx, sc)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	n, err := l.StartNginx(ctx, netlab.NginxOptions{})
	if err != nil {
		return nil, err
	}
	if _, err := l.StartDNS(); err != nil {
		return nil, err
	}
	object, err := n.Object(size)
	if err != nil {
		return nil, err
	}
	wrong := 0
	for range o.rounds {
		r, err := playOnce(ctx, l, object, n.NamedURL(object), o, say)
		if ctx.Err() != nil {
			return rounds, ctx.Err()
		}
		if err != nil {
			r.Error = err.Error()
		}
		if err != nil || !r.Right {
			wrong++
		} else {
			r.Physical = 100 * bound.Seconds() / r.Seconds
		}
		rounds = append(rounds, r)
	}
	if wrong > 0 {
		return rounds, fmt.Errorf("%d of %d rounds went wrong", wrong, o.rounds)
	}
	return rounds, nil
}

func playOnce(
	ctx context.Context, l *netlab.Lab, object netlab.Object, url string, o playOptions, say io.Writer,
) (r playRound, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	for _, link := range l.Links() { // the previous round may have left them in another state
		if err := errors.Join(link.Blackhole(false), link.Up()); err != nil {
			return r, err
		}
	}
	options := netlab.TributaryOptions{Binary: o.binary}
	if err := withScheduler(&options, o.scheduler); err != nil {
		return r, err
	}
	if o.verbose {
		options.Args = []string{"--log-level", "debug"}
	}
	t, err := l.StartTributary(ctx, options)
	if err != nil {
		return r, err
	}
	defer func() {
		err = errors.Join(err, t.Stop())
		if o.verbose {
			fmt.Fprint(say, t.Said())
		}
	}()
	if err := l.Fresh(ctx); err != nil {
		return r, err
	}
	p, err := l.Play(ctx, t, url)
	pause, began := p.LongestPause()
	r = playRound{
		Seconds:    p.Took.Seconds(),
		Right:      p.Is(object),
		Bytes:      p.Bytes,
		Pause:      pause.Seconds(),
		PauseBegan: began.Seconds(),
		Idle:       p.Idle.Seconds(),
	}
	for _, link := range p.Links {
		r.Waste += link.Waste
		r.Links = append(r.Links, playLink(link))
	}
	for _, e := range p.Events {
		ev := playEvent{Began: e.Began.Seconds(), Link: e.Link, What: e.What}
		if e.Returns() {
			ev.ClientAfter, ev.LinkAfter = secondsOrNil(e.ClientAfter), secondsOrNil(e.LinkAfter)
		}
		r.Events = append(r.Events, ev)
	}
	return r, err
}

func secondsOrNil(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	s := d.Seconds()
	return &s
}

func (r playRound) print(w io.Writer, round int) {
	right := "bytes right"
	if !r.Right {
		right = "bytes WRONG"
	}
	fmt.Fprintf(w,
		"round %d: %.2f s, %.1f %% of the physical bound, %s, waste %.2f MB, longest pause %.0f ms from %.2f s, links idle for %.0f ms\n",
		round, r.Seconds, r.Physical, right, mega(r.Waste), 1e3*r.Pause, r.PauseBegan, 1e3*r.Idle)
	for _, l := range r.Links {
		fmt.Fprintf(w, "  %-8s %.2f MB of the body (waste %.2f MB), carried %.2f MB\n",
			l.Name, mega(l.Received), mega(l.Waste), mega(l.Carried))
	}
	for _, e := range r.Events {
		fmt.Fprintf(w, "  %5.2f s %s %s", e.Began, e.Link, e.What)
		if (netlab.Event{What: e.What}).Returns() {
			fmt.Fprintf(w, ": client's next byte %s, link's next byte %s", after(e.ClientAfter), after(e.LinkAfter))
		}
		fmt.Fprintln(w)
	}
	if r.Error != "" {
		fmt.Fprintln(w, "  FAILED:", r.Error)
	}
}

func mega(n int64) float64 { return float64(n) / 1e6 }

func after(seconds *float64) string {
	if seconds == nil {
		return "never"
	}
	return fmt.Sprintf("after %.0f ms", 1e3**seconds)
}
