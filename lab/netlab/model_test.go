package netlab

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

const (
	ms  = time.Millisecond
	lot = 1 << 30
)

// run feeds packets (arrival, size) to a direction in virtual time and returns when each left it; -1 = never. Between the
// arrivals it behaves as the emulator does: it calls next and delivers at the time returned.
func run(t *testing.T, d *direction, from time.Duration, arrivals []arrival) []time.Duration {
	t.Helper()
	index := map[*packet]int{}
	left := make([]time.Duration, len(arrivals))
	for i := range left {
		left[i] = -1
	}
	until := func(end time.Duration) {
		for {
			at, ok := d.next()
			if !ok || at > end {
				return
			}
			for p := d.deliver(at); p != nil; p = d.deliver(at) {
				left[index[p]] = at
				delete(index, p)
				d.pool.put(p)
			}
		}
	}
	for i, a := range arrivals {
		until(from + a.at - 1)
		p := d.pool.get()
		p.n = a.n
		index[p] = i
		d.enqueue(from+a.at, p)
	}
	until(math.MaxInt64)
	return left
}

type arrival struct {
	at time.Duration
	n  int
}

func burst(at time.Duration, count int) []arrival {
	a := make([]arrival, count)
	for i := range a {
		a[i] = arrival{at, 1500}
	}
	return a
}

func newTest(s Shape) *direction {
	return newDirection(s, rand.New(rand.NewPCG(1, 2)), &pool{})
}

func trace(t *testing.T, ms ...uint32) *Trace {
	t.Helper()
	tr, err := NewTrace(ms)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestWhenPacketsLeave(t *testing.T) {
	tests := []struct {
		name     string
		shape    Shape
		arrivals []arrival
		want     []time.Duration
	}{
		{
			"one packet takes its time on the link and the delay", // 1500 bytes at 12 Mbit/s: 1 ms
			Shape{Rate: 12 * Mbit, Delay: 5 * ms},
			[]arrival{{0, 1500}},
			[]time.Duration{6 * ms},
		},
		{
			"packets queue behind each other",
			Shape{Rate: 12 * Mbit, Delay: 5 * ms},
			[]arrival{{0, 1500}, {0, 750}, {0, 1500}},
			[]time.Duration{6 * ms, 6500 * time.Microsecond, 7500 * time.Microsecond},
		},
		{
			"an idle link starts at once",
			Shape{Rate: 12 * Mbit, Delay: 5 * ms},
			[]arrival{{0, 1500}, {20 * ms, 1500}},
			[]time.Duration{6 * ms, 26 * ms},
		},
		{
			"a full queue drops the tail", // the packet being sent counts
			Shape{Rate: 12 * Mbit, Queue: Queue{Bytes: 3000}},
			burst(0, 4),
			[]time.Duration{1 * ms, 2 * ms, -1, -1},
		},
		{
			"a queue by time",
			Shape{Rate: 12 * Mbit, Queue: Queue{Time: 3 * ms}},
			burst(0, 5),
			[]time.Duration{1 * ms, 2 * ms, 3 * ms, -1, -1},
		},
		{
			"a queue smaller than a packet lets single packets through",
			Shape{Rate: 12 * Mbit, Queue: Queue{Bytes: 100}},
			[]arrival{{0, 1500}, {0, 1500}, {2 * ms, 1500}},
			[]time.Duration{1 * ms, -1, 3 * ms},
		},
		{
			"everything is lost",
			Shape{Rate: 12 * Mbit, Loss: 1},
			burst(0, 2),
			[]time.Duration{-1, -1},
		},
		{
			"a trace carries 1500 bytes per line",
			Shape{Trace: &Trace{ms: []uint32{2, 2, 5}}, Delay: 10 * ms},
			burst(0, 3),
			[]time.Duration{12 * ms, 12 * ms, 15 * ms},
		},
		{
			"a trace repeats from its end",
			Shape{Trace: &Trace{ms: []uint32{1, 4}}},
			burst(0, 5),
			[]time.Duration{1 * ms, 4 * ms, 5 * ms, 8 * ms, 9 * ms},
		},
		{
			"small packets share an opportunity",
			Shape{Trace: &Trace{ms: []uint32{2, 3, 10}}},
			[]arrival{{0, 500}, {0, 500}, {0, 500}, {0, 500}},
			[]time.Duration{2 * ms, 2 * ms, 2 * ms, 3 * ms},
		},
		{
			"opportunities that nobody uses are lost", // the trace begins with the first packet
			Shape{Trace: &Trace{ms: []uint32{1, 2, 3, 10}}},
			[]arrival{{0, 1500}, {5 * ms, 1500}, {5 * ms, 1500}},
			[]time.Duration{1 * ms, 10 * ms, 11 * ms},
		},
		{
			"the rest of an opportunity does not wait for a later packet",
			Shape{Trace: &Trace{ms: []uint32{1, 5}}},
			[]arrival{{0, 500}, {2 * ms, 500}},
			[]time.Duration{1 * ms, 5 * ms},
		},
		{
			"a trace is found again after many repetitions",
			Shape{Trace: &Trace{ms: []uint32{3, 7}}},
			[]arrival{{0, 1500}, {7001 * ms, 1500}, {14000 * ms, 1500}},
			[]time.Duration{3 * ms, 7003 * ms, 14000 * ms},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, from := range []time.Duration{0, 12345 * ms} {
				d := newTest(tt.shape)
				for i, at := range run(t, d, from, tt.arrivals) {
					want := tt.want[i]
					if want >= 0 {
						want += from
					}
					if at != want {
						t.Errorf("from %s: packet %d left at %s, want %s", from, i, at-from, tt.want[i])
					}
				}
				check(t, d)
			}
		})
	}
}

