package sim

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/health"
)

// wire is the share of a link's rate that is left for bytes of bodies: 1448 of 1500 bytes of a packet.
const wire = 1448. / 1500

// TestAgainstLab runs scenarios of lab/testdata/scenarios in the simulator and compares with the lab's measurements: medians of
// curl's time through the built program, three rounds, real nginx (docs/SIMULATOR.md has the command). The difference may be 5
// %.
func TestAgainstLab(t *testing.T) {
	link := func(rate float64, rtt time.Duration) Link { return Link{Rate: rate * mbit * wire, RTT: rtt} }
	ramping := func(l Link) Link { l.Ramp = ramp; return l }
	for name, c := range map[string]struct {
		size  int64
		links []Link
		lab   map[string]time.Duration
	}{
		"hs":    {50e6, []Link{link(80, 10*ms), ramping(link(60, 45*ms))}, map[string]time.Duration{"alg3": 3390 * ms, "mphttp": 3430 * ms, "fixed-512k": 4310 * ms}},
		"ls":    {50e6, []Link{link(8, 10*ms), ramping(link(66, 45*ms))}, map[string]time.Duration{"alg3": 6440 * ms, "mphttp": 11800 * ms, "fixed-512k": 9520 * ms}},
		"equal": {20e6, []Link{link(20, 20*ms), link(20, 40*ms)}, map[string]time.Duration{"alg3": 4260 * ms, "mphttp": 4260 * ms, "fixed-512k": 4850 * ms}},
		"cap":   {4e6, []Link{link(5, 20*ms), link(10, 40*ms)}, map[string]time.Duration{"alg3": 2330 * ms, "mphttp": 2310 * ms, "fixed-512k": 2490 * ms}},
	} {
		for scheduler, lab := range c.lab {
			s := Spec{Size: c.size, Links: c.links, Window: defaultWindow, First: 256 << 10}
			s.Slow = health.SlowOff // no link was banned in the lab's rounds
			r := run(t, scheduler, s)
			off := r.Took.Seconds()/lab.Seconds() - 1
			t.Logf("%-6s %-12s lab %6.3f s, simulator %6.3f s: %+.1f %%", name, scheduler, lab.Seconds(), r.Took.Seconds(), 100*off)
			if off < -0.05 || off > 0.05 {
				t.Errorf("%s, %s: %v in the simulator, %v in the lab", name, scheduler, r.Took, lab)
			}
		}
	}
}
