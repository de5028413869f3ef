package sim

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// misses returns the longest wait of a player with a bitrate in bytes per second that starts after startup.
func (r *Result) misses(bitrate float64, startup time.Duration) (most time.Duration) {
	delivered := int64(0)
	for _, p := range r.progress {
		most = max(most, p.at-startup-time.Duration(float64(delivered)/bitrate*1e9))
		delivered = p.delivered
	}
	return most
}

// A stream of 4 Mbit/s over Wi-Fi and LTE, whose player starts after 2 s, never misses a byte. LTE carries at most 1.1 times the
// part that Wi-Fi cannot carry, plus a request if that part is small, and nothing if Wi-Fi can carry everything. The client reads
// bytes as they arrive, or as it plays them.
func TestDeadlineStream(t *testing.T) {
	const bitrate, startup, size = 4 * mbit, 2 * time.Second, 30e6
	for _, wifi := range []float64{2, 3, 3.8, 4.5, 6} {
		for _, client := range []float64{0, bitrate} {
			s := withRadios(t, Spec{
				Size: size, First: 128 << 10, Window: defaultWindow, Scheduler: schedule.Default, Client: client,
				Deadline: &schedule.Deadline{Bitrate: bitrate, Startup: startup},
				Links:    []Link{{Rate: wifi * mbit, RTT: 20 * ms}, {Rate: 20 * mbit, RTT: 50 * ms}},
			})
			r, err := Run(s)
			if err != nil {
				t.Fatal(err)
			}
			missing := max(0, 1-wifi*mbit/bitrate) * size
			most := 1.1 * missing
			if missing > 0 && wifi != 3 {
				most += 1e6
			}
			if late := r.misses(bitrate, startup); late > 0 || float64(r.Bytes[1]) > most {
				t.Errorf("%g Mbit/s, client %g: %v late, LTE carried %d bytes of %.0f that were missing", wifi, client, late, r.Bytes[1], missing)
			}
			t.Logf("%g Mbit/s, client %g: LTE %.2f MB of %.2f, %.2f J, %v", wifi, client, float64(r.Bytes[1])/1e6, missing/1e6, r.cost().joules, r.Took)
		}
	}
}

// Wi-Fi varies by a third each second. The stream still misses nothing, and LTE carries less than half of it.
func TestDeadlineVarying(t *testing.T) {
	const bitrate, startup = 4 * mbit, 2 * time.Second
	for seed := range uint64(10) {
		wifi := radio{mean: 4, sigma: 1.3, rtt: 20 * ms}.draw(rand.New(rand.NewPCG(seed, 12)))
		s := withRadios(t, Spec{
			Size: 30e6, First: 128 << 10, Window: defaultWindow, Scheduler: schedule.Default, Client: bitrate, Seed: seed,
			Deadline: &schedule.Deadline{Bitrate: bitrate, Startup: startup}, Links: []Link{wifi, {Rate: 20 * mbit, RTT: 50 * ms}},
		})
		r, err := Run(s)
		if err != nil {
			t.Fatal(err)
		}
		if late := r.misses(bitrate, startup); late > 0 || r.Bytes[1] > 15e6 {
			t.Errorf("seed %d: %v late, LTE carried %d bytes", seed, late, r.Bytes[1])
		}
	}
}

// 30 MB within a time: LTE carries the bytes that Wi-Fi cannot. The deadline is met even if Wi-Fi dies, and a deadline that is long
// enough does not wake LTE.
func TestDeadlineWithin(t *testing.T) {
	for _, c := range []struct {
		name    string
		within  time.Duration
		events  []LinkEvent
		missing float64 // bytes
	}{
		{"long enough", 60 * time.Second, nil, 0},                        // Wi-Fi alone takes 48 s
		{"too short for Wi-Fi", 30 * time.Second, nil, 30e6 - 30*5*mbit}, // 11.25 MB
		{"Wi-Fi dies", 60 * time.Second, []LinkEvent{{At: 10 * time.Second, What: Blackhole}}, 30e6 - 10*5*mbit},
	} {
		s := withRadios(t, Spec{
			Size: 30e6, First: 128 << 10, Window: 40e6, Scheduler: schedule.Default, Deadline: &schedule.Deadline{Within: c.within},
			Links: []Link{{Rate: 5 * mbit, RTT: 20 * ms, Events: c.events}, {Rate: 20 * mbit, RTT: 50 * ms}},
		})
		r, err := Run(s)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if r.Took > c.within || float64(r.Bytes[1]) > 1.1*c.missing {
			t.Errorf("%s: %v of %v, LTE carried %d bytes of %.0f", c.name, r.Took, c.within, r.Bytes[1], c.missing)
		}
		t.Logf("%s: %v of %v, LTE %.2f MB of %.2f", c.name, r.Took, c.within, float64(r.Bytes[1])/1e6, c.missing/1e6)
	}
}
