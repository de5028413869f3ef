package parallel

import (
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

// path is a link as its connections see it: how much n of them deliver together, how long packets wait in front of it, and
// whether packets are lost.
type path struct {
	carries func(n int) float64 // bytes per second
	peak    float64             // best rate so far, bytes per second
	queue   func(n int) time.Duration
	lossy   bool
}

const megabyte = 1e6 // bytes per second

// steered samples the connections of a path for a while, and returns how many were wanted in each sample.
func steered(k *Controller, p path, d time.Duration, matters bool) (wanted []int) {
	const rtt = 20 * ms
	now, end := k.since, k.since.Add(d)
	var got, recent float64
	for now.Before(end) {
		now = now.Add(SampleEvery)
		rate := p.carries(k.N)
		got += rate * SampleEvery.Seconds()
		recent += (rate - recent) / 2
		for range k.N {
			link := Link{Got: int64(got), Recent: recent, Peak: p.peak, Working: k.N}
			if matters {
				link.Lasts = time.Minute
			}
			k.Sample(now, Sample{RTT: rtt + p.queue(k.N), Least: rtt, Holes: p.lossy, Link: link})
		}
		wanted = append(wanted, k.N)
	}
	return wanted
}

// each returns how much n connections carry if each carries a part of the link.
func each(part float64) func(int) float64 {
	return func(n int) float64 { return megabyte * min(1, part*float64(n)) }
}

func waits(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

func TestConnections(t *testing.T) {
	for _, c := range []struct {
		name   string
		path   path
		matter bool
		end    int // connections at the end
		more   int // samples with more than that, at most: trials
	}{
		{"a full link", path{each(1), megabyte, waits(60 * ms), false}, true, 1, 0},
		{"a full link whose queue overflows", path{each(1), megabyte, waits(60 * ms), true}, true, 1, 0},
		{"another download has half of the link", path{each(0.5), megabyte, waits(40 * ms), true}, true, 1, 0},
		{"losses slow one down", path{each(0.6), megabyte, waits(0), true}, true, 2, 0},
		{"losses slow three down", path{each(0.27), megabyte, waits(0), true}, true, 4, 0},
		{"never more than four", path{each(0.1), megabyte, waits(0), true}, true, 4, 0},
		{"losses slow nobody down (BBR)", path{each(0.95), megabyte, waits(0), true}, true, 1, 0},
		{"no losses: the origin sends no more", path{func(int) float64 { return megabyte / 2 }, megabyte, waits(0), false}, true, 1, 0},
		{"losses, but the origin sends no more", path{func(int) float64 { return megabyte / 2 }, megabyte, waits(0), true}, true, 1, 40},
		{"a link that decides nothing", path{each(0.3), megabyte, waits(0), true}, false, 1, 0},
		{"two fill the link", path{each(0.5), megabyte, func(n int) time.Duration { return time.Duration(n-1) * 30 * ms }, true}, true, 2, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := &Controller{}
			k.Begin(time.Unix(1000, 0), 1, Most, 1, 0)
			all := steered(k, c.path, 30*time.Second, c.matter)
			more := 0
			for _, n := range all {
				if n > c.end {
					more++
				}
			}
			if k.N != c.end || more > c.more || slices.Max(all) > Most {
				t.Errorf("%d connections at the end, want %d; %d samples with more: %v", k.N, c.end, more, all)
			}
			if k.Paid != 0 && int(k.Paid) != c.end {
				t.Errorf("learned %d, want %d", k.Paid, c.end)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		k := &Controller{}
		k.Begin(time.Unix(1000, 0), 1, Most, 1, 0)
		lossy := path{each(0.3), megabyte, waits(0), true}
		steered(k, lossy, 3*time.Second, true)
		if k.N < 2 {
			t.Fatal("tried no second one")
		}
		k.Refused()
		for _, n := range steered(k, lossy, 10*time.Second, true) {
			if n != 1 {
				t.Fatalf("%d after a refusal", n)
			}
		}
	})
	t.Run("a trial that is interrupted begins again", func(t *testing.T) {
		k := &Controller{}
		k.Begin(time.Unix(1000, 0), 1, Most, 1, 0)
		lossy := path{each(0.6), megabyte, waits(0), true}
		for i := 0; k.phase != trying; i++ {
			k.Begin(time.Unix(1000, 0), 1, Most, 1, 0)
			steered(k, lossy, time.Duration(i)*SampleEvery, true)
		}
		k.Interrupted(k.since.Add(time.Hour), 0) // the link carried nothing for an hour
		if steered(k, lossy, 10*time.Second, true); k.N != 2 {
			t.Errorf("%d connections", k.N)
		}
	})
}
