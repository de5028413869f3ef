package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/lab/netlab"
)

func stripeCommand() *cobra.Command {
	var size netlab.Bytes
	var congestion string
	var rounds int
	var weights []int
	cmd := &cobra.Command{
		Use:   "stripe SCENARIO",
		Short: "Measure TCP over a device whose packets take the links in turn",
		Long: `In each round, downloads an object over one TCP connection: over each link alone, and over a device whose packets take the
links in turn, one packet each, or as many as --weight says (Evensen 2011 section 1.1). Prints medians in Mbit/s.`,
		Example: "  tributary-lab stripe far --size 4MB --weight 1 --weight 2",
		Args:    cobra.ExactArgs(1),
		RunE: over(func(cmd *cobra.Command, sc netlab.Scenario) error {
			sc.Events, sc.Congestion = nil, congestion
			return stripe(cmd.Context(), sc, size, weights, rounds, cmd.OutOrStdout())
		}),
	}
	f := cmd.Flags()
	sizeFlag(f, &size, "20MB", "of the object")
	f.StringVar(&congestion, "congestion", "", "TCP congestion control of the origin (default the system's)")
	roundsFlag(f, &rounds, 3)
	f.IntSliceVar(&weights, "weight", nil, "packets of each link in a round; by itself one each")
	return cmd
}

func stripe(ctx context.Context, sc netlab.Scenario, size netlab.Bytes, weights []int, rounds int,
	w io.Writer,
) (err error) {
	l, err := netlab.New(ctx, sc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	n, err := l.StartNginx(ctx, netlab.NginxOptions{})
	if err != nil {
		return err
	}
	o, err := n.Object(size)
	if err != nil {
		return err
	}
	equal := make([]int, len(sc.Links))
	for i := range equal {
		equal[i] = 1
	}
	type way struct {
		name    string
		link    string
		weights []int
	}
	var ways []way
	for _, name := range l.LinkNames() {
		ways = append(ways, way{name: name, link: name})
	}
	ways = append(ways, way{name: "in turn", weights: equal})
	if weights != nil {
		if len(weights) != len(equal) {
			return fmt.Errorf("--weight: want one for each of the %d links", len(equal))
		}
		ways = append(ways, way{name: fmt.Sprintf("weighted %v", weights), weights: weights})
	}
	rates := make([][]float64, len(ways))
	for range rounds {
		for i, v := range ways {
			if err := l.Fresh(ctx); err != nil {
				return err
			}
			args := []string{"-sS", "--fail", "-o", "/dev/null", "-w", "%{speed_download}"}
			var s *netlab.Stripe
			if v.weights == nil {
				args = append(args, "--interface", v.link, o.URL)
			} else {
				if s, err = l.StartStripe(ctx, v.weights); err != nil {
					return err
				}
				args = append(args, "--connect-to", "::"+s.Server().String()+":", o.URL)
			}
			out, err := l.Client(ctx, "curl", args...).CombinedOutput()
			if s != nil {
				s.Close()
			}
			if err != nil {
				return fmt.Errorf("%s: %w: %s", v.name, err, out)
			}
			rate, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
			if err != nil {
				return err
			}
			rates[i] = append(rates[i], rate*8/1e6)
		}
	}
	for i, v := range ways {
		fmt.Fprintf(w, "%-16s %6.1f Mbit/s\n", v.name, median(rates[i]))
	}
	return nil
}
