package schedule_test

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
)

// play asks a goal every 100 ms about a download of 30 MB in which Wi-Fi delivers 375 kB/s (3 Mbit/s), and LTE 2.5 MB/s while it is
// awake. It returns the goal's verdicts on LTE at the given moments.
func play(t *testing.T, d *schedule.Deadline, at ...time.Duration) (said []schedule.Spared) {
	t.Helper()
	const size, wifi, lte, step = 30e6, 375e3, 2.5e6, 100 * time.Millisecond
	v := wifiAndLTE(t, size)
	v.Free[0].Start, v.Attempts = 0, nil
	for now := time.Duration(0); len(said) < len(at); now += step {
		v.Links[1].Usable, v.Links[1].Spared = true, schedule.NotSpared
		again := d.Spare(start.Add(now), v)
		if v.Links[0].Spared != schedule.NotSpared || again.Sub(start) <= now {
			t.Fatalf("after %v: Wi-Fi %q, again at %v", now, v.Links[0].Spared, again)
		}
		if now == at[len(said)] {
			said = append(said, v.Links[1].Spared)
		}
		v.Links[0].Got += int64(wifi * step.Seconds())
		if v.Links[1].Usable {
			v.Links[1].Got += int64(lte * step.Seconds())
		}
		v.Free[0].Start = v.Links[0].Got + v.Links[1].Got
		v.Limit, v.Window = 1<<50, 1<<50 // as for a file: no byte waits for its turn
	}
	return said
}

// A stream of 4 Mbit/s, 500 kB/s, that starts after 2 s ends after 62 s. Wi-Fi delivers 375 kB/s * 61.5 s = 23.1 MB of 30 MB, so
// LTE is woken as soon as that is known, after 0.5 s. It delivers the missing 6.9 MB, and 2 % of the bytes that Wi-Fi still has to
// deliver, in less than 3 s: with both 2.875 MB/s, 29.8 MB - 2.875 MB/s * t = 0.98 * 0.375 MB/s * (61 s - t) after t = 2.9 s.
func TestDeadlineWakesAndSleeps(t *testing.T) {
	said := play(t, &schedule.Deadline{Bitrate: 500e3, Startup: 2 * time.Second}, 0, 400*time.Millisecond, 600*time.Millisecond,
		3*time.Second, 3800*time.Millisecond, 20*time.Second, 55*time.Second)
	want := []schedule.Spared{schedule.TooEarly, schedule.TooEarly, schedule.NotSpared, schedule.NotSpared, schedule.InTime, schedule.InTime, schedule.InTime}
	for i := range want {
		if said[i] != want[i] {
			t.Fatalf("LTE: %q, want %q", said, want)
		}
	}
}

// 30 MB at 375 kB/s take 80 s.
func TestDeadlineWithin(t *testing.T) {
	for within, want := range map[time.Duration]schedule.Spared{90 * time.Second: schedule.InTime, 70 * time.Second: schedule.NotSpared} {
		if said := play(t, &schedule.Deadline{Within: within}, time.Second); said[0] != want {
			t.Errorf("within %v, LTE: %q, want %q", within, said, want)
		}
	}
}

func TestDeadline(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(v *schedule.View)
		want   schedule.Spared
	}{
		{"in time", func(*schedule.View) {}, schedule.InTime},
		{"the first link is lost", func(v *schedule.View) { v.Links[0].Usable = false }, schedule.NotSpared},
		{"it is silent", func(v *schedule.View) { v.Links[0].Usable, v.Links[0].Suspect = false, true }, schedule.InTime},
		{"a full window", func(v *schedule.View) { v.Limit = v.Free[0].Start }, schedule.NoRoom},
		{"LTE is not optional", func(v *schedule.View) { v.Links[1].Optional = false }, schedule.NotSpared},
	} {
		d := &schedule.Deadline{Within: time.Minute}
		var said schedule.Spared
		for now := time.Duration(0); now <= time.Second; now += 100 * time.Millisecond {
			v := wifiAndLTE(t, 10e6)
			v.Links[0].Got = int64(2e6 * now.Seconds())
			c.change(v)
			d.Spare(start.Add(now), v)
			said = v.Links[1].Spared
		}
		if said != c.want {
			t.Errorf("%s: %q, want %q", c.name, said, c.want)
		}
	}
	v := wifiAndLTE(t, 10e6)
	d := &schedule.Deadline{Bitrate: 1e6}
	now := start
	if n := testing.AllocsPerRun(100, func() {
		now = now.Add(time.Second)
		v.Links[1].Usable = true
		d.Spare(now, v)
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
