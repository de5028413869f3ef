package literature

import (
	"time"

	"github.com/tributary-http/tributary/internal/schedule"
)

// Fixed asks for ranges of one fixed length, one at a time on each link: whichever link is done takes the next. Download
// managers do this, and mHTTP, which Nikravesh 2018 (section 6.6) compares with 128, 256 and 512 KB.
//
// It needs to know nothing. It wins where round trips are short beside the time of a range; each range costs its link a
// round trip, and the last range of a slow link is waited for. Shorter ranges lessen the second cost and raise the first.
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
