// Command mutate checks the tests: it breaks lines that guard the product, one at a time in a copy of the repository,
// and demands that a test fails. mutations.toml lists the lines: those that enforce HTTP rules, and those that keep the
// invariants of the core. Run it by hand, from the lab's folder: `make mutate`.
//
// As root on Linux the tests run in a network namespace with a loopback device only: without its guard the code may
// dial forbidden addresses.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/tributary-http/tributary/lab/httprules"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

const usage = `Usage: make mutate [ARGS='[--seed N] [--count N] [--all] [-v] [RULE ...] [core]']

Breaks lines that guard rules of docs/http-rules.toml, or invariants of the core, one at a time in a copy of the tree, and runs
their tests: they must fail. Without RULE (like R37) or core it draws some at random.

`

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), usage); flags.PrintDefaults() }
	seed := flags.Uint64("seed", rand.Uint64N(1e6), "`number` that the draw depends on")
	count := flags.Int("count", 15, "how many are drawn")
	all := flags.Bool("all", false, "try every mutation")
	verbose := flags.Bool("v", false, "show the output of the tests")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	const root = ".."
	list, bad, err := load(root)
	if err != nil {
		return err
	}
	for _, b := range bad {
		fmt.Fprintln(out, "ERROR", b)
	}
	chosen, err := choose(list, flags.Args(), *all, *seed, *count)
	if err != nil {
		return err
	}
	if len(flags.Args()) == 0 && !*all {
		fmt.Fprintf(out, "%d of %d mutations, seed %d\n", len(chosen), len(list), *seed)
	}
	chosen = slices.DeleteFunc(chosen, func(m mutation) bool { return m.stale != "" })
	c, err := newTree(ctx, root)
	if err != nil {
		return err
	}
	defer c.remove()
	if !*verbose {
		c.said = io.Discard
	}
	if err := c.sound(ctx, chosen); err != nil {
		return err
	}
	err = report(ctx, c, chosen, out)
	if len(bad) > 0 {
		err = errors.Join(err, fmt.Errorf("%d errors in %s, listed above", len(bad), listName))
	}
	return err
}

// load reads the list of mutations of the tree below root, and its faults.
func load(root string) (list []mutation, bad []string, err error) {
	rules, err := httprules.Load(root)
	if err != nil {
		return nil, nil, err
	}
	tests, err := httprules.Scan(root)
	if err != nil {
		return nil, nil, err
	}
	return parse(listed, root, rules, tests)
}

// choose returns the mutations of the named rules, all mutations, or count mutations drawn at random.
func choose(list []mutation, names []string, all bool, seed uint64, count int) (chosen []mutation, err error) {
	if len(names) == 0 {
		if all {
			return slices.Clone(list), nil
		}
		draw := rand.New(rand.NewPCG(seed, 0))
		for _, i := range draw.Perm(len(list))[:max(0, min(count, len(list)))] {
			chosen = append(chosen, list[i])
		}
		return chosen, nil
	}
	for _, name := range names {
		before := len(chosen)
		for _, m := range list {
			if m.name() == name {
				chosen = append(chosen, m)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("%s is not a rule like R37 with a mutation, nor core; %s may say why", name,
				listName)
		}
	}
	return chosen, nil
}

// report tries the mutations and prints a line for each.
func report(ctx context.Context, c *tree, chosen []mutation, out io.Writer) error {
	missed := 0
	for _, m := range chosen {
		r, took, err := c.try(ctx, m)
		if err != nil {
			return err
		}
		if r != caught && r != expired {
			missed++
		}
		fmt.Fprintf(out, "%-5s %-45s %-9s %5.1fs  %s\n", m.name(), fmt.Sprintf("%s:%d", m.file, m.line), r,
			took.Seconds(), m.guards)
	}
	fmt.Fprintf(out, "%d of %d caught\n", len(chosen)-missed, len(chosen))
	if missed > 0 {
		return fmt.Errorf("%d mutations were not caught: a test is missing, or the mutation breaks nothing; -v shows more",
			missed)
	}
	return nil
}
