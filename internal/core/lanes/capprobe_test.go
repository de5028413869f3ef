package lanes

import (
	"testing"
	"time"
)

// TestLiftModel: a lane whose congestion control keeps its queue short does not give way to a queue of other traffic, and soon
// returns to the cap when it is alone again.
func TestLiftModel(t *testing.T) {
	const least, own = 30 * time.Millisecond, 55 * time.Millisecond
	var c capProbe
	now := start
	wait := func(d, rtt time.Duration) (lifted time.Duration) {
		for end := now.Add(d); now.Before(end); now = now.Add(time.Millisecond) {
			c.limited = true
			if c.observe(now, Path{RTT: rtt, MinRTT: least, InFlight: 100_000, Model: true}, own); c.gain() > 1 {
				lifted += time.Millisecond
			}
		}
		return lifted
	}
	if n := wait(time.Minute, own+modelSlack); n != 0 {
		t.Errorf("alone, the cap was lifted for %s of a minute", n)
	}
	if n := wait(time.Minute, 80*time.Millisecond); n < 54*time.Second {
		t.Errorf("beside another download, the cap was lifted for %s of a minute only", n)
	}
	if n := wait(time.Minute, own-time.Millisecond); n > lastPause {
		t.Errorf("alone again, the cap was lifted for %s", n)
	}
	for range 100 { // the queue that it attributes to other traffic is its own
		if wait(time.Second, 80*time.Millisecond); c.phase == lifted {
			break
		}
	}
	if n := wait(time.Minute, own); n > 2*firstPause+time.Second {
		t.Errorf("beside nobody, the cap was lifted for %s", n)
	}
}
