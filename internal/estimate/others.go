package estimate

import "time"

// Counters are what an interface has received, or a connection.
type Counters struct {
	Packets int64
	Bytes   int64 // with the packets' headers for an interface, without them for a connection
}

// Minus returns the difference.
func (c Counters) Minus(o Counters) Counters {
	return Counters{c.Packets - o.Packets, c.Bytes - o.Bytes}
}

// Plus returns the sum.
func (c Counters) Plus(o Counters) Counters {
	return Counters{c.Packets + o.Packets, c.Bytes + o.Bytes}
}

const (
	othersBin  = 20 * time.Millisecond
	othersBins = 15 // as long as a page asks for nothing while it loads

	packetHead = 52 // bytes: IPv4 and TCP with timestamps
	packetMost = 1500
)

// Others measures what comes over a link for others, in bytes per second: what its interface received less what known connections
// did. Pages come in bursts of a round trip each, so the busiest bin of the last 300 ms counts.
//
// An interface that counts several packets as one looks as if nothing came for others.
type Others struct {
	began time.Time
	owed  int64 // packets that known connections counted and the interface did not yet, or never will
	bins  [othersBins]int64
	bin   int64 // number of the latest one
	any   time.Time
}

// Count takes what has come since the last call: through the interface, and of that over known connections. The interface must be
// asked first: it counts a packet before its connection does.
func (o *Others) Count(now time.Time, all, known Counters) {
	if o.began.IsZero() {
		o.began = now
	}
	o.turn(now)
	packets := all.Packets - known.Packets - o.owed
	o.owed = max(0, -packets)
	n := min(packets*packetMost, all.Bytes-known.Bytes-known.Packets*packetHead)
	if packets <= 0 {
		return
	}
	o.any = now
	o.bins[o.bin%othersBins] += max(n, 0)
}

// turn empties the bins that have begun since the last call.
func (o *Others) turn(now time.Time) {
	bin := int64(now.Sub(o.began) / othersBin)
	for i := max(o.bin+1, bin-othersBins+1); i <= bin; i++ {
		o.bins[i%othersBins] = 0
	}
	o.bin = bin
}

// PerSecond returns the rate: 0 if a packet came now and then, and -1 if none came lately.
func (o *Others) PerSecond(now time.Time) int64 {
	if o.any.IsZero() || now.Sub(o.any) >= othersBins*othersBin {
		return -1
	}
	o.turn(now)
	most := int64(0)
	for _, n := range o.bins {
		most = max(most, n)
	}
	return most * int64(time.Second/othersBin)
}
