package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tributary-http/tributary/lab/netlab"
)

const (
	echoPort  = 8091
	echoEvery = 20 * time.Millisecond
	echoBytes = 64 // size of a message
)

func echoCommand() *cobra.Command {
	o := benchOptions{https: true, timeout: 2 * time.Minute}
	var size netlab.Bytes
	var seconds int
	cmd := &cobra.Command{
		Use:   "echo SCENARIO",
		Short: "Measure how long a key press takes through the relay, while a transfer fills all lanes",
		Long: `Sends a message of 64 bytes every 20 ms and measures when it returns: over each link directly, through the relay, and through
the relay while curl downloads through it too. Prints the median and the 99th percentile in milliseconds.`,
		Example: "  tributary-lab echo hs --size 100MB",
		Args:    cobra.ExactArgs(1),
		RunE: over(func(cmd *cobra.Command, sc netlab.Scenario) error {
			sc.Events = nil
			if len(o.congestion) > 0 {
				sc.Congestion = o.congestion[0]
			}
			return echo(cmd.Context(), sc, size, o, time.Duration(seconds)*time.Second, cmd.OutOrStdout())
		}),
	}
	f := cmd.Flags()
	sizeFlag(f, &size, "100MB", "what is downloaded meanwhile")
	f.IntVar(&seconds, "seconds", 5, "length of a measurement without a transfer")
	f.StringArrayVar(&o.congestion, "congestion", nil,
		"TCP congestion control of origin and relay (default the system's)")
	binaryFlag(f, &o.binary)
	return cmd
}

// echo measures round trips of small messages.
func echo(ctx context.Context, sc netlab.Scenario, size netlab.Bytes, o benchOptions, long time.Duration,
	w io.Writer,
) (err error) {
	l, err := netlab.New(ctx, sc)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	b, err := newBed(ctx, l, size, o)
	if err != nil {
		return err
	}
	if b.lanes, err = b.startLanes(ctx); err != nil {
		return err
	}
	defer b.lanes.stop()
	stop, err := b.serveEcho()
	if err != nil {
		return err
	}
	defer stop()
	_, end, err := b.startProxy(ctx, proxy{lanes: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()

	print := func(name string, all []time.Duration) {
		slices.Sort(all)
		at := func(q float64) float64 { return all[int(q*float64(len(all)-1))].Seconds() * 1000 }
		fmt.Fprintf(w, "%-24s median %6.1f ms, p99 %6.1f ms, most %6.1f ms, %d messages\n", name, at(0.5), at(0.99),
			at(1), len(all))
	}
	for _, link := range l.Links() {
		c, err := b.echoOver(ctx, link)
		if err != nil {
			return err
		}
		all, err := messages(ctx, c, time.After(long))
		c.Close()
		if err != nil {
			return err
		}
		print("directly over "+link.Name, all)
	}
	c, err := b.throughRelay(ctx, fmt.Sprintf("%s:%d", lanesOrigin, echoPort))
	if err != nil {
		return err
	}
	defer c.Close()
	all, err := messages(ctx, c, time.After(long))
	if err != nil {
		return err
	}
	print("relay, idle", all)
	curl := l.Client(ctx, "curl", "-sS", "--fail", "--cacert", b.ca, "-o", "/dev/null", "-x",
		"http://"+netlab.ProxyAddr, "--connect-to", "::"+lanesOrigin+":", b.object.URL)
	done := make(chan time.Time, 1)
	var failed error
	began := time.Now()
	go func() {
		var out []byte
		if out, failed = curl.CombinedOutput(); failed != nil {
			failed = fmt.Errorf("%w: %s", failed, out)
		}
		done <- time.Now()
	}()
	ended := make(chan time.Time, 1)
	var took time.Duration
	go func() { took = (<-done).Sub(began); ended <- time.Time{} }()
	all, err = messages(ctx, c, ended)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	print("relay, beside a transfer", all)
	fmt.Fprintf(w, "the transfer: %v in %.2f s, %.1f Mbit/s\n", size, took.Seconds(),
		float64(size)*8/1e6/took.Seconds())
	return nil
}

// serveEcho echoes everything that arrives at the origin's other address.
func (b *bed) serveEcho() (stop func(), err error) {
	var listeners []net.Listener
	err = b.lab.InServer(func() error {
		for _, host := range []string{lanesOrigin, netlab.OriginAddr.String()} {
			ln, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, echoPort))
			if err != nil {
				return err
			}
			listeners = append(listeners, ln)
		}
		return nil
	})
	for _, ln := range listeners {
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(c, c); c.Close() }()
			}
		}()
	}
	return func() {
		for _, ln := range listeners {
			ln.Close()
		}
	}, err
}

// echoOver connects to the echo server over one link.
func (b *bed) echoOver(ctx context.Context, link *netlab.Link) (c net.Conn, err error) {
	err = b.lab.InClient(func() error {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: link.Addr().AsSlice()}}
		c, err = d.DialContext(ctx, "tcp", fmt.Sprintf("%s:%d", netlab.OriginAddr, echoPort))
		return err
	})
	return c, err
}

// throughRelay connects to an address through a tunnel.
func (b *bed) throughRelay(ctx context.Context, to string) (net.Conn, error) {
	c, err := b.lab.DialContext(ctx, "tcp", netlab.ProxyAddr)
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to); err != nil {
		c.Close()
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("CONNECT: %s", resp.Status)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// messages sends messages until over fires, and returns the round trip of each.
func messages(ctx context.Context, c net.Conn, over <-chan time.Time) (all []time.Duration, err error) {
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	sent := make(chan time.Time, 10_000)
	var failed error
	go func() {
		defer close(sent)
		tick := time.NewTicker(echoEvery)
		defer tick.Stop()
		message := []byte(strings.Repeat("x", echoBytes))
		for {
			select {
			case <-over:
				return
			case <-tick.C:
			}
			sent <- time.Now()
			if _, failed = c.Write(message); failed != nil {
				return
			}
		}
	}()
	buf := make([]byte, echoBytes)
	for at := range sent {
		if _, err := io.ReadFull(c, buf); err != nil {
			return all, err
		}
		all = append(all, time.Since(at))
	}
	if len(all) == 0 {
		return nil, errors.Join(errors.New("no message came back"), failed)
	}
	return all, failed
}
