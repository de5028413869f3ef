package lanes

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/parallel"
)

// Reception is what the kernel of one end knows about a lane's connection, in both directions.
type Reception struct {
	Lane  uint32
	RTT   time.Duration // smoothed, under the present load
	Least time.Duration // shortest round trip
	Holes int64         // packets that arrived behind a missing one, or were sent again
	Bytes int64         // bytes received or acknowledged
}

const (
	// restingBytes is how many bytes in parallel.SampleEvery do not count as load: a link that carries less shows
	// nothing.
	restingBytes = 8 << 10
	// leastShare is the share of all bytes below which a link gets one lane: such a link hardly matters.
	leastShare = 0.05
	// pause is the time between two samples that shows that nothing was under way: goodput measured across it shows
	// nothing.
	pause = 10 * parallel.SampleEvery
	// warmUp is how long after a rest nothing is tried: the congestion windows still grow, and would explain what a
	// further lane seems to bring. The losses are those of the first overshoot.
	warmUp = 800 * time.Millisecond
)

// Connections decides how many lanes each link gets. Only the client can make them, so it decides for both directions.
// What it has found out about a link stays valid until the link is forgotten.
type Connections struct {
	most  int
	links map[string]*bundle
}

// bundle is the lanes of one link.
type bundle struct {
	control parallel.Controller
	rate    estimate.Rate
	seen    map[uint32]Reception
	got     int64
	sampled time.Time
	rested  time.Time // time of the last sample without load
}

// NewConnections returns Connections with at most the given number of lanes for a link.
func NewConnections(most int) *Connections {
	return &Connections{most: most, links: map[string]*bundle{}}
}

// Wanted returns how many lanes a link should have.
func (c *Connections) Wanted(link string) int {
	if b := c.links[link]; b != nil {
		return b.control.N
	}
	return 1
}

// Forget forgets a link.
func (c *Connections) Forget(link string) { delete(c.links, link) }

// Sample records the state of a link's lanes. It is called every [parallel.SampleEvery] while there are streams.
func (c *Connections) Sample(now time.Time, link string, all []Reception) {
	b := c.links[link]
	if b == nil {
		b = &bundle{seen: map[uint32]Reception{}}
		b.control.Begin(now, 1, c.most, 1, 0)
		c.links[link] = b
	}
	sum := int64(0)
	last := b.seen
	b.seen = make(map[uint32]Reception, len(all))
	for _, r := range all {
		if before, ok := last[r.Lane]; ok {
			sum += r.Bytes - before.Bytes
		}
		b.seen[r.Lane] = r
	}
	b.got += sum
	paused := now.Sub(b.sampled) >= pause
	if b.sampled = now; paused || sum < restingBytes {
		b.rate.Idle()
		b.control.Interrupted(now, b.got)
		b.rested = now
		return
	}
	b.rate.Add(now, sum)
	if now.Sub(b.rested) < warmUp {
		b.control.Interrupted(now, b.got)
		return
	}
	rate, others := b.rate.PerSecond(now), 0.0
	for _, o := range c.links {
		others += o.rate.PerSecond(now)
	}
	state := parallel.Link{Got: b.got, Recent: rate, Peak: b.rate.Peak()}
	if rate >= leastShare*others {
		state.Lasts = parallel.Long
	}
	for _, r := range all {
		before, ok := last[r.Lane]
		b.control.Sample(now, parallel.Sample{
			RTT: r.RTT, Least: r.Least, Holes: ok && r.Holes > before.Holes, Link: state,
		})
	}
}
