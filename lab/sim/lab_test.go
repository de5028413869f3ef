package sim

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/health"
)

// wire is the share of a link's rate that is available for body bytes: 1448 of the 1500 bytes of a packet.
const wire = 1448. / 1500

// TestAgainstLab runs scenarios of testdata/scenarios in the simulator and compares the results with the lab's measurements:
// medians of curl's time through the built program, three rounds, real nginx (docs/SIMULATOR.md has the command, and the table that
// this test writes with -update). The difference may be 5 %, and 7.5 % for naive on hs.
func TestAgainstLab(t *testing.T) {
	link := func(rate float64, rtt time.Duration) Link { return Link{Rate: rate * mbit * wire, RTT: rtt} }
	ramping := func(l Link) Link { l.Ramp = ramp; return l }
	schemes := []string{"alg3", "mphttp", "fixed-512k", "naive"}
	var b strings.Builder
	b.WriteString("| scenario | object | scheduler | lab | simulator | difference |\n| --- | --- | --- | ---: | ---: | ---: |\n")
	for _, c := range []struct {
		name, what string
		size       int64
		links      []Link
		lab        [4]time.Duration // times of the schemes
	}{
		{"hs", "80 + 60 Mbit/s, ramp", 50e6, []Link{link(80, 10*ms), ramping(link(60, 45*ms))}, [4]time.Duration{3390, 3430, 4310, 5310}},
		{"ls", "8 + 66 Mbit/s, ramp", 50e6, []Link{link(8, 10*ms), ramping(link(66, 45*ms))}, [4]time.Duration{6440, 11800, 9520, 28150}},
		{"equal", "20 + 20 Mbit/s", 20e6, []Link{link(20, 20*ms), link(20, 40*ms)}, [4]time.Duration{4260, 4260, 4850, 4350}},
		{"cap", "5 + 10 Mbit/s", 4e6, []Link{link(5, 20*ms), link(10, 40*ms)}, [4]time.Duration{2330, 2310, 2490, 3710}},
	} {
		first := fmt.Sprintf("%s, %s | %d MB", c.name, c.what, c.size/1e6)
		for i, scheduler := range schemes {
			lab := c.lab[i] * ms
			s := Spec{Size: c.size, Links: c.links, Window: defaultWindow, First: 256 << 10}
			s.Slow = health.SlowOff // no link was banned in the lab's rounds
			r := run(t, scheduler, s)
			off := r.Took.Seconds()/lab.Seconds() - 1
			fmt.Fprintf(&b, "| %s | %s | %.2f s | %.2f s | %+.1f %% |\n", first, scheduler, lab.Seconds(), r.Took.Seconds(), 100*off)
			first = "|"
			most := 0.05
			if c.name == "hs" && scheduler == "naive" { // the bytes in a receive buffer decide when its second range ends
				most = 0.075
			}
			if math.Abs(off) > most {
				t.Errorf("%s, %s: %v in the simulator, %v in the lab", c.name, scheduler, r.Took, lab)
			}
		}
	}
	if !t.Failed() {
		inDoc(t, filepath.Join("..", "..", "docs", "SIMULATOR.md"), "against the lab", b.String())
	}
}
