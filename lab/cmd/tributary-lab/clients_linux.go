package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

type clientsOptions struct {
	clients int
	rate    string
	size    string
	settle  time.Duration
	binary  string
	timeout time.Duration
	json    bool
}

func clientsCommand() *cobra.Command {
	var o clientsOptions
	cmd := &cobra.Command{
		Use:   "clients [SCENARIO]",
		Short: "Download with many slow clients and one fast one, and report speed and memory",
		Long: `Starts tributary and the given number of slow clients, which all download the same object at a bounded rate with a small
receive buffer. After a while, plain downloads over all links measure the rate that the slow clients leave over (the bundling limit).
Then a fast client downloads through tributary. Prints the fast client's share of that limit, the highest memory of the process
(resident, in bytes; the budget is read from the metrics), whether every client got the right bytes, and which descriptors and
goroutines were left at the end.`,
		Example: `  tributary-lab clients
  tributary-lab clients --clients 20 --size 5MB --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sc, err := load(append(args, "clients")[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
			defer cancel()
			r, err := manyClients(ctx, sc, o)
			if o.json {
				return errors.Join(err, printJSON(cmd.OutOrStdout(), r))
			}
			r.print(cmd.OutOrStdout())
			return err
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.clients, "clients", 100, "slow clients")
	f.StringVar(&o.rate, "rate", "200kB", "bytes per second that a slow client takes")
	f.StringVar(&o.size, "size", "", "size of the object (default the scenario's first)")
	f.DurationVar(&o.settle, "settle", 10*time.Second, "time from the slow clients' start to that of the fast one")
	binaryFlag(f, &o.binary)
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "longest time of all")
	jsonFlag(f, &o.json)
	return cmd
}

// clientsResult is the result of a run. Rates are bytes per second.
type clientsResult struct {
	Clients   int     `json:"clients"`
	Wrong     int     `json:"wrong"`            // downloads that failed or delivered wrong bytes
	Capacity  float64 `json:"capacity"`         // of all links, measured by plain downloads beforehand
	SlowRate  float64 `json:"slow_rate"`        // of the slow clients together while the fast one ran
	FastRate  float64 `json:"fast_rate"`        // of the fast client
	Left      float64 `json:"left_rate"`        // of plain downloads over all links beside the slow clients: the rest
	Share     float64 `json:"fast_share"`       // FastRate as a share of Left
	Budget    int64   `json:"budget_bytes"`     // for reordering
	MostHeld  int64   `json:"most_held_bytes"`  // largest part of the budget in use
	RSS       int64   `json:"peak_rss_bytes"`   // of the process
	Slowest   float64 `json:"slowest_fraction"` // rate of the slowest slow client, as a share of the rate it could take
	FDs       int     `json:"fds_left"`         // additional descriptors after all clients left
	Gorouts   int     `json:"goroutines_left"`  // additional goroutines after all clients left
	Took      float64 `json:"seconds"`
	FirstFail string  `json:"first_error,omitempty"`
}

func (r clientsResult) print(w io.Writer) {
	fmt.Fprintf(w, "%d slow clients in %.0f s, %d downloads wrong %s\n", r.Clients, r.Took, r.Wrong, r.FirstFail)
	fmt.Fprintf(w, "fast client: %.2f MB/s of the %.2f MB/s that plain downloads got beside the slow ones = %.1f %%\n",
		r.FastRate/1e6, r.Left/1e6, 100*r.Share)
	fmt.Fprintf(w,
		"slow clients: %.2f MB/s together, of %.2f MB/s that the links carry; the slowest at %.0f %% of its rate\n",
		r.SlowRate/1e6, r.Capacity/1e6, 100*r.Slowest)
	fmt.Fprintf(w, "memory: at most %.1f MiB resident, the budget is %.1f MiB, %.1f MiB of it were held\n",
		mebi(r.RSS), mebi(r.Budget), mebi(r.MostHeld))
	fmt.Fprintf(w, "left over: %d descriptors, %d goroutines\n", r.FDs, r.Gorouts)
}

func mebi(n int64) float64 { return float64(n) / (1 << 20) }

// manyClients runs the clients and returns its result.
func manyClients(ctx context.Context, sc netlab.Scenario, o clientsOptions) (r clientsResult, err error) {
	size, err := benchSize(sc, o.size)
	if err != nil {
		return r, err
	}
	rate, err := netlab.ParseBytes(o.rate)
	if err != nil {
		return r, fmt.Errorf("--rate: %w", err)
	}
	sc.Objects = []netlab.Bytes{size}
	l, err := netlab.New(ctx, sc)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	n, err := l.StartNginx(ctx, netlab.NginxOptions{})
	if err != nil {
		return r, err
	}
	if _, err := l.StartDNS(); err != nil {
		return r, err
	}
	object, err := n.Object(size)
	if err != nil {
		return r, err
	}
	t, err := l.StartTributary(ctx, netlab.TributaryOptions{Binary: o.binary})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, t.Stop()) }()
	if err := l.Fresh(ctx); err != nil {
		return r, err
	}
	took, err := l.Limit(ctx, object.URL, size, l.Links()...)
	if err != nil {
		return r, err
	}
	r.Clients, r.Capacity = o.clients, float64(size)/took.Seconds()
	fdsBefore, goroutinesBefore, err := leftovers(ctx, t)
	if err != nil {
		return r, err
	}

	watch, stop := context.WithCancel(ctx)
	defer stop()
	var watcher sync.WaitGroup
	watcher.Go(func() { r.watch(watch, t) })
	began := time.Now()
	c := &clients{lab: l, url: n.NamedURL(object), object: object}
	for range o.clients {
		c.running.Go(func() { c.download(ctx, float64(rate)) })
	}
	select {
	case <-time.After(o.settle):
	case <-ctx.Done():
	}
	if took, err = l.Limit(ctx, object.URL, size, l.Links()...); err != nil {
		return r, err
	}
	r.Left = float64(size) / took.Seconds()
	before, start := c.bytes.Load(), time.Now()
	fast, ferr := l.Download(ctx, netlab.ProxyAddr, c.url)
	r.SlowRate = float64(c.bytes.Load()-before) / time.Since(start).Seconds()
	r.FastRate = float64(fast.Bytes) / fast.Took.Seconds()
	r.Share = r.FastRate / r.Left
	c.running.Wait()
	r.Took = time.Since(began).Seconds()
	if ferr != nil || !fast.Is(object) {
		c.fail(errors.Join(errors.New("the fast client"), ferr))
	}
	r.Wrong, r.FirstFail, r.Slowest = c.wrong, c.first, c.slowest/float64(rate)
	stop()
	watcher.Wait()

	// Idle connections are kept for a while.
	for deadline := time.Now().Add(30 * time.Second); ctx.Err() == nil && time.Now().Before(deadline); {
		fds, goroutines, err := leftovers(ctx, t)
		if err != nil {
			return r, err
		}
		if r.FDs, r.Gorouts = fds-fdsBefore, goroutines-goroutinesBefore; r.FDs <= 0 && r.Gorouts <= 0 {
			break
		}
		time.Sleep(500 * time.Millisecond)
	}
	return r, ctx.Err()
}

// watch notes the memory of the process until ctx ends.
func (r *clientsResult) watch(ctx context.Context, t *netlab.Tributary) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.RSS = max(r.RSS, status(t.PID(), "VmHWM:"))
			return
		}
		if m, err := t.Metrics(ctx); err == nil {
			r.Budget = int64(m["tributary_budget_bytes"])
			r.MostHeld = max(r.MostHeld, int64(m["tributary_window_held_bytes"]))
		}
	}
}

// status returns a field of /proc/PID/status in bytes, 0 if it cannot be read.
func status(pid int, field string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kB, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kB << 10
		}
	}
	return 0
}

// leftovers counts the open descriptors and the goroutines of the process.
func leftovers(ctx context.Context, t *netlab.Tributary) (fds, goroutines int, err error) {
	m, err := t.Metrics(ctx)
	if err != nil {
		return 0, 0, err
	}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", t.PID()))
	return len(entries), int(m["go_goroutines"]), err
}

// clients are the slow clients.
type clients struct {
	lab     *netlab.Lab
	url     string
	object  netlab.Object
	running sync.WaitGroup
	bytes   atomic.Int64 // sum over all bodies

	mu      sync.Mutex
	wrong   int
	first   string  // error
	slowest float64 // rate, bytes per second
}

func (c *clients) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrong++; c.first == "" {
		c.first = err.Error()
	}
}

// download takes the object at a rate in bytes per second.
func (c *clients) download(ctx context.Context, rate float64) {
	began := time.Now()
	n, sum, err := c.take(ctx, rate)
	if err == nil && (sum != c.object.SHA256 || n != int64(c.object.Size)) {
		err = fmt.Errorf("other bytes than the origin's: %d of %d", n, c.object.Size)
	}
	if err != nil {
		c.fail(err)
		return
	}
	got := float64(n) / time.Since(began).Seconds()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slowest == 0 || got < c.slowest {
		c.slowest = got
	}
}

func (c *clients) take(ctx context.Context, rate float64) (n int64, sum string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return 0, "", err
	}
	req.Close = true
	conn, err := c.lab.DialContext(ctx, "tcp", netlab.ProxyAddr)
	if err != nil {
		return 0, "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := narrow(conn); err != nil {
		return 0, "", err
	}
	if err := req.WriteProxy(conn); err != nil {
		return 0, "", err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return 0, "", fmt.Errorf("status %s", res.Status)
	}
	h := sha256.New()
	buf := make([]byte, 16<<10)
	tick := time.NewTicker(time.Duration(float64(len(buf)) / rate * float64(time.Second)))
	defer tick.Stop()
	for {
		got, err := io.ReadFull(res.Body, buf)
		h.Write(buf[:got])
		n += int64(got)
		c.bytes.Add(int64(got))
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && n == res.ContentLength:
			return n, hex.EncodeToString(h.Sum(nil)), nil
		case err != nil:
			return n, "", err
		}
		<-tick.C
	}
}

// narrow gives a connection a small receive buffer: bytes that the kernel holds for a client do not slow it down.
func narrow(conn net.Conn) error {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = raw.Control(func(fd uintptr) { serr = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 32<<10) })
	return errors.Join(err, serr)
}
