package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/lab/netlab"
)

// putPort is where the origin of uploads listens.
const putPort = 8090

func putCommand() *cobra.Command {
	u := uploads{}
	var size netlab.Bytes
	cmd := &cobra.Command{
		Use:   "put SCENARIO",
		Short: "Measure parallel uploads of parts against what the uplinks carry",
		Long: `In each round, measures how long the parts of an upload take if each is sent by its own curl at the same time: through tributary
as requests, through tributary as tunnels, both again when tributary knows the links, and without tributary over the first link. The
limit is the time until plain uploads over all links at once have sent as many bytes as all parts have. Prints medians of limit time /
time as a percentage.`,
		Example: "  tributary-lab put hs --parts 8 --size 8MiB",
		Args:    cobra.ExactArgs(1),
		RunE: over(func(cmd *cobra.Command, sc netlab.Scenario) error {
			sc.Events, u.size = nil, int64(size)
			return u.run(cmd.Context(), sc, cmd.OutOrStdout())
		}),
	}
	f := cmd.Flags()
	f.IntVar(&u.parts, "parts", 8, "uploads at a time")
	sizeFlag(f, &size, "8MiB", "size of a part")
	roundsFlag(f, &u.rounds, 5)
	binaryFlag(f, &u.binary)
	return cmd
}

// putWay is a way to upload.
type putWay struct {
	name  string
	args  []string // arguments of curl; nil = the limit
	again bool     // the same parts are first uploaded through the same tributary, unmeasured
}

// uploads measures parallel uploads.
type uploads struct {
	parts, rounds int
	size          int64 // size of a part
	binary        string

	lab  *netlab.Lab
	part string // a file of that size

	mu       sync.Mutex
	received int64
	enough   chan struct{} // closed when all parts are received
}

func (u *uploads) run(ctx context.Context, sc netlab.Scenario, w io.Writer) (err error) {
	if u.lab, err = netlab.New(ctx, sc); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.lab.Close()) }()
	u.part = filepath.Join(u.lab.Dir, "part")
	if err := os.WriteFile(u.part, make([]byte, u.size), 0o644); err != nil {
		return err
	}
	var ln net.Listener
	err = u.lab.InServer(func() (err error) {
		ln, err = net.Listen("tcp", fmt.Sprintf("%s:%d", netlab.OriginAddr, putPort))
		return err
	})
	if err != nil {
		return err
	}
	server := &http.Server{Handler: u, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	defer func() { server.Close(); <-served }()
	proxy := []string{"-x", "http://" + netlab.ProxyAddr}
	tunnels := append(slices.Clone(proxy), "--proxytunnel")
	ways := []putWay{
		{name: "limit"},
		{"requests", proxy, false},
		{"tunnels", tunnels, false},
		{"requests again", proxy, true},
		{"tunnels again", tunnels, true},
		{"one link", []string{"--interface", sc.Links[0].Name}, false},
	}
	took := make([][]float64, len(ways))
	for range u.rounds {
		for i, way := range ways {
			seconds, err := u.time(ctx, way)
			if err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
			took[i] = append(took[i], seconds)
		}
	}
	for i, way := range ways {
		var shares []float64
		for k, seconds := range took[i] {
			shares = append(shares, 100*took[0][k]/seconds)
		}
		fmt.Fprintf(w, "%-14s %6.2f s  %5.1f %% of the limit (%.1f to %.1f)\n", way.name, median(took[i]),
			median(shares), slices.Min(shares), slices.Max(shares))
	}
	return nil
}

// time returns how long it takes until all parts are received. If a tributary is needed, it starts a new one.
func (u *uploads) time(ctx context.Context, way putWay) (seconds float64, err error) {
	if slices.Contains(way.args, "-x") {
		t, err := u.lab.StartTributary(ctx, netlab.TributaryOptions{Binary: u.binary})
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, t.Stop()) }()
	}
	if way.again {
		if _, err := u.once(ctx, way.args); err != nil {
			return 0, err
		}
	}
	return u.once(ctx, way.args)
}

// once uploads all parts over links that are silent at first.
func (u *uploads) once(ctx context.Context, args []string) (seconds float64, err error) {
	if err := u.lab.Fresh(ctx); err != nil {
		return 0, err
	}
	u.mu.Lock()
	u.received, u.enough = 0, make(chan struct{})
	u.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began, done := time.Now(), make(chan error, 1)
	go func() {
		if args == nil {
			done <- u.everywhere(ctx)
		} else {
			done <- u.all(ctx, args...)
		}
	}()
	select {
	case <-u.enough:
		seconds = time.Since(began).Seconds()
		cancel() // the rest is no longer needed
		<-done
		return seconds, nil
	case err := <-done:
		return 0, errors.Join(errors.New("not all parts were received"), err)
	}
}

// ServeHTTP receives an upload.
func (u *uploads) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Body.Read(buf)
		u.mu.Lock()
		before := u.received
		u.received += int64(n)
		if all := int64(u.parts) * u.size; before < all && u.received >= all {
			close(u.enough)
		}
		u.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// all uploads every part at the same time, each with its own curl.
func (u *uploads) all(ctx context.Context, args ...string) error {
	errs := make([]error, u.parts)
	var parts sync.WaitGroup
	for i := range u.parts {
		parts.Go(func() {
			argv := append([]string{"-sS", "--fail", "-o", os.DevNull, "-T", u.part}, args...)
			argv = append(argv, fmt.Sprintf("http://%s:%d/%d", netlab.OriginAddr, putPort, i))
			if out, err := u.lab.Client(ctx, "curl", argv...).CombinedOutput(); err != nil {
				errs[i] = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
			}
		})
	}
	parts.Wait()
	return errors.Join(errs...)
}

// everywhere uploads every part over each link, which is more than can be carried in the measured time.
func (u *uploads) everywhere(ctx context.Context) error {
	var links sync.WaitGroup
	for _, name := range u.lab.LinkNames() {
		links.Go(func() { _ = u.all(ctx, "--interface", name) })
	}
	links.Wait()
	return nil
}
