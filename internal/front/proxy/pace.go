package proxy

import "time"

// The minimum pace of a request's content: slowRate on average over each slowTime spent waiting for it. A slower client
// only holds a connection to the origin open (R189).
const (
	slowTime = 30 * time.Second
	slowRate = 1 << 10 // bytes per second
)

// pace judges a sender by the time spent waiting for its bytes; time in which the receiver is slow does not count.
type pace struct {
	waited time.Duration
	got    int64
}

// left returns how long the next read may take.
func (p *pace) left() time.Duration { return slowTime - p.waited }

// add records a read. Enough bytes start a new period.
func (p *pace) add(n int, took time.Duration) {
	p.waited += took
	p.got += int64(n)
	if p.got >= int64(slowTime/time.Second)*slowRate {
		*p = pace{}
	}
}
