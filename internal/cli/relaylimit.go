package cli

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/net/relay"
)

// limitFlags are the flags of a client's limits.
type limitFlags struct {
	flows       int
	rate, month string
}

func (l *limitFlags) add(f *pflag.FlagSet) {
	f.IntVar(&l.flows, "flows", 0, "allow at most this `NUMBER` of tunnels at a time; 0 = no limit")
	f.StringVar(&l.rate, "rate", "0",
		"limit all tunnels together to `RATE`, both directions added, like 20Mbit/s; 0 = no limit")
	f.StringVar(&l.month, "month", "0",
		"limit the data per month (UTC) to `SIZE`, both directions added, like 100GB; 0 = no limit")
}

// leastRate is the lowest rate limit, in bytes per second. With a lower one, a tunnel would seem to be dead.
const leastRate = 10_000

// apply sets the limits whose flags were given.
func (l *limitFlags) apply(f *pflag.FlagSet, to *relay.Limits) error {
	if f.Changed("flows") {
		if l.flows < 0 {
			return errors.New("--flows: want 0 or more")
		}
		to.Flows = l.flows
	}
	if f.Changed("rate") {
		var r config.Rate
		if err := r.UnmarshalText([]byte(l.rate)); err != nil {
			return fmt.Errorf("--rate: %w", err)
		}
		if r != 0 && r < leastRate {
			return fmt.Errorf("--rate: want 0 or at least %s", config.Rate(leastRate))
		}
		to.Rate = int64(r)
	}
	if f.Changed("month") {
		var b config.Bytes
		if err := b.UnmarshalText([]byte(l.month)); err != nil {
			return fmt.Errorf("--month: %w", err)
		}
		to.Month = int64(b)
	}
	return nil
}

// limitColumns returns a client's limits for a month, its rate and its flows, separated by tabs.
func limitColumns(l relay.Limits) string {
	month, rate, flows := "-", "-", "-"
	if l.Month > 0 {
		month = size(l.Month)
	}
	if l.Rate > 0 {
		rate = config.Rate(l.Rate).String()
	}
	if l.Flows > 0 {
		flows = strconv.Itoa(l.Flows)
	}
	return month + "\t" + rate + "\t" + flows
}

func (a *app) relayLimit() *cobra.Command {
	var limits limitFlags
	c := &cobra.Command{
		Use:   "limit KEY",
		Short: "Limit what a client may use of this relay",
		Long: `Set limits for the client whose key begins with KEY; "relay clients" shows the keys and limits. Limits that are not given
stay unchanged, and 0 removes a limit. They take effect within seconds, for open tunnels too. When a client reaches a
limit, its "tributary status" says so, and its new tunnels use a single link. Run this as root or as the user of
"relay serve".`,
		Example: `  tributary relay limit q3fX --rate 20Mbit/s --month 100GB --flows 200
  tributary relay limit q3fX --month 0`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().NFlag() == 0 {
				return usageError{errors.New("no limit given: use --flows, --rate or --month")}
			}
			if err := limits.apply(cmd.Flags(), &relay.Limits{}); err != nil {
				return usageError{err}
			}
			if err := relayOwner(); err != nil {
				return err
			}
			k, l, err := relay.Limit(relayServerFile(), args[0],
				func(l *relay.Limits) { _ = limits.apply(cmd.Flags(), l) })
			if errors.Is(err, relay.ErrNoClient) {
				return usageError{fmt.Errorf("%q is %w", args[0], err)}
			}
			if err != nil {
				return err
			}
			or := func(set bool, s string) string {
				if !set {
					return "any"
				}
				return s
			}
			fmt.Fprintf(a.stdout, "%s: bytes in a month %s, rate %s, tunnels at a time %s\n", k,
				or(l.Month > 0, config.Bytes(l.Month).String()),
				or(l.Rate > 0, config.Rate(l.Rate).String()), or(l.Flows > 0, strconv.Itoa(l.Flows)))
			return nil
		},
	}
	limits.add(c.Flags())
	return c
}
