package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tributary-http/tributary/internal/core/policy"
	"github.com/tributary-http/tributary/internal/net/link"
)

// measureAddr is the destination of a stream on which the server itself sends zeros, at most maxMeasured. The domain
// never exists (RFC 6761, section 6.4).
const (
	measureAddr = "measure.tributary.invalid:9"
	maxMeasured = 64 << 20 // bytes
	// measureTime is how long one measurement takes. Only its second half counts: the first half is the start of
	// congestion control.
	measureTime = 2 * time.Second
	// laneTime is how long a measurement waits for a lane.
	laneTime = 5 * time.Second
)

// measure is the server's side of Measure.
func measure(c *Conn, a *account) {
	ctx, done := c.unbroken()
	defer done()
	c.connect()
	_, _ = io.Copy(metered{ctx, a, c}, io.LimitReader(zeros{}, maxMeasured)) // the client ends the measurement
	_ = c.Close()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Gain is what a link contributes to downloads through a relay, in bytes per second.
type Gain struct {
	Link    string
	RTT     float64 // to the relay, in seconds
	Alone   float64 // bytes per second
	Adds    float64 // to the faster links together
	Failure error   // nil = the link was measured
}

// Measure downloads from the relay over each link, and over the fastest ones together: at most 64 MiB and at most 2 s
// each time. It returns the links, fastest first, and the rate of all of them. Metered links are left out if there are
// others.
func Measure(ctx context.Context, path, address string, links []link.Link, budget int64,
	log *slog.Logger,
) (gains []Gain, all float64, err error) {
	c, err := NewClient(path, address, budget, log)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var run sync.WaitGroup
	defer run.Wait()
	defer cancel()
	run.Go(func() { c.Run(ctx) })
	byName := map[string]link.Link{}
	for _, l := range link.Permitted(policy.Request{Shared: true}, links, nil) {
		byName[l.Name] = l
		g := Gain{Link: l.Name}
		if g.Failure = c.await(ctx, l); g.Failure == nil {
			for _, lane := range c.Status().Lanes {
				g.RTT = max(g.RTT, lane.RTT)
			}
			g.Alone, g.Failure = c.rate(ctx)
		}
		gains = append(gains, g)
	}
	slices.SortStableFunc(gains, func(a, b Gain) int { return cmp.Compare(b.Alone, a.Alone) })
	var together []link.Link
	for i := range gains {
		g := &gains[i]
		if g.Failure != nil {
			continue
		}
		now := g.Alone
		if together = append(together, byName[g.Link]); len(together) > 1 {
			if g.Failure = c.await(ctx, together...); g.Failure == nil {
				now, g.Failure = c.rate(ctx)
			}
			if g.Failure != nil {
				continue
			}
		}
		g.Adds, all = now-all, now
	}
	return gains, all, ctx.Err()
}

// await uses only these links, and waits until there is a lane over each.
func (c *Client) await(ctx context.Context, links ...link.Link) error {
	c.SetLinks(links)
	ctx, cancel := context.WithTimeout(ctx, laneTime)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		up, others, failure := 0, 0, ""
		for _, l := range c.Status().Lanes {
			switch wanted := slices.ContainsFunc(links, func(want link.Link) bool { return want.Name == l.Link }); {
			case !wanted:
				others++ // they end soon
			case l.Up:
				up++
			case l.Failure != "":
				failure = l.Failure
			}
		}
		if failure != "" {
			return errors.New(failure)
		}
		if up == len(links) && others == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no connection to the relay: %w", ctx.Err())
		case <-look.C:
		}
	}
}

// rate downloads over the current lanes, and returns bytes per second.
func (c *Client) rate(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, laneTime)
	defer cancel()
	conn, err := c.Dial(ctx, measureAddr)
	if err != nil {
		return 0, fmt.Errorf("measure: %w", err)
	}
	defer conn.Close()
	type sample struct {
		at    time.Duration
		bytes int64
	}
	var samples []sample
	buf := make([]byte, 64<<10)
	began, sum := time.Now(), int64(0)
	if err := conn.SetReadDeadline(began.Add(measureTime)); err != nil {
		return 0, err
	}
	for {
		n, err := conn.Read(buf)
		if err != nil {
			break // the time is over, or everything has arrived
		}
		sum += int64(n)
		samples = append(samples, sample{time.Since(began), sum})
	}
	if len(samples) < 2 {
		return 0, errors.New("measure: nothing came")
	}
	last := samples[len(samples)-1]
	half := samples[slices.IndexFunc(samples, func(s sample) bool { return s.at >= last.at/2 })]
	if last.at <= half.at {
		half = sample{}
	}
	return float64(last.bytes-half.bytes) / (last.at - half.at).Seconds(), nil
}
