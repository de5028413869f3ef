package estimate

import "time"

// Counters count the packets and bytes that an interface or a connection has received.
type Counters struct {
	Packets int64
	Bytes   int64 // including packet headers for an interface, without them for a connection
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
	othersBins = 15 // 300 ms: the time for which a page may request nothing while it loads

	packetHead = 52 // bytes: IPv4 and TCP with timestamps
	packetMost = 1500
)

// Others measures the other traffic that a link receives, in bytes per second: the bytes that its interface received
// minus those of known connections. Pages load in bursts of one round trip, so the busiest bin of the last 300 ms
// counts.
//
// If an interface counts several packets as one, there seems to be no other traffic.
type Others struct {
	began time.Time
	owed  int64 // packets that known connections counted but the interface has not, and may never count
	bins  [othersBins]int64
	bin   int64 // number of the latest bin
	any   time.Time
}

// Count adds the counts since the last call: of everything through the interface, and of the known connections' part.
// The caller must read the interface's counters first, since the interface counts a packet before its connection does.
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

// PerSecond returns the rate of the other traffic: 0 if it is only an occasional packet, and -1 if none arrived
// recently.
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
