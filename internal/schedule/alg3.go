package schedule

import (
	"math"
	"time"

	"github.com/tributary-http/tributary/internal/segment"
)

// Alg3 is Algorithm 3 of Skjolden 2019 (section 4.3.5): a request is the link's share, by throughput, of a cap that grows
// with the throughput of all links, and never less than the link has in flight (its bandwidth-delay product). The next
// request leaves when 60 % of the last one has come (section 4.2.2), so that the link does not fall idle.
//
// It needs throughput, capacity (the peak seen) and round-trip time of each link. It wins where links differ and change
// slowly; it fails where throughput is misjudged, since its requests are long.
//
// By default it is guarded (sources.md section 2.1): sizes follow what is left, not the whole object; the floor is 2.5 x
// BDP, because at 1 x BDP a trigger of 60 % leaves a gap of 0.6 RTT; a range is no longer than the link's share of an
// eighth of the reorder window and 200 ms of its goodput; a link that runs dry sooner asks sooner; and at the end the faster link takes the tail
// of the slower one (Nikravesh 2018, equation 6.1). Literal gives the formulas as printed, for comparison.
type Alg3 struct {
	Literal bool
	Padding float64 // factor f of the BDP difference padding; 0 means 1: sizes above the floor are kept
}

const (
	firstSize = 256 << 10              // first range of a link of which nothing is known
	issueAt   = 0.6                    // share of a range after which the next one is asked for
	outstand  = 2                      // requests on a link at a time, as the 60 % rule gives
	bdpFloor  = 2.5                    // floor of a range in BDP: 1 / (1 - issueAt)
	windowDiv = 8                      // a range takes at most its share of this part of the window: two per link and room to run ahead
	longest   = 200 * time.Millisecond // of the link's goodput in one range: what a link owes when it dies delays the client
	tailMin   = 32 << 10               // a tail shorter than this stays where it is
)

// Next implements Scheduler.
func (s *Alg3) Next(now time.Time, v *View) Decision {
	for i := range v.Links {
		if l := &v.Links[i]; l.Usable && l.CanAsk && s.due(v, int8(i)) {
			if d, ok := s.fetch(v, int8(i)); ok {
				return d
			}
		}
	}
	return wait(s.until(now, v))
}

// due reports whether link i should be asked for another range now.
func (s *Alg3) due(v *View, i int8) bool {
	l, a := &v.Links[i], v.newest(i)
	if a == nil || l.Blocked {
		return true
	}
	if a.Cut {
		return false
	}
	if float64(a.Cursor-a.Range.Start) >= issueAt*float64(a.Range.Len()) && l.Running < outstand {
		return true
	}
	return !s.Literal && l.Due() && l.Running < 2*outstand
}

// until returns when a link that is busy now runs dry by its present rate.
func (s *Alg3) until(now time.Time, v *View) time.Time {
	if s.Literal {
		return time.Time{}
	}
	var at time.Time
	for i := range v.Links {
		l := &v.Links[i]
		if t := l.dry(now); l.Usable && !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at
}

func (s *Alg3) fetch(v *View, i int8) (Decision, bool) {
	r, ok := v.firstFree()
	if !ok {
		if s.Literal {
			return Decision{}, false
		}
		if d, ok := oversize(v, i, s.size); ok {
			return d, true
		}
		if len(v.Free) > 0 {
			return Decision{}, false // the window is full: no need to move what is under way
		}
		return tail(v, i)
	}
	n, why := s.size(v, i, v.free())
	if room := v.Limit - r.Start; !s.Literal && n > room && room < r.Len() {
		if room < n/4 && r.Start > v.Head {
			return Decision{}, false // wait for room rather than ask for slivers; the head cannot wait
		}
		n, why = room, Window
	}
	if n >= r.Len() || !s.Literal && r.Len()-n < n/4 {
		n, why = r.Len(), Rest
	}
	return Decision{Do: Fetch, Link: i, Range: segment.Range{Start: r.Start, End: r.Start + n}, Why: why}, true
}

// size returns the length of the next range for link i when rem bytes are not yet asked for.
func (s *Alg3) size(v *View, i int8, rem int64) (int64, Reason) {
	var thr, bw float64
	n := 0
	for j := range v.Links {
		if l := &v.Links[j]; l.Usable {
			thr += l.Rate
			bw += max(l.Peak, l.Rate)
			n++
		}
	}
	l := &v.Links[i]
	if l.Rate == 0 {
		return min(firstSize, max(rem, 1)), First
	}
	p := Params{
		N: n, Payload: rem, Throughput: l.Rate, SumThroughput: thr, SumBandwidth: bw, Bandwidth: max(l.Peak, l.Rate),
		RTT: l.RTT, Floor: bdpFloor, Padding: s.Padding,
	}
	if s.Literal {
		p.Payload, p.Floor = v.Object.Len(), 1
		n, why := p.Size()
		return max(n, 1), why
	}
	size, why := p.Size()
	// Unlike the paper's downloader a proxy holds what comes early in bounded memory.
	most := min(int64(float64(v.Window)/windowDiv*l.Rate/thr), max(int64(l.Rate*longest.Seconds()), p.floor()))
	least := min(tailMin, v.Window/windowDiv)
	switch {
	case size > most:
		size, why = max(most, min(rescueMin, v.Window/windowDiv)), Window
	case size < least: // short ranges lower the rate, and a lower rate would shorten them further
		size, why = least, Floor
	}
	return max(size, 1), why
}

// Params are the inputs of the formulas of Skjolden 2019 section 4.3 for one link x. Bytes, bytes per second.
type Params struct {
	N                         int   // links
	Payload                   int64 // P
	Throughput, SumThroughput float64
	Bandwidth, SumBandwidth   float64
	RTT                       time.Duration
	Floor                     float64 // floor in BDP: 1 in the paper
	Padding                   float64 // f; 0 is taken as 1
}

// Share is Algorithm 2: size_x = (P/n) (sum thr / sum bw) (thr_x / sum thr).
func (p Params) Share() int64 {
	if p.SumBandwidth <= 0 || p.SumThroughput <= 0 {
		return 0
	}
	fill := min(1, p.SumThroughput/p.SumBandwidth)
	return int64(math.Round(float64(p.Payload) / float64(p.N) * fill * p.Throughput / p.SumThroughput))
}

// BDP is bw_x rtt_x.
func (p Params) BDP() int64 { return int64(math.Round(p.Bandwidth * p.RTT.Seconds())) }

func (p Params) floor() int64 { return int64(math.Round(p.Floor * float64(p.BDP()))) }

// Size is Algorithm 3 with BDP difference padding.
func (p Params) Size() (int64, Reason) {
	size, floor := p.Share(), p.floor()
	if size < floor {
		return floor, Floor
	}
	if p.Padding > 0 {
		size = floor + int64(math.Round(p.Padding*float64(size-floor)))
	}
	return size, Share
}
