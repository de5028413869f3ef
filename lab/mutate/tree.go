package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// result is the outcome of a mutation.
type result string

const (
	caught   result = "caught"
	expired  result = "timeout"  // the tests did not end, which counts as caught; check again if the machine was busy
	survived result = "SURVIVED" // the tests passed
	unbuilt  result = "NO BUILD" // the mutation does not compile, which proves nothing
)

// longest is how long the tests of one mutation may take; a timeout counts as a failure.
const longest = "1m"

// tree is a copy of the repository.
type tree struct {
	root string
	said io.Writer // output of tests
}

// newTree copies the files that git knows or would add.
func newTree(ctx context.Context, from string) (*tree, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = from
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files: %w", err)
	}
	root, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return nil, err
	}
	c := &tree{root: root, said: os.Stdout}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if err := copyFile(filepath.Join(root, name), filepath.Join(from, name)); err != nil &&
			!errors.Is(err, os.ErrNotExist) {
			c.remove()
			return nil, err
		}
	}
	return c, nil
}

func copyFile(to, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}

func (c *tree) remove() { _ = os.RemoveAll(c.root) }

// sound runs the tests of all mutations on the code as it is: only tests that pass there can detect a mutation.
func (c *tree) sound(ctx context.Context, chosen []mutation) error {
	runs := map[string][]string{}
	for _, m := range chosen {
		for _, dir := range m.dirs {
			runs[dir] = append(runs[dir], m.run)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(runs)) {
		slices.Sort(runs[dir])
		out, err := c.test(ctx, []string{dir}, strings.Join(slices.Compact(runs[dir]), "|"), "20m")
		if err != nil {
			return fmt.Errorf("the tests of %s fail without any mutation: %w\n%s", dir, err, out)
		}
	}
	return nil
}

// try applies one mutation, runs its tests and reverts it.
func (c *tree) try(ctx context.Context, m mutation) (result, time.Duration, error) {
	name := filepath.Join(c.root, m.file)
	text, err := os.ReadFile(name)
	if err != nil {
		return "", 0, err
	}
	if err := os.WriteFile(name, []byte(m.apply(string(text))), 0o644); err != nil {
		return "", 0, err
	}
	began := time.Now()
	out, err := c.test(ctx, m.dirs, m.run, longest)
	took := time.Since(began)
	if err := os.WriteFile(name, text, 0o644); err != nil {
		return "", 0, err
	}
	fmt.Fprintf(c.said, "== %s %s: %s -> %s\ngo test -run '%s' %v\n%s", m.name(), m.file, m.old, m.new, m.run, m.dirs,
		out)
	switch {
	case ctx.Err() != nil:
		return "", 0, ctx.Err()
	case err == nil:
		return survived, took, nil
	case bytes.Contains(out, []byte("panic: test timed out")):
		return expired, took, nil
	case bytes.Contains(out, []byte("--- FAIL")), bytes.Contains(out, []byte("panic: ")):
		return caught, took, nil
	}
	return unbuilt, took, nil
}

// test runs tests, each package in its module, up to the first that fails, and returns their output.
func (c *tree) test(ctx context.Context, dirs []string, run, limit string) (said []byte, err error) {
	for _, d := range dirs {
		module := "."
		if below, ok := strings.CutPrefix(d, "lab/"); ok {
			module, d = "lab", below
		}
		args := []string{
			"go", "test", "-C", module, "-vet=off", "-count=1", "-failfast", "-timeout", limit, "-run", run,
			"./" + d,
		}
		out, err := c.output(isolated(ctx, args))
		if errors.Is(err, os.ErrPermission) { // root, but not allowed to make namespaces
			out, err = c.output(exec.CommandContext(ctx, args[0], args[1:]...))
		}
		if said = append(said, out...); err != nil {
			return said, err
		}
	}
	return said, nil
}

func (c *tree) output(cmd *exec.Cmd) ([]byte, error) {
	cmd.Dir = c.root
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // the tests clean up
	cmd.WaitDelay = 20 * time.Second
	return cmd.CombinedOutput()
}
