package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/core/energy"
	"github.com/tributary-http/tributary/internal/net/trace"
	"github.com/tributary-http/tributary/lab/netlab"
)

// written returns the path of a new file with the given content.
func written(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// rateTraces returns traces of 8 Mbit/s for a second, then 4 Mbit/s for a second, in each format.
func rateTraces(t *testing.T) []string {
	var recorded bytes.Buffer
	l := trace.Link{Name: "wifi", Down: []int64{0, 0, 0}, Up: []int64{100}} // the handshake
	for i := range 20 {
		l.Down = append(l.Down, map[bool]int64{true: 100_000, false: 50_000}[i < 10])
	}
	record := trace.Trace{Began: time.Now(), Step: trace.Step, Links: []trace.Link{{Name: "idle"}, l}}
	if err := record.Write(&recorded); err != nil {
		t.Fatal(err)
	}
	var opportunities []uint32
	for ms := range uint32(2000) { // 1500 bytes carry 1448: 8 Mbit/s of content are 0.69 a ms
		per := 1e6 / 1448 / 1000.
		if ms >= 1000 {
			per /= 2
		}
		for range int(per*float64(ms+1)) - int(per*float64(ms)) {
			opportunities = append(opportunities, ms+1)
		}
	}
	if opportunities[len(opportunities)-1] != 2000 {
		opportunities = append(opportunities, 2000)
	}
	made, err := netlab.NewTrace(opportunities)
	if err != nil {
		t.Fatal(err)
	}
	var mahimahi bytes.Buffer
	if _, err := made.WriteTo(&mahimahi); err != nil {
		t.Fatal(err)
	}
	return []string{
		written(t, "a.csv", "seconds,mbit_per_s\n0,8\n1,4\n"),
		written(t, "b.csv", "bytes, seconds\n1000000, 0\n500000, 1\n"),
		written(t, "c.json", recorded.String()) + "#wifi",
		written(t, "d.trace", mahimahi.String()),
	}
}

// TestReadTrace: a trace is the same in each format.
func TestReadTrace(t *testing.T) {
	for _, file := range rateTraces(t) {
		links, err := readTrace(file)
		if err != nil || len(links) != 1 {
			t.Errorf("%s: %v, %v", file, links, err)
			continue
		}
		var length time.Duration
		for _, r := range links[0].rates {
			if want := map[bool]float64{true: 1e6, false: 0.5e6}[length < time.Second]; math.Abs(r.Rate-want) > 0.03*want {
				t.Errorf("%s: %.0f bytes/s at %v, want %.0f", file, r.Rate, length, want)
			}
			length += r.For
		}
		if length != 2*time.Second {
			t.Errorf("%s lasts %v", file, length)
		}
	}
	for _, c := range []struct{ name, text, want string }{
		{"x.csv", "seconds,mbit_per_s\n0,8\n", "two rows"},
		{"x.csv", "seconds,rate\n0,8\n1,8\n", "must name the columns"},
		{"x.csv", "seconds,bytes,mbit_per_s\n0,8,8\n1,8,8\n", "must name the columns"},
		{"x.csv", "seconds,bytes\n0,8\n1,-8\n", `line 3: want a number`},
		{"x.csv", "seconds,bytes\n0,8\n0,8\n", "line 3: want a time"},
		{"x.csv", "seconds,bytes\n0,0\n1,0\n", "carries nothing"},
		{"x.json", "{}", "not a trace"},
		{"x.trace", "1\nx\n", "line 2"},
	} {
		if _, err := readTrace(written(t, c.name, c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
	all := rateTraces(t)
	for _, arg := range []string{strings.Replace(all[2], "#wifi", "#lte", 1), all[0] + "#wifi", "none.csv"} {
		if _, err := readTrace(arg); err == nil {
			t.Errorf("%s is read", arg)
		}
	}
}

// TestReplay: two links of 6 Mbit/s on average carry 6 MB in 4 s, and every scheme takes the time that arithmetic
// predicts.
func TestReplay(t *testing.T) {
	all := rateTraces(t)
	o := replayOptions{
		traces: all[:2], rtts: []time.Duration{20 * time.Millisecond}, size: "6MB", window: "16MiB",
		radios: []string{firstRadio, otherRadios}, schemes: []string{"confluence", "naive", "optimal", "frugal"},
	}
	rows, err := replay(o)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]replayRow{}
	for _, r := range rows {
		got[r.Scheme] = r
		sum := int64(0)
		for _, l := range r.Links {
			sum += l.Bytes
		}
		if sum-r.Waste != 6e6 {
			t.Errorf("%s: links bring %d bytes, %d of them for nothing", r.Scheme, sum, r.Waste)
		}
	}
	for name, want := range map[string]float64{"limit": 4, "a alone": 8, "b alone": 8, "confluence": 4, "naive": 4, "optimal": 4, "frugal": 4.7} {
		r, ok := got[name]
		// A link that starts late has 4 Mbit/s at the end; frugal wakes the second one when the rate of the first is known.
		if !ok || math.Abs(r.Seconds-want) > 0.5 {
			t.Errorf("%s: %+v, want %.0f s", name, r, want)
		}
		if d := r.Share*r.Seconds - got["limit"].Seconds; math.Abs(d) > 1e-6 {
			t.Errorf("%s: %.2f of the limit in %.2f s", name, r.Share, r.Seconds)
		}
	}
	// Wi-Fi at -60 dBm takes 0.2812 W and 0.185 W for 0.21 s, 0.039 J, of tail, LTE at -100 dBm 1.5355 W and 2.015 J for
	// promotion and tail, the waiting phone 0.7 W. A link that also sends its acknowledgments takes up to a fifth more.
	for name, want := range map[string]float64{
		"limit": 4*(0.7+0.2812+1.5355) + 0.039 + 2.015, "a alone": 8*(0.7+0.2812) + 0.039, "b alone": 8*(0.7+1.5355) + 2.015,
		"optimal": 4*(0.7+0.2812+1.5355) + 0.039 + 2.015,
		"frugal":  4*(0.7+0.2812+1.5355) + 0.039 + 2.015, // Wi-Fi is so slow that LTE is worth waking
	} {
		r := got[name]
		if r.Joules < 0.95*want || r.Joules > 1.15*want {
			t.Errorf("%s: %.2f J, want %.2f: %+v", name, r.Joules, want, r.Links)
		}
		radios := energy.AwakeWatts * r.Seconds
		for _, l := range r.Links {
			radios += l.RadioJoules
		}
		if math.Abs(radios-r.Joules) > 1e-9 {
			t.Errorf("%s: %.3f J, its parts are %.3f", name, r.Joules, radios)
		}
	}
	if tail := got["limit"].Tail; tail < 5 || tail > 9 { // both at 4 Mbit/s for half of the time
		t.Errorf("tail of the limit: %.1f Mbit/s", tail)
	}
	again, err := replay(o)
	a, _ := json.Marshal(rows)
	if b, _ := json.Marshal(again); err != nil || !bytes.Equal(a, b) {
		t.Errorf("another result for the same traces: %s and %s, %v", a, b, err)
	}

	shares := o
	shares.traces, shares.shares, shares.schemes = nil, "3Mbit/s", []string{"dynamic"}
	rows, err = replay(shares)
	if err != nil || math.Abs(rows[0].Seconds-16) > 0.5 { // 48 Mbit
		t.Errorf("moving shares: %+v, %v", rows, err)
	}
	for _, c := range []struct {
		want   string
		change func(o *replayOptions)
	}{
		{"--trace or --shares", func(o *replayOptions) { o.traces = nil }},
		{"--trace or --shares", func(o *replayOptions) { o.shares = "3Mbit/s" }},
		{"--size", func(o *replayOptions) { o.size = "0B" }},
		{"--window", func(o *replayOptions) { o.window = "1kB" }},
		{"--rtt", func(o *replayOptions) { o.rtts = []time.Duration{0} }},
		{"--radio", func(o *replayOptions) { o.radios = nil }},
		{"--radio: unknown device", func(o *replayOptions) { o.radios = []string{"brick/wifi"} }},
		{"unknown scheduler", func(o *replayOptions) { o.schemes = []string{"fast"} }},
		{"--least", func(o *replayOptions) { o.traces, o.shares, o.least = nil, "3Mbit/s", "2Mbit/s" }},
	} {
		bad := o
		c.change(&bad)
		if _, err := replay(bad); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}
