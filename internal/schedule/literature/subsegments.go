package literature

import (
	"math"
	"time"

	"github.com/tributary-http/tributary/internal/schedule"
)

// Subsegments divides the object as Evensen 2011 does a video segment. Static (section 4.4): pieces of 100 KB. Dynamic (section
// 4.5, Algorithm 3): blocks of 100 KB times the number of links; each link takes its share of a block by throughput. Two
// requests are on each link, interleaved at the start, so that a link does not idle between them.
//
// Static pieces need to know nothing and suit links that are alike; beside a link that is much faster the slow link's piece is
// waited for, unless the window holds what the fast link brings meanwhile (the paper's buffer: as many segments of 2 s as the links'
// ratio, and one more). Dynamic shares need throughput and give
// the same quality at every ratio; both send many requests. Shares change between two draws, so that slivers remain at the ends
// of blocks; a floor of S_min, the bytes that the link sends in one trip (equation 4.3), keeps requests from being shorter than
// they are worth. Literal leaves the floor out.
type Subsegments struct {
	Dynamic bool
	Literal bool

	left int64 // of the block
}

const subsegment = 100e3 // bytes

// Next implements schedule.Scheduler.
func (s *Subsegments) Next(_ time.Time, v *schedule.View) schedule.Decision {
	if s.Dynamic {
		return pull(v, pipelined, s.share)
	}
	return pull(v, pipelined, s.piece)
}

func (s *Subsegments) piece(*schedule.View, int8) (int64, schedule.Rule) {
	return subsegment, schedule.Piece
}

func (s *Subsegments) share(v *schedule.View, i int8) (int64, schedule.Rule) {
	part, ok := share(v, i)
	if !ok {
		return subsegment, schedule.First
	}
	n, left := Draw(usable(v)*subsegment, s.left, part)
	s.left = left
	if l := &v.Links[i]; !s.Literal && n < Least(l.Rate, l.RTT/2) {
		s.left = 0 // the rest is not worth a request of its own
		return Least(l.Rate, l.RTT/2), schedule.Floor
	}
	return n, schedule.Share
}

// Draw is Algorithm 3 of Evensen 2011: the size in bytes of the next request of a link whose share of the throughput is given,
// when left bytes are left of a block, and the rest of the block. A block that is used up is followed by a new one.
func Draw(block, left int64, share float64) (size, rest int64) {
	if left <= 0 {
		left = block
	}
	size = max(1, int64(math.Round(share*float64(block))))
	size = min(size, left)
	return size, left - size
}

// Least is S_min, equation 4.3 of Evensen 2011: the bytes that a link sends during one trip. Rate in bytes per second,
// delay one way.
func Least(rate float64, delay time.Duration) int64 { return int64(math.Round(rate * delay.Seconds())) }
