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
	Delay time.Duration // of a response that is requested now, behind everything queued; 0 = no new measurement
	Holes int64         // packets that arrived after a missing one
}

// fewAnswers is how many answers a connection brings at least where it pays to have several.
const fewAnswers = 10

// MostConns is how many connections a transfer may have over a link: a value for Config.MostConns.
const MostConns = parallel.Most

// SampleEvery is the time between two samples of a connection, see Sampled.
const SampleEvery = parallel.SampleEvery

const (
	// worthSeveral is how many bytes of an object must be left for further connections to repay their handshakes.
	worthSeveral = 1 << 20

	// leastShare is the share of all goodput below which a link gets one connection: it decides nothing.
	leastShare = 0.05

	// worthTrying is how much longer a transfer must last for a trial of another connection, which pays off only after
	// the trial.
	worthTrying = 4 * time.Second
)

// spread decides with how many connections each link starts: one, or as many as paid off in an earlier transfer. A
// second one from the start halves a cubic origin's slow start, but two flows of BBR repeatedly overflow the queue in
// front of a short transfer's link: 4 MB over 5 + 10 Mbit/s gain 2 % with cubic and lose 3 % with BBR.
func (m *Machine) spread(now time.Time) {
	left := m.led.End() - m.led.Offset()
	for i := range m.links {
		l := &m.links[i]
		n := 1
		if l.learned > 0 && left >= worthSeveral && !l.metered && l.pipelining != estimate.Broken {
			n = int(l.learned)
		}
		l.parallel.Begin(now, n, m.cfg.MostConns)
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
	matters := m.client.need == 0 && !l.metered && rate >= leastShare*sum
	lasts := float64(m.led.End()-m.led.Offset()) > sum*worthTrying.Seconds()
	l.parallel.Sample(now, e.Path.RTT, e.Path.Least, holes, l.got, rate, l.rate.Peak(),
		matters && lasts && l.pipelining != estimate.Broken)
}
