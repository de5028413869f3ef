package sim

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// TestLimits: an origin that limits each connection gets more of them over both links, one that limits something else does
// not keep them. ideal is the time that the limits leave with as many connections as a link may have.
func TestLimits(t *testing.T) {
	const mebi = 1 << 20
	links := []Link{{Rate: 100 * mbit, RTT: 10 * ms}, {Rate: 100 * mbit, RTT: 45 * ms}}
	for _, c := range []struct {
		name    string
		limits  Limits
		h2      bool
		size    int64
		ideal   time.Duration
		most    float64 // times the ideal time
		atLeast int     // connections over each link, besides a reserve
		atMost  int
	}{
		{"none", Limits{}, false, 40e6, 1600 * ms, 1.3, 1, 1},
		{"1 MiB/s for each connection", Limits{Conn: mebi}, false, 40e6, 2400 * ms, 1.5, 8, 8},
		{"the same by HTTP/2", Limits{Conn: mebi}, true, 40e6, 2400 * ms, 1.5, 8, 8},
		{"100 KiB/s for each connection", Limits{Conn: mebi / 10}, false, 10e6, 6 * time.Second, 1.6, 8, 8},
		{"1 MiB/s for each connection after 2 MiB", Limits{Conn: mebi, Burst: 2 * mebi}, false, 80e6, 2900 * ms, 2.2, 4, 8},
		{"1 MiB/s for each address", Limits{Link: mebi}, false, 20e6, 9600 * ms, 1.05, 1, 2},
		{"1 MiB/s for the object", Limits{Object: mebi}, false, 10e6, 9600 * ms, 1.05, 1, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Spec{Size: c.size, Links: links, Window: 16 * mebi, First: 128 << 10, Limits: c.limits}
			if c.h2 {
				s.Links = []Link{links[0], links[1]}
				s.Links[0].H2, s.Links[1].H2 = true, true
			}
			r := run(t, schedule.Default, s)
			if took := r.Took.Seconds() / c.ideal.Seconds(); took > c.most {
				t.Errorf("took %v, %.2f times %v", r.Took, took, c.ideal)
			}
			for i, n := range r.Most {
				if n < c.atLeast || n > c.atMost+1 {
					t.Errorf("link %d: %d connections, want %d to %d", i, n, c.atLeast, c.atMost)
				}
			}
			t.Logf("%v, connections %v, %d requests", r.Took, r.Most, r.Requests)
		})
	}
}
