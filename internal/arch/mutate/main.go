// Command mutate tries the tests of the HTTP rules: it breaks lines that guard a rule, one at a time and in a copy of the
// module, and demands that a test of that rule fails. tools/mutations.toml lists the lines.
//
// As root on Linux the tests run in a network namespace with a loopback device only: without its guard the code may dial
// what it must not.
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
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/tributary-http/tributary/internal/arch/httprules"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

const usage = `Usage: tools/mutate.sh [--seed N] [--count N] [--all] [RULE ...]

Breaks lines that guard rules of docs/HTTP.md, one at a time in a copy of the tree, and runs the tests of the rule: they
must fail. Without RULE (like R37) it draws some by lot.

`

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.Usage = func() { fmt.Fprint(flags.Output(), usage); flags.PrintDefaults() }
	seed := flags.Uint64("seed", rand.Uint64N(1e6), "`number` that the draw depends on")
	count := flags.Int("count", 15, "how many are drawn")
	all := flags.Bool("all", false, "try every mutation")
	verbose := flags.Bool("v", false, "show what the tests say")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	list, err := load(".")
	if err != nil {
		return err
	}
	chosen, err := choose(list, flags.Args(), *all, *seed, *count)
	if err != nil {
		return err
	}
	if len(flags.Args()) == 0 && !*all {
		fmt.Fprintf(out, "%d of %d mutations, seed %d\n", len(chosen), len(list), *seed)
	}
	c, err := newTree(ctx, ".")
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
	return report(ctx, c, chosen, out)
}

func load(root string) ([]httprules.Mutation, error) {
	book, err := httprules.Load(root)
	if err != nil {
		return nil, err
	}
	tests, err := httprules.Scan(root)
	if err != nil {
		return nil, err
	}
	list, bad, err := httprules.LoadMutations(root, book, tests)
	switch {
	case err != nil:
		return nil, err
	case len(bad) > 0:
		return nil, errors.New(strings.Join(bad, "\n        "))
	}
	return list.All, nil
}

var ruleForm = regexp.MustCompile(`^R([0-9]+)$`)

// choose returns the mutations of the rules, all, or count drawn by lot.
func choose(list []httprules.Mutation, rules []string, all bool, seed uint64, count int) (chosen []httprules.Mutation, err error) {
	if len(rules) == 0 {
		if all {
			return list, nil
		}
		draw := rand.New(rand.NewPCG(seed, 0))
		for _, i := range draw.Perm(len(list))[:max(0, min(count, len(list)))] {
			chosen = append(chosen, list[i])
		}
		return chosen, nil
	}
	for _, r := range rules {
		m := ruleForm.FindStringSubmatch(r)
		if m == nil {
			return nil, fmt.Errorf("%q is no rule like R37", r)
		}
		n, before := 0, len(chosen)
		if n, err = strconv.Atoi(m[1]); err != nil {
			return nil, err
		}
		for _, m := range list {
			if m.Rule == n {
				chosen = append(chosen, m)
			}
		}
		if len(chosen) == before {
			return nil, fmt.Errorf("%s has no mutation; %s may say why", r, httprules.MutationsFile)
		}
	}
	return chosen, nil
}

// report tries the mutations and prints a line for each.
func report(ctx context.Context, c *tree, chosen []httprules.Mutation, out io.Writer) error {
	missed := 0
	for _, m := range chosen {
		r, took, err := c.try(ctx, m)
		if err != nil {
			return err
		}
		if r != caught {
			missed++
		}
		fmt.Fprintf(out, "%-5s %-45s %-9s %5.1fs\n", fmt.Sprintf("R%d", m.Rule), fmt.Sprintf("%s:%d", m.File, m.Line), r,
			took.Seconds())
	}
	fmt.Fprintf(out, "%d of %d caught\n", len(chosen)-missed, len(chosen))
	if missed > 0 {
		return fmt.Errorf("%d mutations were not caught: a test is missing, or the mutation breaks nothing; -v shows more", missed)
	}
	return nil
}