// check fails the test unless an empty direction has accounted for every packet.
func check(t *testing.T, d *direction) {
	t.Helper()
	c := d.counts
	if c.InFlight != 0 || d.queued != 0 || c.Packets != c.Delivered+c.Drops() {
		t.Errorf("counters %+v, %d bytes queued", c, d.queued)
	}
}

func TestRamp(t *testing.T) {
	// 12 Mbit/s: 1 ms per packet at the full rate, 3 ms at a third of it. In a ramp of 1.5 s the link carries 2/3 of its
	// packets at the full rate: 1000 packets.
	shape := Shape{Rate: 12 * Mbit, Ramp: 1500 * ms, Queue: Queue{Bytes: lot}}
	near := func(t *testing.T, got, want time.Duration) {
		t.Helper()
		if diff := (got - want).Abs(); diff > 10*time.Microsecond {
			t.Errorf("left at %s, want %s", got, want)
		}
	}
	t.Run("from a third to all", func(t *testing.T) {
		left := run(t, newTest(shape), 0, burst(0, 2000))
		if first := left[0]; first < 2900*time.Microsecond || first > 3*ms {
			t.Errorf("the first packet took %s, want just under 3 ms", first)
		}
		near(t, left[999], 1500*ms)
		near(t, left[1999], 2500*ms)
	})
	t.Run("a short silence does not restart it", func(t *testing.T) {
		left := run(t, newTest(shape), 0, append(burst(0, 1000), arrival{6400 * ms, 1500}))
		near(t, left[1000], 6401*ms)
	})
	t.Run("5 s of silence restart it", func(t *testing.T) {
		left := run(t, newTest(shape), 0, append(burst(0, 1000), burst(6600*ms, 1000)...))
		near(t, left[1999], 8100*ms)
	})
	t.Run("ResetRamp restarts it", func(t *testing.T) {
		d := newTest(shape)
		run(t, d, 0, burst(0, 1000))
		d.reset(1600 * ms)
		left := run(t, d, 1700*ms, burst(0, 1000))
		near(t, left[999], 3200*ms)
	})
	t.Run("a packet longer than the ramp", func(t *testing.T) {
		d := newTest(Shape{Rate: 12 * Mbit, Ramp: ms})
		// the ramp sends what takes 2/3 ms at the full rate; the rest follows at the full rate
		near(t, run(t, d, 0, burst(0, 1))[0], ms+ms/3)
	})
}

func TestJitterKeepsTheOrder(t *testing.T) {
	d := newTest(Shape{Rate: 120 * Mbit, Delay: 10 * ms, Jitter: 5 * ms, Queue: Queue{Bytes: lot}})
	last, spread := time.Duration(0), map[time.Duration]bool{}
	for i, at := range run(t, d, 0, burst(0, 1000)) {
		sent := time.Duration(i+1) * 100 * time.Microsecond
		if at < last {
			t.Fatalf("packet %d overtook", i)
		}
		if late := at - sent; late < 10*ms || late >= 15*ms {
			t.Fatalf("packet %d was %s late", i, late)
		}
		last, spread[at-sent] = at, true
	}
	if len(spread) < 100 {
		t.Errorf("only %d different delays", len(spread))
	}
	check(t, d)
}

