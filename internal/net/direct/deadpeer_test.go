package direct

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
	"github.com/tributary-http/tributary/internal/net/link"
)

// TestDeadPeer simulates the lives of connections in steps of half a second.
func TestDeadPeer(t *testing.T) {
	const step = 500 * time.Millisecond
	const kb = 1 << 10
	// far is the other end of a connection and the path to it.
	type far struct {
		rate    int64                    // bytes per second that it carries
		until   time.Duration            // when that ends
		dead    time.Duration            // when it dies; 0 = never
		unacked func(time.Duration) bool // whether sent bytes wait for an acknowledgment while it is dead
	}
	never := func(time.Duration) bool { return false }
	for _, c := range []struct {
		name  string
		far   far
		asks  int
		first time.Duration // when it is overdue for the first time; 0 = never
	}{
		{"runs, and runs on", far{1000 * kb, time.Hour, 0, never}, 0, 0},
		{"runs, then has nothing to say: asked once", far{1000 * kb, 5 * time.Second, 0, never}, 1, 0},
		{"trickles, then pauses: not worth a question", far{kb, 5 * time.Second, 0, never}, 0, 0},
		{"a download breaks off", far{1000 * kb, 5 * time.Second, 5 * time.Second, never}, 1, 8 * time.Second},
		{"an upload breaks off", far{1000 * kb, 5 * time.Second, 5 * time.Second, func(time.Duration) bool { return true }}, 0, 8 * time.Second},
		{
			"an idle one is used again, but the link has died",
			far{0, 0, time.Second, func(at time.Duration) bool { return at >= time.Minute }},
			0, time.Minute + owing,
		},
	} {
		t.Run("R145 "+c.name, func(t *testing.T) {
			var v deadPeer
			start := time.Unix(0, 0)
			asks, asked, first, last := 0, false, time.Duration(0), time.Duration(0)
			for at := time.Duration(0); at < 2*time.Minute; at += step {
				gone := c.far.dead > 0 && at > c.far.dead
				is := link.Vitals{Carried: int64(float64(c.far.rate) * min(at, c.far.until).Seconds())}
				switch {
				case gone:
					is.Heard, is.Owed = at-c.far.dead, asked || c.far.unacked(at)
				case at > c.far.until && !asked:
					is.Heard = at - c.far.until
				}
				f := v.look(start.Add(at), is)
				if f.ask {
					asks, asked = asks+1, true
				}
				if f.relax && !gone {
					asked = false
				}
				if f.overdue {
					if last = at; first == 0 {
						first = at
					}
				}
				if (f.overdue || asked && !f.relax) && !f.watch && at < last {
					t.Errorf("after %v nobody looks again", at)
				}
			}
			if asks != c.asks || first != c.first {
				t.Errorf("asked %d times, overdue after %v, want %d, %v", asks, first, c.asks, c.first)
			}
			if first > 0 && last-first > health.LastChance {
				t.Errorf("overdue until %v", last)
			}
		})
	}
}
