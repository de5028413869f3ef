package schedule

import (
	"math"
	"time"
)

// Params are the inputs to the formulas of Skjolden 2019 section 4.3 for one link x, in bytes and bytes per second.
type Params struct {
	N                         int   // number of links
	Payload                   int64 // P
	Throughput, SumThroughput float64
	Bandwidth, SumBandwidth   float64
	RTT                       time.Duration
	Floor                     float64 // floor in BDP: 1 in the paper
	Padding                   float64 // f; 0 means 1
}

// Share is Algorithm 2: size_x = (P/n) (sum thr / sum bw) (thr_x / sum thr). As printed, it has no upper bound: if the
// links are faster than their bandwidths say, the shares add up to more than P/n. If the bandwidths are peaks, they
// never do.
func (p Params) Share() int64 {
	if p.SumBandwidth <= 0 || p.SumThroughput <= 0 {
		return 0
	}
	fill := p.SumThroughput / p.SumBandwidth
	return int64(math.Round(float64(p.Payload) / float64(p.N) * fill * p.Throughput / p.SumThroughput))
}

// BDP is bw_x rtt_x.
func (p Params) BDP() int64 { return int64(math.Round(p.Bandwidth * p.RTT.Seconds())) }

func (p Params) floor() int64 { return int64(math.Round(p.Floor * float64(p.BDP()))) }

// Size is Algorithm 3 with BDP difference padding.
func (p Params) Size() (int64, Rule) {
	size, floor := p.Share(), p.floor()
	if size < floor {
		return floor, Floor
	}
	if p.Padding > 0 {
		size = floor + int64(math.Round(p.Padding*float64(size-floor)))
	}
	return size, Share
}

// Params returns the inputs to the formulas for link i and a payload. The bandwidth of a link is its observed peak;
// Skjolden 2019 used constants (sections 8.2.2 and 9.3).
func (v *View) Params(i int8, payload int64) Params {
	p := Params{Payload: payload}
	for j := range v.Links {
		l := &v.Links[j]
		if !l.Usable {
			continue
		}
		bandwidth := max(l.Peak, l.Rate)
		if p.SumThroughput += l.Rate; j == int(i) {
			p.Bandwidth = bandwidth
		}
		p.SumBandwidth += bandwidth
		p.N++
	}
	p.Throughput, p.RTT = v.Links[i].Rate, v.Links[i].RTT
	return p
}
