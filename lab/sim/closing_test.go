package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// TestClosingOrigin: an origin that closes each connection after a few responses makes ranges pay for a handshake and a slow start.
// They grow until that costs little, compared with the whole object at once over each link.
func TestClosingOrigin(t *testing.T) {
	for _, rtt := range []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond} {
		for _, c := range []struct {
			links, answers int
			unannounced    bool
		}{{1, 1, false}, {2, 1, false}, {1, 1, true}, {2, 1, true}, {1, 2, false}, {2, 2, false}, {2, 2, true}, {1, 5, false}, {2, 5, false}, {2, 5, true}} {
			t.Run(fmt.Sprintf("%v, %d links, %d answers, unannounced %v", rtt, c.links, c.answers, c.unannounced), func(t *testing.T) {
				s := Spec{Size: 40e6, First: 128 << 10, Window: 16 << 20, Scheduler: schedule.Default, Reserve: true, Seed: 1}
				for range c.links {
					s.Links = append(s.Links, Link{Rate: 20 * mbit, RTT: rtt})
				}
				s.Faults.CloseAfter, s.Faults.Unannounced = c.answers, c.unannounced
				least, _, err := Limit(s)
				if err != nil {
					t.Fatal(err)
				}
				r, err := Run(s)
				if err != nil {
					t.Fatal(err)
				}
				most := least * 8 / 5
				if c.unannounced { // requests are lost, too
					most = 2 * least
				}
				if r.Took > most {
					t.Errorf("took %v with %d requests, in one piece over each link %v", r.Took, r.Requests, least)
				}
			})
		}
	}
}
