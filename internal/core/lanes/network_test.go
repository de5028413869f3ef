package lanes

import (
	"math"
	"math/rand/v2"
	"time"
)

// mss is how much data a packet carries, in bytes.
const mss = 1448

// mbit returns a rate in bytes per second.
func mbit(n float64) float64 { return n * 1e6 / 8 }

// queueTime is the longest time that packets wait in front of a link; packets that would wait longer are lost.
const queueTime = 100 * time.Millisecond

// wire is one direction of a link: a rate, a delay, a queue in front of it, and random losses. Connections share it.
type wire struct {
	rate  float64 // bytes per second
	delay time.Duration
	loss  float64
	free  time.Time // when everything that waits has left
	rnd   *rand.Rand
}

// send returns when a packet arrives, and whether it is lost.
func (w *wire) send(now time.Time, n int) (at time.Time, lost bool) {
	if w.free.Before(now) {
		w.free = now
	}
	if w.free.Sub(now) > queueTime {
		return time.Time{}, true
	}
	w.free = w.free.Add(seconds(float64(n+52) / w.rate))
	return w.free.Add(w.delay), w.rnd.Float64() < w.loss
}

// packet is a packet that was sent and not yet acknowledged.
type packet struct {
	at      int // offset
	size    int
	data    []byte // nil = received
	sent    time.Time
	arrives time.Time // zero = lost
	known   time.Time // when the sender knows that, or the loss
	flown   int       // bytes delivered when it was sent
	limited bool      // limited by the application when it was sent
}

// conn is a sender with a congestion window that follows CUBIC (RFC 9438), and its receiver, which acknowledges selectively.
type conn struct {
	over *wire
	back time.Duration // delay of acknowledgments

	unsent   []byte
	next     int // offset of the first byte of it
	flight   []packet
	inFlight int
	ready    []byte         // arrived in order, not read
	have     int            // bytes arrived in order in all
	early    map[int][]byte // by offset

	cwnd, top   float64
	started     bool // slow start is over
	full        bool // the window kept something from being sent
	since       time.Time
	repaired    time.Time
	srtt, least time.Duration
	delivered   int
	rate        float64
	limited     bool // the application limited that rate
	holes       int64
	endless     bool // there is always more to send
	fixed       bool // the window does not change
}

func newConn(over *wire, back time.Duration) *conn {
	trip := over.delay + back
	return &conn{over: over, back: back, early: map[int][]byte{}, cwnd: 10 * mss, least: trip, srtt: trip}
}

// room is how much the socket takes (TCP_NOTSENT_LOWAT).
func (c *conn) room() int { return max(0, 16<<10-len(c.unsent)) }

func (c *conn) path() Path {
	return Path{
		RTT: c.srtt, MinRTT: c.least, CWnd: int(c.cwnd), InFlight: c.inFlight, Unsent: len(c.unsent), DeliveryRate: c.rate,
		AppLimited: c.limited, Progress: uint64(c.delivered),
	}
}

// receive takes in what has arrived by now.
func (c *conn) receive(now time.Time) {
	for i := range c.flight {
		p := &c.flight[i]
		if p.arrives.IsZero() || p.arrives.After(now) || p.data == nil {
			continue
		}
		c.early[p.at], p.data = p.data, nil
	}
	for {
		data, ok := c.early[c.have]
		if !ok {
			return
		}
		delete(c.early, c.have)
		c.ready = append(c.ready, data...)
		c.have += len(data)
	}
}

// send takes in acknowledgments and sends what the window allows.
func (c *conn) send(now time.Time) {
	rest := c.flight[:0]
	var again []packet
	for _, p := range c.flight {
		switch {
		case p.known.After(now):
			rest = append(rest, p)
		case p.arrives.IsZero():
			c.inFlight -= p.size
			again = append(again, p)
		default:
			c.acked(now, p)
		}
	}
	c.flight = rest
	for _, p := range again {
		c.lost(now)
		c.transmit(now, p.at, p.data)
	}
	for {
		if c.endless && len(c.unsent) < mss {
			c.unsent = append(c.unsent, make([]byte, 16*mss)...)
		}
		n := min(len(c.unsent), mss)
		if n == 0 {
			return
		}
		if c.full = float64(c.inFlight+n) > c.cwnd; c.full {
			return
		}
		c.transmit(now, c.next, c.unsent[:n:n])
		c.unsent, c.next = c.unsent[n:], c.next+n
	}
}

func (c *conn) transmit(now time.Time, at int, data []byte) {
	arrives, lost := c.over.send(now, len(data))
	p := packet{at: at, size: len(data), data: data, sent: now, arrives: arrives, known: arrives.Add(c.back), flown: c.delivered}
	p.limited = len(c.unsent) <= len(data) && float64(c.inFlight) < c.cwnd-2*mss
	if lost {
		p.arrives, p.known = time.Time{}, now.Add(c.srtt+time.Millisecond)
		c.holes++
	}
	c.inFlight += len(data)
	c.flight = append(c.flight, p)
}

func (c *conn) lost(now time.Time) {
	if c.fixed || now.Before(c.repaired) {
		return
	}
	c.repaired, c.top, c.since, c.started = now.Add(c.srtt), c.cwnd, now, true
	c.cwnd = max(0.7*c.cwnd, 2*mss)
}

func (c *conn) acked(now time.Time, p packet) {
	n := p.size
	c.inFlight -= n
	c.delivered += n
	rtt := p.known.Sub(p.sent)
	c.srtt += (rtt - c.srtt) / 8
	c.least = min(c.least, rtt)
	c.rate, c.limited = float64(c.delivered-p.flown)/rtt.Seconds(), p.limited
	switch {
	case c.fixed:
	case !c.started:
		if float64(c.inFlight) > c.cwnd/2 {
			c.cwnd += float64(n)
		}
	case c.full:
		t, k := now.Sub(c.since).Seconds(), math.Cbrt(c.top/mss*0.3/0.4)
		cubic := c.top + 0.4*math.Pow(t-k, 3)*mss
		reno := 0.7*c.top + 3*0.3/1.7*t/c.srtt.Seconds()*mss
		c.cwnd = max(c.cwnd, min(max(cubic, reno), c.cwnd+float64(n)/2))
	}
}
