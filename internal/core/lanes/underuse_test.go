package lanes

import (
	"testing"
	"time"
)

// TestUnderused: a link is underused if the window that congestion control returned to holds less than the link does.
func TestUnderused(t *testing.T) {
	const megabyte = 1e6
	for _, c := range []struct {
		name string
		path Path
		want bool
	}{
		{"a loss in a large window", Path{Threshold: 1 << 30}, false},
		{"nothing was lost", Path{}, false},
		{"a loss at a full queue of one BDP", Path{Threshold: 2 * 40_000 * 7 / 10}, false},
		{"a loss at an empty queue", Path{Threshold: 40_000 * 7 / 10}, true},
		{"the same, and the control follows a model", Path{Threshold: 40_000 * 7 / 10, Model: true}, false},
		{"many losses", Path{Threshold: 10 * 1448}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := New(Config{})
			now := time.Unix(0, 0)
			m.AddLane(now, 1)
			p := c.path
			p.RTT, p.MinRTT, p.CWnd, p.InFlight = 45*time.Millisecond, 40*time.Millisecond, 50_000, 50_000
			p.DeliveryRate = megabyte
			m.Observe(now, 1, p)
			if got := m.Underused(1); got != c.want {
				t.Errorf("got %v", got)
			}
			m.Observe(now.Add(p.RTT), 1, p)
			if m.Underused(1) || m.Underused(2) {
				t.Error("it is reported twice, or for a lane that does not exist")
			}
		})
	}
}
