package literature

import (
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// Fixed requests ranges of one fixed length, one at a time on each link; whichever link is done takes the next.
// Download managers do this, and so does mHTTP, which Nikravesh 2018 (section 6.6) compares with at 128, 256 and 512
// KB.
//
// It needs no information. It wins where round trips are short relative to the time of a range. Each range costs its
// link a round trip, and the transfer waits for the last range of a slow link. Shorter ranges reduce the second cost
// and raise the first.
type Fixed struct {
	Size int64 // in bytes; 0 = 256 KB
}

// Next implements schedule.Scheduler.
func (s *Fixed) Next(_ time.Time, v *schedule.View) schedule.Decision {
	return pull(v, oneByOne, s.size)
}

func (s *Fixed) size(*schedule.View, int8) (int64, schedule.Rule) {
	if s.Size == 0 {
		return 256e3, schedule.Piece
	}
	return s.Size, schedule.Piece
}
