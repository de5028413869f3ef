package demo

import (
	"sync"
	"time"
)

// slack is how far behind its schedule a pacer may catch up, so that a timer that fires late does not reduce the rate.
const slack = 4 * time.Millisecond

// pacer shares the time of one direction of a link among all its connections: a virtual clock that advances by size /
// rate for every piece. It is safe for concurrent use.
type pacer struct {
	rate float64 // bytes per second

	mu   sync.Mutex
	next time.Time // when the link is free again
}

// reserve books n bytes after those already booked and returns when the last of them has left.
func (p *pacer) reserve(now time.Time, n int) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if earliest := now.Add(-slack); p.next.Before(earliest) {
		p.next = earliest
	}
	p.next = p.next.Add(time.Duration(float64(n) / p.rate * float64(time.Second)))
	return p.next
}
