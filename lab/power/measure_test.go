package power_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/lab/power"
)

// sysfs is a folder like /sys/class.
type sysfs string

func (s sysfs) set(t *testing.T, attribute, text string) {
	t.Helper()
	name := filepath.Join(string(s), attribute)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// battery adds a battery that delivers this power at 3.85 V.
func (s sysfs) battery(t *testing.T, watts float64) {
	s.set(t, "power_supply/BAT0/type", "Battery")
	s.set(t, "power_supply/BAT0/status", "Discharging")
	s.set(t, "power_supply/BAT0/voltage_now", "3850000")
	s.set(t, "power_supply/BAT0/current_now", fmt.Sprintf("%.0f", -watts/3.85*1e6)) // negative, as on phones
	s.set(t, "power_supply/BAT0/current_avg", fmt.Sprintf("%.0f", -watts/3.85*1e6))
}

func find(t *testing.T, s sysfs) power.Source {
	t.Helper()
	source, err := power.Find(string(s))
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func within(t *testing.T, what string, got, want, part float64) {
	t.Helper()
	if math.Abs(got-want) > part*math.Abs(want) {
		t.Errorf("%s: %.4g, want %.4g within %g %%", what, got, want, 100*part)
	}
}

// show calls f right before each moment at which something may be read, until the returned function is called.
func show(every time.Duration, f func(at time.Duration)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	begin := time.Now()
	f(0)
	wg.Go(func() {
		for next := every; ctx.Err() == nil; next += every {
			time.Sleep(next - time.Millisecond - time.Since(begin))
			f(next)
		}
	})
	return func() { cancel(); wg.Wait() }
}

// The power of a battery: 0.7 W for 10 s, then a command of 24.6 s that takes 2 W more, rising with a time constant of 2 s, plus
// a wave with a period of 12 s and an amplitude of 0.8 W, then a tail that decays to 0.7 W with a time constant of 5 s.
//
// Main: 0.7 * 24.6 + 2 * (24.6 - 2 * (1 - e^(-24.6/2))) + 0.8 * 12/(2 pi) * (1 - cos(2 pi * 24.6/12)) = 17.22 + 45.20 + 0.075
// = 62.495 J; its peak, 15 s after its begin, is 3.5 W, and it ends at 2.7 + 0.8 * sin(2 pi * 24.6/12) = 2.9472 W.
// Tail: 0.7 * 15 + 2.2472 * 5 * (1 - e^(-15/5)) = 10.5 + 10.677 = 21.177 J.
func TestMeasureBattery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sysfs(t.TempDir())
		const idle, main, tail = 10.0, 24.6, 15.0
		curve := func(at float64) float64 {
			switch run := at - idle; {
			case run < 0:
				return 0.7
			case run <= main:
				return 0.7 + 2*(1-math.Exp(-run/2)) + 0.8*math.Sin(2*math.Pi*run/12)
			default:
				return 0.7 + 2.2472*math.Exp(-(run-main)/5)
			}
		}
		stop := show(100*time.Millisecond, func(at time.Duration) { s.battery(t, curve(at.Seconds())) })
		defer stop()
		o := power.Options{Source: find(t, s), Every: time.Second, Idle: seconds(idle), Tail: seconds(tail)}
		r, err := power.Measure(t.Context(), o, func(context.Context) error {
			time.Sleep(seconds(main))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		within(t, "idle", r.IdleWatts, 0.7, 0.005)
		within(t, "main", r.Main.Joules, 62.495, 0.005)
		within(t, "main, by averages", r.Main.AverageJoules, 62.495, 0.005)
		within(t, "main, net", r.Main.NetJoules, 62.495-0.7*main, 0.005)
		within(t, "main, seconds", r.Main.Seconds, main, 0.0001)
		within(t, "main, peak", r.Main.PeakWatts, 3.5, 0.005)
		within(t, "tail", r.Tail.Joules, 21.177, 0.005)
		within(t, "tail, net", r.Tail.NetJoules, 21.177-0.7*tail, 0.005)
		within(t, "tail, seconds", r.Tail.Seconds, tail, 0.0001)
		if !strings.Contains(r.Source, "BAT0") || r.Main.Samples < 25 {
			t.Errorf("%+v", r)
		}
	})
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// RAPL is a counter, so its joules are exact for any curve, even when the counter wraps around.
func TestMeasureRAPL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sysfs(t.TempDir())
		s.set(t, "powercap/intel-rapl:0/name", "package-0")
		s.set(t, "powercap/intel-rapl:0/max_energy_range_uj", "100000000")
		s.set(t, "powercap/intel-rapl:0:0/name", "core") // part of the package
		s.set(t, "powercap/intel-rapl:0:0/energy_uj", "1")
		stop := show(100*time.Millisecond, func(at time.Duration) { // 5 W, and 20 W from 4 s on, by a counter that wraps at 100 J
			joules := math.Mod(90+5*min(at.Seconds(), 4)+20*max(at.Seconds()-4, 0), 100)
			s.set(t, "powercap/intel-rapl:0/energy_uj", fmt.Sprintf("%.0f", joules*1e6))
		})
		defer stop()
		source := find(t, s)
		r, err := power.Measure(t.Context(), power.Options{Source: source, Every: time.Second, Idle: 4 * time.Second}, func(context.Context) error {
			time.Sleep(7300 * time.Millisecond)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		within(t, "idle", r.IdleWatts, 5, 0.005)
		within(t, "main", r.Main.Joules, 20*7.3, 0.005)
		within(t, "median", r.Main.MedianWatts, 20, 0.005)
		if !strings.Contains(r.Source, "without radios") || !strings.Contains(r.Source, "there is no battery") {
			t.Errorf("the report does not say what was read instead: %s", r.Source)
		}
	})
}

// A failing command is measured anyway; without a reading the measurement fails and the command is stopped.
func TestMeasureFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sysfs(t.TempDir())
		s.battery(t, 2)
		o := power.Options{Source: find(t, s), Every: time.Second, Tail: time.Second}
		failed := errors.New("exit status 3")
		r, err := power.Measure(t.Context(), o, func(context.Context) error {
			time.Sleep(5 * time.Second)
			return failed
		})
		if !errors.Is(err, failed) || math.Abs(r.Main.Joules-10) > 0.01 || math.Abs(r.Tail.Joules-2) > 0.01 {
			t.Errorf("%+v, %v", r, err)
		}
		ended := false
		_, err = power.Measure(t.Context(), o, func(ctx context.Context) error {
			if err := os.Remove(filepath.Join(string(s), "power_supply/BAT0/voltage_now")); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			ended = true
			return ctx.Err()
		})
		if !errors.Is(err, fs.ErrNotExist) || !ended {
			t.Errorf("%v, command ended: %v", err, ended)
		}
	})
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		what, want string // part of the error or the source
		err        error
		set        map[string]string
	}{
		{"nothing", "no package of intel-rapl", power.ErrNone, nil},
		{"what to do then", "tributary power --pcap", power.ErrNone, map[string]string{"power_supply/AC/type": "Mains"}},
		{"a mouse", "lists no battery", power.ErrNone, map[string]string{"power_supply/hid/type": "Battery", "power_supply/hid/scope": "Device"}},
		{"charging", "unplug the charger", nil, map[string]string{"power_supply/B/type": "Battery", "power_supply/B/status": "Charging"}},
		{"two batteries", "B0 and B1", nil, map[string]string{
			"power_supply/B0/type": "Battery", "power_supply/B0/status": "Discharging", "power_supply/B0/power_now": "4000000",
			"power_supply/B1/type": "Battery", "power_supply/B1/status": "Not charging", "power_supply/B1/power_now": "0",
		}},
		{"the whole board", "psys", nil, map[string]string{
			"powercap/intel-rapl:0/name": "package-0", "powercap/intel-rapl:0/energy_uj": "1", "powercap/intel-rapl:0/max_energy_range_uj": "9",
			"powercap/intel-rapl:1/name": "psys", "powercap/intel-rapl:1/energy_uj": "1", "powercap/intel-rapl:1/max_energy_range_uj": "9",
		}},
	} {
		s := sysfs(t.TempDir())
		for attribute, text := range c.set {
			s.set(t, attribute, text)
		}
		source, err := power.Find(string(s))
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = source.String()
		}
		if !strings.Contains(got, c.want) || c.err != nil && !errors.Is(err, c.err) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		if c.what == "two batteries" {
			if r, err := source.Read(time.Now()); err != nil || r.Watts != 4 {
				t.Errorf("two batteries give %+v, %v", r, err)
			}
		}
	}
}

// The full load ends with its context.
func TestFullLoad(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- power.FullLoad(ctx) }()
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
