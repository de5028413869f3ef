package sim

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// TestRequests bounds the requests for an object: their ranges are long while the end is far, and that costs no time.
func TestRequests(t *testing.T) {
	link := func(rate float64, rtt time.Duration) Link {
		return Link{Rate: rate * mbit * wire, RTT: rtt, Jitter: 2 * ms}
	}
	for _, c := range []struct {
		name  string
		size  int64
		links []Link
		most  int
	}{
		{"40 MB over 80 + 60 Mbit/s", 40e6, []Link{link(80, 10*ms), link(60, 45*ms)}, 120},
		{"1 GB over 80 + 60 Mbit/s", 1e9, []Link{link(80, 10*ms), link(60, 45*ms)}, 700},
		{"40 MB over 5 + 5 Mbit/s", 40e6, []Link{link(5, 20*ms), link(5, 45*ms)}, 420},
		{"1 GB over 8 + 66 Mbit/s", 1e9, []Link{link(8, 20*ms), link(66, 45*ms)}, 950},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := Spec{Size: c.size, Links: c.links, Window: defaultWindow, First: 256 << 10, Seed: 1}
			limit, carried, err := Limit(s)
			if err != nil {
				t.Fatal(err)
			}
			s.carried = carried
			r := run(t, schedule.Default, s)
			if share := limit.Seconds() / r.Took.Seconds(); r.Requests > c.most || share < 0.99 {
				t.Errorf("%d requests, want at most %d; %.1f %% of the limit", r.Requests, c.most, 100*share)
			}
		})
	}
}
