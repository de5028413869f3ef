package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/lab/netlab"
)

// closingPort is where an origin listens that closes each connection after one answer.
const closingPort = 8082

type ttfbOptions struct {
	size   netlab.Bytes
	rounds int
	binary string
	json   bool
}

func ttfbCommand() *cobra.Command {
	var o ttfbOptions
	cmd := &cobra.Command{
		Use:   "ttfb SCENARIO",
		Short: "Compare the time to first byte with and without tributary",
		Long: `Downloads a small object directly over the scenario's first link and through tributary in turn, and prints the
medians of the time to first byte and of the difference within a round:

  fresh   curl; the origin closes each connection, so both sides connect again
  kept    curl connects again; tributary may have kept its connection to the origin
  reused  a client that keeps its connection, directly and to tributary`,
		Example: `  tributary-lab ttfb small --size 10kB --rounds 51`,
		Args:    cobra.ExactArgs(1),
		RunE: over(func(cmd *cobra.Command, sc netlab.Scenario) error {
			res, err := ttfb(cmd.Context(), sc, o)
			if err != nil {
				return err
			}
			if o.json {
				return printJSON(cmd.OutOrStdout(), res)
			}
			return printTTFB(cmd.OutOrStdout(), res)
		}),
	}
	f := cmd.Flags()
	sizeFlag(f, &o.size, "10kB", "size of the object")
	roundsFlag(f, &o.rounds, 51)
	binaryFlag(f, &o.binary)
	jsonFlag(f, &o.json)
	return cmd
}

// ttfbResult is one comparison. Times are in milliseconds.
type ttfbResult struct {
	Name       string    `json:"name"`
	Direct     []float64 `json:"direct_ms"` // per round
	Proxied    []float64 `json:"proxied_ms"`
	Difference []float64 `json:"difference_ms"` // proxied - direct
}

// fetcher downloads an object and returns the time to its first byte, counted from before it connects.
type fetcher func(ctx context.Context, url string) (time.Duration, error)

func ttfb(ctx context.Context, sc netlab.Scenario, o ttfbOptions) (_ []ttfbResult, err error) {
	sc.Objects, sc.Events = []netlab.Bytes{o.size}, nil
	l, err := netlab.New(ctx, sc)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	keeping, err := startOrigin(ctx, l, o.size, netlab.NginxOptions{})
	if err != nil {
		return nil, err
	}
	closing, err := startOrigin(ctx, l, o.size, netlab.NginxOptions{Port: closingPort, KeepaliveRequests: 1})
	if err != nil {
		return nil, err
	}
	t, err := l.StartTributary(ctx, netlab.TributaryOptions{Binary: o.binary})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Stop()) }()

	link := l.Links()[0]
	direct, proxied := curlTTFB(l, "--interface", link.Name), curlTTFB(l, "-x", "http://"+netlab.ProxyAddr)
	proxy := &url.URL{Scheme: "http", Host: netlab.ProxyAddr}
	keepDirect := &http.Transport{DialContext: link.DialContext}
	keepProxied := &http.Transport{Proxy: http.ProxyURL(proxy), DialContext: l.DialContext}
	defer keepDirect.CloseIdleConnections()
	defer keepProxied.CloseIdleConnections()
	var all []ttfbResult
	for _, c := range []struct {
		name, url       string
		direct, proxied fetcher
	}{
		{"fresh", closing.URL, direct, proxied},
		{"kept", keeping.URL, direct, proxied},
		{"reused", keeping.URL, goTTFB(keepDirect), goTTFB(keepProxied)},
	} {
		r, err := compare(ctx, c.name, c.url, o.rounds, c.direct, c.proxied)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

func startOrigin(ctx context.Context, l *netlab.Lab, size netlab.Bytes, o netlab.NginxOptions) (netlab.Object, error) {
	n, err := l.StartNginx(ctx, o)
	if err != nil {
		return netlab.Object{}, err
	}
	return n.Object(size)
}

// compare lets two fetchers take turns; which one begins changes every round. The first round warms up and does not
// count.
func compare(ctx context.Context, name, url string, rounds int, direct, proxied fetcher) (ttfbResult, error) {
	r := ttfbResult{Name: name}
	for round := range rounds + 1 {
		order := []fetcher{direct, proxied}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		var ms [2]float64
		for i, f := range order {
			d, err := f(ctx, url)
			if err != nil {
				return r, err
			}
			ms[i] = d.Seconds() * 1e3
		}
		if round == 0 {
			continue
		}
		if round%2 == 1 {
			ms[0], ms[1] = ms[1], ms[0]
		}
		r.Direct, r.Proxied = append(r.Direct, ms[0]), append(r.Proxied, ms[1])
		r.Difference = append(r.Difference, ms[1]-ms[0])
	}
	return r, nil
}

// curlTTFB returns a fetcher that runs a new curl each time.
func curlTTFB(l *netlab.Lab, args ...string) fetcher {
	return func(ctx context.Context, url string) (time.Duration, error) {
		argv := append([]string{"-sS", "--fail", "-o", "/dev/null", "-w", "%{time_starttransfer}"}, args...)
		cmd := l.Client(ctx, "curl", append(argv, url)...)
		var said bytes.Buffer
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			return 0, fmt.Errorf("curl: %w: %s", err, strings.TrimSpace(said.String()))
		}
		seconds, err := strconv.ParseFloat(string(out), 64)
		return time.Duration(seconds * float64(time.Second)), err
	}
}

// goTTFB returns a fetcher that keeps its connection.
func goTTFB(t *http.Transport) fetcher {
	return func(ctx context.Context, url string) (time.Duration, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return 0, err
		}
		began := time.Now()
		res, err := t.RoundTrip(req)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		var first [1]byte
		_, err = io.ReadFull(res.Body, first[:])
		took := time.Since(began)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
		}
		if err == nil && res.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %s", res.Status)
		}
		return took, err
	}
}

func printTTFB(w io.Writer, all []ttfbResult) error {
	fmt.Fprintf(w, "time to first byte, medians of %d rounds:\n", len(all[0].Direct))
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "\tdirect\ttributary\tdifference\t10th\t90th percentile\t")
	for _, r := range all {
		d := slices.Sorted(slices.Values(r.Difference))
		fmt.Fprintf(tw, "%s\t%.2f ms\t%.2f ms\t%+.2f ms\t%+.2f\t%+.2f\t\n",
			r.Name, median(r.Direct), median(r.Proxied), median(d), d[len(d)/10], d[len(d)*9/10])
	}
	return tw.Flush()
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