func TestLossIsSeededAndOfTheRightSize(t *testing.T) {
	lost := func(seed uint64) (n int64, which []time.Duration) {
		shape := Shape{Rate: 120 * Mbit, Loss: 0.05, Queue: Queue{Bytes: lot}}
		d := newDirection(shape, rand.New(rand.NewPCG(seed, 0)), &pool{})
		which = run(t, d, 0, burst(0, 20_000))
		check(t, d)
		return d.counts.LossDrops, which
	}
	n, first := lost(1)
	if n < 900 || n > 1100 {
		t.Errorf("%d of 20000 packets lost, want about 1000", n)
	}
	_, again := lost(1)
	for i := range first {
		if first[i] != again[i] {
			t.Fatalf("the same seed loses other packets: %d", i)
		}
	}
	if _, other := lost(2); equal(first, other) {
		t.Error("another seed loses the same packets")
	}
}

func equal(a, b []time.Duration) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestChangesWhileRunning(t *testing.T) {
	put := func(d *direction, at time.Duration, count int) {
		for range count {
			p := d.pool.get()
			p.n = 1500
			d.enqueue(at, p)
		}
	}
	// left returns when the next packet leaves.
	left := func(d *direction) time.Duration {
		for {
			at, ok := d.next()
			if !ok {
				return -1
			}
			if p := d.deliver(at); p != nil {
				d.pool.put(p)
				return at
			}
		}
	}
	base := Shape{Rate: 12 * Mbit, Delay: 5 * ms}
	t.Run("a lower rate holds for what is queued", func(t *testing.T) {
		d := newTest(base)
		put(d, 0, 3)
		slow := base
		slow.Rate = 1.2 * Mbit
		d.set(1*ms, slow)
		for _, want := range []time.Duration{6 * ms, 16 * ms, 26 * ms} {
			if at := left(d); at != want {
				t.Errorf("left at %s, want %s", at, want)
			}
		}
		check(t, d)
	})
	t.Run("a shorter delay does not reorder", func(t *testing.T) {
		d := newTest(base)
		put(d, 0, 2)
		d.advance(1 * ms)
		short := base
		short.Delay = 0
		d.set(1*ms, short)
		for _, want := range []time.Duration{6 * ms, 6 * ms} {
			if at := left(d); at != want {
				t.Errorf("left at %s, want %s", at, want)
			}
		}
	})
	t.Run("from a rate to a trace and back", func(t *testing.T) {
		d := newTest(base)
		put(d, 0, 3)
		d.set(1*ms, Shape{Trace: trace(t, 10, 20)})
		if at := left(d); at != 6*ms {
			t.Errorf("left at %s, want 6ms", at)
		}
		if at := left(d); at != 11*ms {
			t.Errorf("left at %s, want 11ms", at)
		}
		d.set(12*ms, base)
		if at := left(d); at != 18*ms {
			t.Errorf("left at %s, want 18ms", at)
		}
		check(t, d)
	})
	t.Run("a blackhole swallows what is on the way", func(t *testing.T) {
		d := newTest(base)
		put(d, 0, 3)
		d.setDark(1500*time.Microsecond, true)
		put(d, 2*ms, 2)
		if at := left(d); at != -1 {
			t.Errorf("a packet left at %s", at)
		}
		if d.counts.DarkDrops != 5 {
			t.Errorf("%+v, want 5 dark drops", d.counts)
		}
		d.setDark(10*ms, false)
		put(d, 10*ms, 1)
		if at := left(d); at != 16*ms {
			t.Errorf("after the blackhole: left at %s, want 16ms", at)
		}
		check(t, d)
	})
}

func TestDefaultQueue(t *testing.T) {
	tests := []struct {
		shape Shape
		want  int
	}{
		{Shape{Rate: 80 * Mbit}, 1_000_000},
		{Shape{Rate: 1 * Mbit}, 64 << 10},
		{Shape{Rate: 80 * Mbit, Queue: Queue{Bytes: 5000}}, 5000},
		{Shape{Rate: 80 * Mbit, Queue: Queue{Time: 10 * ms}}, 100_000},
		{Shape{Trace: &Trace{ms: []uint32{1}}}, 150_000},
	}
	for _, tt := range tests {
		if got := newTest(tt.shape).limit; got != tt.want {
			t.Errorf("%+v: %d bytes, want %d", tt.shape, got, tt.want)
		}
	}
}

func TestNoAllocationPerPacket(t *testing.T) {
	d := newTest(Shape{Rate: 120 * Mbit, Delay: 10 * ms, Queue: Queue{Bytes: lot}})
	now := time.Duration(0)
	step := func() {
		p := d.pool.get()
		p.n = 1500
		d.enqueue(now, p)
		for p := d.deliver(now); p != nil; p = d.deliver(now) {
			d.pool.put(p)
		}
		now += 100 * time.Microsecond
	}
	for range 1000 {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations per packet", n)
	}
}
