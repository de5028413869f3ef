package netlab

import (
	"math/rand/v2"
	"time"
)

// mtu is the largest packet that a link carries, in bytes.
const mtu = 1500

// packet is a packet on a link; its buffer belongs to the pool of the link.
type packet struct {
	n   int
	at  time.Duration // in the queue: when it arrived; on the way: when it is due
	buf [mtu]byte
}

// pool keeps packets for reuse: the emulator allocates only while it holds more packets than ever before.
type pool struct{ free []*packet }

func (p *pool) get() *packet {
	if n := len(p.free); n > 0 {
		pkt := p.free[n-1]
		p.free = p.free[:n-1]
		return pkt
	}
	return new(packet)
}

func (p *pool) put(pkt *packet) { p.free = append(p.free, pkt) }

// direction models one direction of a link: a drop-tail queue, a server of varying rate, a delay line. It is pure: it
// reads no clock, its randomness is seeded, and times count from the emulator's start. Not safe for concurrent use.
//
//	enqueue -> queue --(pacer)--> loss? -> flight --(delay, jitter)--> deliver
type direction struct {
	shape  Shape
	limit  int // limit of the queue, in bytes
	pacer  pacer
	rng    *rand.Rand
	pool   *pool
	dark   bool // blackhole
	counts Counters
	record *recorder // nil if no tape is recorded

	queue  ring
	queued int           // bytes in queue
	leaves time.Duration // when the packet at the queue's head leaves it
	idle   time.Duration // when the last packet left the queue
	flight ring          // in the order of their due times
	due    time.Duration // due time of the packet that entered flight last
}

func newDirection(s Shape, rng *rand.Rand, p *pool) *direction {
	d := &direction{rng: rng, pool: p}
	d.set(0, s)
	return d
}

// set changes the shape. A packet that is being sent starts over.
func (d *direction) set(now time.Duration, s Shape) {
	d.advance(now)
	d.shape, d.limit = s, s.Queue.limit(s.full())
	d.pacer.set(s)
	d.restart(now)
}

// reset restarts the ramp and the trace at the next packet.
func (d *direction) reset(now time.Duration) {
	d.advance(now)
	d.pacer.reset()
	d.restart(now)
}

func (d *direction) restart(now time.Duration) {
	if d.queue.n > 0 {
		d.pacer.wake(now, now)
		d.leaves = d.pacer.finish(now, d.queue.head().n)
	}
}

// setDark turns the blackhole on or off; turned on, it also swallows packets that are queued or on the way.
func (d *direction) setDark(now time.Duration, dark bool) {
	d.advance(now)
	d.dark = dark
	for dark && d.queue.n > 0 {
		d.drop(d.queue.pop(), &d.counts.DarkDrops)
	}
	for dark && d.flight.n > 0 {
		d.drop(d.flight.pop(), &d.counts.DarkDrops)
	}
	if dark {
		d.queued = 0
	}
}

// enqueue takes a packet that arrives at the link.
func (d *direction) enqueue(now time.Duration, p *packet) {
	d.advance(now)
	d.counts.Packets++
	d.counts.Bytes += int64(p.n)
	d.counts.InFlight++
	switch {
	case d.dark:
		d.drop(p, &d.counts.DarkDrops)
		return
	case d.queue.n > 0 && d.queued+p.n > d.limit:
		d.drop(p, &d.counts.QueueDrops)
		return
	}
	p.at = now
	d.queue.push(p)
	d.queued += p.n
	if d.queue.n == 1 {
		d.pacer.wake(now, d.idle)
		d.leaves = d.pacer.finish(now, p.n)
	}
}

// advance moves packets that have left the queue by now to the delay line.
func (d *direction) advance(now time.Duration) {
	for d.queue.n > 0 && d.leaves <= now {
		p := d.queue.pop()
		d.queued -= p.n
		d.idle = d.leaves
		if d.shape.Loss > 0 && d.rng.Float64() < float64(d.shape.Loss) {
			d.drop(p, &d.counts.LossDrops)
		} else {
			late := d.shape.Delay
			if d.shape.Jitter > 0 {
				late += time.Duration(d.rng.Int64N(int64(d.shape.Jitter)))
			}
			d.due = max(d.due, d.leaves+late)
			p.at = d.due
			d.flight.push(p)
		}
		if d.queue.n > 0 {
			d.leaves = d.pacer.finish(d.leaves, d.queue.head().n)
		}
	}
}

// deliver returns the next packet that is due by now, nil if there is none. The caller puts it back into the pool.
func (d *direction) deliver(now time.Duration) *packet {
	d.advance(now)
	if d.flight.n == 0 || d.flight.head().at > now {
		return nil
	}
	d.counts.InFlight--
	d.counts.Delivered++
	p := d.flight.pop()
	if d.record != nil {
		d.record.note(now, p.buf[:p.n])
	}
	return p
}

// next returns when deliver is worth calling again; ok is false if nothing is on the link.
func (d *direction) next() (at time.Duration, ok bool) {
	switch {
	case d.flight.n > 0:
		return d.flight.head().at, true
	case d.queue.n > 0:
		return max(d.due, d.leaves+d.shape.Delay), true
	}
	return 0, false
}

func (d *direction) drop(p *packet, count *int64) {
	*count++
	d.counts.InFlight--
	d.pool.put(p)
}

// ring is a first-in first-out queue of packets that keeps its memory.
type ring struct {
	buf      []*packet
	start, n int
}

func (r *ring) head() *packet { return r.buf[r.start] }

func (r *ring) push(p *packet) {
	if r.n == len(r.buf) {
		grown := make([]*packet, max(64, 2*r.n))
		for i := range r.n {
			grown[i] = r.buf[(r.start+i)%len(r.buf)]
		}
		r.buf, r.start = grown, 0
	}
	r.buf[(r.start+r.n)%len(r.buf)] = p
	r.n++
}

func (r *ring) pop() *packet {
	p := r.buf[r.start]
	r.buf[r.start] = nil
	r.start = (r.start + 1) % len(r.buf)
	r.n--
	return p
}
