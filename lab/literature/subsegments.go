package literature

import (
	"math"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// Subsegments divides the object as Evensen 2011 divides a video segment. Static (section 4.4) uses pieces of 100 KB.
// Dynamic (section 4.5, Algorithm 3) uses blocks of 100 KB times the number of links; each link takes its share of a
// block by throughput. Each link has two requests, interleaved at the start, so that it does not idle between them.
//
// Static pieces need no information and suit links that are alike. Beside a much faster link, the transfer waits for
// the slow link's piece unless the window can hold the bytes that the fast link delivers meanwhile (the paper's buffer:
// as many segments of 2 s as the links' ratio, and one more). Dynamic shares need the throughput and give the same
// quality at every ratio. Both send many requests. Shares change between two draws, so slivers remain at the ends of
// blocks. A floor of S_min, the bytes that the link sends in one trip (equation 4.3), keeps requests from being too
// short to be worthwhile. Literal omits the floor.
type Subsegments struct {
	Dynamic bool
	Literal bool

	left int64 // bytes left in the current block
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

// Draw is Algorithm 3 of Evensen 2011. It returns the size in bytes of a link's next request, given the link's share of
// the throughput and the left bytes of the current block, and the rest of the block. A new block follows one that is
// used up.
func Draw(block, left int64, share float64) (size, rest int64) {
	if left <= 0 {
		left = block
	}
	size = max(1, int64(math.Round(share*float64(block))))
	size = min(size, left)
	return size, left - size
}

// Least is S_min, equation 4.3 of Evensen 2011: the bytes that a link sends during one trip. rate is in bytes per
// second; delay is one-way.
func Least(rate float64, delay time.Duration) int64 { return int64(math.Round(rate * delay.Seconds())) }
