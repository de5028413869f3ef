package proxy

import "time"

// The least pace of a request's content: so much must come while slowTime is spent waiting for it, or the client only
// holds a connection to the origin open (R189).
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

// add takes in a read. Enough bytes begin a new period.
func (p *pace) add(n int, took time.Duration) {
	p.waited += took
	p.got += int64(n)
	if p.got >= int64(slowTime/time.Second)*slowRate {
		*p = pace{}
	}
}
