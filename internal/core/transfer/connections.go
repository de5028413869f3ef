package transfer

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/estimate"
	"github.com/tributary-http/tributary/internal/core/parallel"
)

// PathSample is the state of a connection's path according to the kernel (TCP_INFO), and to PING over HTTP/2. A
// receiver does not see the sender's congestion window; it sees round trips, and holes in what arrives.
type PathSample struct {
	RTT   time.Duration // smoothed, under the present load; 0 = the kernel cannot be asked
	Least time.Duration // shortest round trip since the connection was made
	Data  time.Duration // of arriving bytes, under the present load; 0 = unknown
	Delay time.Duration // of a response that is requested now, behind everything queued; 0 = no new measurement
	Holes int64         // packets that arrived after a missing one
}

// fewAnswers is how many answers a connection brings at least where it pays to have several.
const fewAnswers = 10

// MostConns is how many connections a transfer may have over a link: a value for Config.MostConns.
const MostConns = parallel.MostLimited

// SampleEvery is the time between two samples of a connection, see Sampled. SampleFirst is that in its first second,
// when BBR fills the queue in front of the link for a few round trips.
const (
	SampleEvery = parallel.SampleEvery
	SampleFirst = SampleEvery / 5
)

const (
	// worthSeveral is how many bytes of an object must be left for further connections to repay their handshakes.
	worthSeveral = 1 << 20

	// leastShare is the share of all goodput below which a link gets one connection: it decides nothing.
	leastShare = 0.05

	// noticed is the shortest pause of a connection that counts, in addition to pauseTrips round trips: the sender may
	// have waited for those.
	noticed    = 8 * time.Millisecond
	pauseTrips = 1.25

	// trialRange is the length of a range while connections are on trial, in goodput of a connection.
	trialRange = 500 * time.Millisecond
)

// spread decides with how many connections each link starts: one, or as many as paid off in an earlier transfer. A
// second one from the start halves a cubic origin's slow start, but two flows of BBR repeatedly overflow the queue in
// front of a short transfer's link: 4 MB over 5 + 10 Mbit/s gain 2 % with cubic and lose 3 % with BBR.
func (m *Machine) spread(now time.Time) {
	left := m.led.End() - m.led.Offset()
	for i := range m.links {
		l := &m.links[i]
		n, each := 1, 0.0
		if l.learned > 0 && left >= worthSeveral && !l.metered && l.pipelining != estimate.Broken {
			if n = min(int(l.learned), m.cfg.MostConns); n > 1 {
				each = l.each
			}
		}
		l.parallel.Begin(now, n, min(parallel.Most, m.cfg.MostConns), m.cfg.MostConns, each)
	}
}

// sampled handles a sample of a connection's path.
func (m *Machine) sampled(now time.Time, e Event) {
	c := m.conn(e.Conn)
	if c == nil {
		return
	}
	l := &m.links[c.link]
	if c.answering && e.Path.Delay > 0 { // otherwise it does not show the present load
		l.delay = e.Path.Delay
	}
	if !m.known || e.Path.RTT == 0 {
		return
	}
	holes := e.Path.Holes > c.holes
	c.holes = e.Path.Holes
	if !l.busy || l.silent {
		l.parallel.Interrupted(now, l.got)
		return
	}
	var sum float64
	for i := range m.links {
		sum += m.links[i].rate.PerSecond(now)
	}
	rate := l.rate.PerSecond(now)
	state := parallel.Link{
		Got: l.got, Recent: rate, Others: sum - rate, Peak: l.rate.Peak(),
	}
	state.Working, state.Streams = m.working(c.link)
	if m.client.need == 0 && !m.scarce && !l.metered && rate >= leastShare*sum && l.pipelining != estimate.Broken {
		state.Lasts = time.Duration(float64(m.led.End()-m.led.Offset()) / sum * float64(time.Second))
	}
	for i := range m.links {
		if o := &m.links[i].parallel; int8(i) != c.link && o.Limit() > 0 && o.N > state.Conns {
			state.Limit, state.Conns = o.Limit(), o.N
		}
	}
	trial, n := l.parallel.Doubling(), l.parallel.N
	l.parallel.Sample(now, parallel.Sample{
		RTT:    e.Path.RTT,
		Least:  e.Path.Least,
		Data:   e.Path.Data,
		Holes:  holes,
		Silent: c.paused,
		Gap:    c.gap,
		Link:   state,
	})
	c.paused, c.gap = 0, 0
	if trial && !l.parallel.Doubling() && l.parallel.N < n {
		m.dismiss(c.link)
	}
}

// working returns how many connections of a link deliver, and for how many requests at the same time over HTTP/2.
func (m *Machine) working(link int8) (conns, streams int) {
	for i := range m.conns {
		c := &m.conns[i]
		if c.link != link || !c.answering || len(c.queue) == 0 {
			continue
		}
		if conns++; c.multiplexed {
			streams += len(c.queue)
		}
	}
	return conns, streams
}

// pauses notes how long nothing arrived on a connection whose bytes are due.
func (m *Machine) pauses(now time.Time, c *conn) {
	if !c.answering {
		return
	}
	gap := now.Sub(c.progress)
	c.gap = max(c.gap, gap)
	if trip := time.Duration(pauseTrips * float64(m.links[c.link].rtt())); gap >= trip+noticed {
		c.paused += gap
	}
}

// tryOut decides whether a further connection, whose handshake took rtt, is used: not if packets wait in front of the
// link.
func (m *Machine) tryOut(now time.Time, c *conn, rtt time.Duration) bool {
	link := c.link
	l := &m.links[link]
	if !c.extra || rtt == 0 || !l.parallel.Queued(now, rtt, l.rate.PerSecond(now)) {
		return true
	}
	m.dismiss(link)
	return false
}

// dismiss closes the further connections of a link that have not delivered.
func (m *Machine) dismiss(link int8) {
	for i := len(m.conns) - 1; i >= 0; i-- {
		if c := &m.conns[i]; c.link == link && c.extra && c.got == 0 {
			m.closeConn(c)
		}
	}
}
