package schedule_test

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// The vectors: [D] printed in Skjolden 2019, [C] computed from its formulas, [X] a misprint, corrected. Printed sizes are in KB of
// 1000 bytes, truncated.

// a2 returns the inputs of the examples in section 4.3.4: 250,000 KB over two links with 60,000 KBps together.
func a2(thr, sum float64) schedule.Params {
	return schedule.Params{
		N: 2, Payload: 250_000 * kb, SumBandwidth: 60_000 * kb, Throughput: thr * kb, SumThroughput: sum * kb,
	}
}

func TestAlgorithm2(t *testing.T) {
	tests := []struct {
		name   string
		p      schedule.Params
		wantKB int64
	}{
		{"[D] 4.3.4 example 1, 1600 of 2400 KBps", a2(1600, 2400), 3333},
		{"[D] 4.3.4 example 1, 800 of 2400 KBps", a2(800, 2400), 1666},
		{"[D] 4.3.4 example 2, 8000 of 8800 KBps", a2(8000, 8800), 16_666},
		{"[D] 4.3.4 example 2, 800 of 8800 KBps", a2(800, 8800), 1666},
		{"[C] full speed, one of two equal links gets P/4", a2(30_000, 60_000), 62_500},
		{"[C] beyond the known bandwidth, as printed: (P/2) 45/60", a2(45_000, 90_000), 93_750},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.p.Share() / kb; got != tt.wantKB {
				t.Errorf("%d KB, want %d", got, tt.wantKB)
			}
		})
	}
	t.Run("[C] fact (a): the sum of throughputs cancels", func(t *testing.T) {
		want := a2(800, 801).Share()
		for other := 1.0; other < 59_000; other *= 3 {
			if got := a2(800, 800+other).Share(); got != want {
				t.Errorf("beside %g KBps: %d, want %d", other, got, want)
			}
		}
	})
	t.Run("[C] fact (b): at full speed the shares add up to P/n", func(t *testing.T) {
		if sum := a2(45_000, 60_000).Share() + a2(15_000, 60_000).Share(); sum != 125_000*kb {
			t.Errorf("%d bytes", sum)
		}
	})
	t.Run("nothing known", func(t *testing.T) {
		for _, p := range []schedule.Params{{N: 2, Payload: mb}, {N: 2, Payload: mb, SumBandwidth: mb}, {}} {
			if got := p.Share(); got != 0 {
				t.Errorf("%+v: %d", p, got)
			}
		}
	})
}

// a3 returns the inputs of the example in section 4.3.5: 1600 and 400 KBps, 20 and 40 ms, 30,000 KBps each.
func a3(thr float64, rtt time.Duration) schedule.Params {
	p := a2(thr, 2000)
	p.Bandwidth, p.RTT, p.Floor = 30_000*kb, rtt, 1
	return p
}

func TestAlgorithm3(t *testing.T) {
	padded := func(p schedule.Params, f float64) schedule.Params { p.Padding = f; return p }
	floored := func(p schedule.Params, f float64) schedule.Params { p.Floor = f; return p }
	// A2 gives 10,000 KB, the BDP is 2000 KB.
	pad := schedule.Params{
		N: 1, Payload: 10_000 * kb, Throughput: 20_000 * kb, SumThroughput: 20_000 * kb, SumBandwidth: 20_000 * kb,
		Bandwidth: 20_000 * kb, RTT: 100 * ms, Floor: 1,
	}
	tests := []struct {
		name            string
		p               schedule.Params
		a2KB, bdpKB, kB int64
		rule            schedule.Rule
	}{
		{"[D] 4.3.5 link 1: above its BDP", a3(1600, 20*ms), 3333, 600, 3333, schedule.Share},
		{"[D] 4.3.5 link 2: its BDP", a3(400, 40*ms), 833, 1200, 1200, schedule.Floor},
		{"[X] padding, printed for an input of 9000: 4100", padded(pad, 0.3), 10_000, 2000, 4400, schedule.Share},
		{"[C] padding of link 1", padded(a3(1600, 20*ms), 0.3), 3333, 600, 1420, schedule.Share},
		{"[C] padding of link 2", padded(a3(400, 40*ms), 0.3), 833, 1200, 1200, schedule.Floor},
		{"padding by 1 changes nothing", padded(pad, 1), 10_000, 2000, 10_000, schedule.Share},
		{"[C] overlap hazard: 2.5 x BDP, link 1 above", floored(a3(1600, 20*ms), 2.5), 3333, 600, 3333, schedule.Share},
		{"[C] overlap hazard: 2.5 x BDP, link 2 at it", floored(a3(400, 40*ms), 2.5), 833, 1200, 3000, schedule.Floor},
		{"no round trip known: no floor", a3(400, 0), 833, 0, 833, schedule.Share},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			size, rule := tt.p.Size()
			if share, bdp := tt.p.Share()/kb, tt.p.BDP()/kb; share != tt.a2KB || bdp != tt.bdpKB {
				t.Errorf("A2 %d KB, BDP %d KB; want %d, %d", share, bdp, tt.a2KB, tt.bdpKB)
			}
			if size/kb != tt.kB || rule != tt.rule {
				t.Errorf("%d KB (%v), want %d (%v)", size/kb, rule, tt.kB, tt.rule)
			}
		})
	}
}

// Vectors [C] for equation 6.1 of Nikravesh 2018, with its denominator corrected [X].
func TestOffload(t *testing.T) {
	tests := []struct {
		name  string
		left  int64
		delay time.Duration
		want  int64 // bytes moved
	}{
		{"D 500,000, 0.3 s: 208,333 move", 500_000, 300 * ms, 208_333},
		{"D 150,000: do not offload", 150_000, 300 * ms, -25_000},
		{"D 187,500 = BW_j x RTT_i: break-even", 187_500, 300 * ms, 0},
		{"D 2,000,000 at the start, RTT 26 and 60 ms: 1,347,500 on link i", 2_000_000, (26 - 60) * ms, 1_347_500},
	}
	const fast, slow = 10 * mbit, 5 * mbit
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := schedule.Offload(tt.left, fast, slow, tt.delay)
			if d := got - float64(tt.want); d < -0.5 || d > 0.5 {
				t.Fatalf("%.1f, want %d", got, tt.want)
			}
			// Both end together; the fast one begins later by delay.
			slowEnd, fastEnd := (float64(tt.left)-got)/slow, got/fast+tt.delay.Seconds()
			if d := slowEnd - fastEnd; d < -1e-6 || d > 1e-6 {
				t.Errorf("slow ends after %.4f s, fast after %.4f s", slowEnd, fastEnd)
			}
			if tt.left == 500_000 && int(slowEnd*1000) != 466 {
				t.Errorf("both end in %.3f s, want 0.467", slowEnd)
			}
		})
	}
}
