package netlab

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestUnits(t *testing.T) {
	var r BitRate
	for text, want := range map[string]BitRate{"80Mbit/s": 80e6, "500 kbit": 5e5, "1.5Gbit/s": 1.5e9, "7bit": 7} {
		if err := r.UnmarshalText([]byte(text)); err != nil || r != want {
			t.Errorf("%s: %v, %v", text, float64(r), err)
		}
	}
	for _, text := range []string{"", "80", "Mbit", "-1Mbit", "80MB", "x"} {
		if err := r.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is accepted as a rate", text)
		}
	}
	for text, want := range map[string]Bytes{"50MB": 5e7, "10kB": 10_000, "512KiB": 512 << 10, "7B": 7, "1.5MB": 1_500_000} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, b := range []Bytes{7, 10_000, 5e7, 512 << 10, 1 << 20, 1_500_001} {
		if got, err := ParseBytes(b.String()); err != nil || got != b {
			t.Errorf("%d prints as %s", b, b)
		}
	}
	var s Share
	if err := s.UnmarshalText([]byte("0.05%")); err != nil || s < 0.000499 || s > 0.000501 {
		t.Errorf("0.05%%: %v, %v", s, err)
	}
	if s.UnmarshalText([]byte("101%")) == nil || s.UnmarshalText([]byte("0.1")) == nil {
		t.Error("a wrong share is accepted")
	}
	var q Queue
	if err := q.UnmarshalText([]byte("100ms")); err != nil || q != (Queue{Time: 100 * time.Millisecond}) {
		t.Errorf("%+v, %v", q, err)
	}
	if err := q.UnmarshalText([]byte("64KiB")); err != nil || q != (Queue{Bytes: 64 << 10}) {
		t.Errorf("%+v, %v", q, err)
	}
	if q.UnmarshalText([]byte("0s")) == nil {
		t.Error("a queue of nothing is accepted")
	}
}

func TestParseScenario(t *testing.T) {
	dir := t.TempDir()
	var zipped bytes.Buffer
	zw := gzip.NewWriter(&zipped)
	_, _ = zw.Write([]byte("1\n2\n\n10\n"))
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "lte.gz"), zipped.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	sc, err := parse(`
about = "all keys"
seed = 7
congestion = "reno"
mptcp = true
objects = ["1MB"]

[[link]]
name = "wifi"
rate = "80Mbit/s"
rtt = "10ms"
jitter = "1ms"
loss = "1%"
queue = "50ms"
ramp = "2s"
up = { rate = "20Mbit/s", loss = "0%" }

[[link]]
name = "lte"
trace = "lte.gz"
rtt = "45ms"

[[event]]
at = "3s"
link = "lte"
what = "down"

[[event]]
at = "1.5s"
link = "wifi"
what = "shape"
rate = "1Mbit/s"
rtt = "30ms"
`, dir)
	if err != nil {
		t.Fatal(err)
	}
	wifi := sc.Links[0]
	want := Shape{
		Rate: 80 * Mbit, Delay: 5 * ms, Jitter: ms, Loss: 0.01, Queue: Queue{Time: 50 * ms}, Ramp: 2 * time.Second,
	}
	if wifi.Down != want {
		t.Errorf("down %+v, want %+v", wifi.Down, want)
	}
	want.Rate, want.Loss = 20*Mbit, 0
	if wifi.Up != want {
		t.Errorf("up %+v, want %+v", wifi.Up, want)
	}
	lte := sc.Links[1].Down
	if lte.Trace == nil || lte.Trace.Period() != 10*ms || lte.Trace.Mean() != 3.6*Mbit || lte.Delay != 22500*time.Microsecond {
		t.Errorf("lte %+v", lte)
	}
	if len(sc.Events) != 2 || sc.Events[0].What != EventShape || sc.Events[1].What != EventDown {
		t.Errorf("events are not in order: %+v", sc.Events)
	}
	s := wifi.Down
	sc.Events[0].apply(&s)
	if s.Rate != Mbit || s.Delay != 15*ms || s.Jitter != ms {
		t.Errorf("after the event: %+v", s)
	}
	if !sc.MPTCP || sc.Seed != 7 || sc.Congestion != "reno" || len(sc.Objects) != 1 {
		t.Errorf("%+v", sc)
	}
}

func TestScenarioErrors(t *testing.T) {
	link := "[[link]]\nname = \"wifi\"\nrate = \"1Mbit\"\n"
	for text, want := range map[string]string{
		"":                              "links",
		"[[link]]\nname = \"a\"\n":      "rate",
		link + link:                     "name of its own",
		link + "color = 1\n":            "unknown keys",
		link + "ramp = \"-1s\"\n":       "negative",
		link + "trace = \"missing.gz\"": "missing.gz",
		"objects = [\"0B\"]\n" + link:   "above 0",
		"[[link]]\nname = \"interface-name-too-long\"\nrate = \"1Mbit\"\n": "13",
		link + "[[event]]\nlink = \"lte\"\nwhat = \"up\"\n":                "no link",
		link + "[[event]]\nlink = \"wifi\"\nwhat = \"explode\"\n":          "want one of",
	} {
		if _, err := parse(text, t.TempDir()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

func TestReadTraceErrors(t *testing.T) {
	for _, text := range []string{"", "0\n", "5\n3\n", "1\nx\n", "-1\n"} {
		if _, err := ReadTrace(strings.NewReader(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestGeneratedTrace(t *testing.T) {
	tr, err := DefaultLTE(1).Generate()
	if err != nil {
		t.Fatal(err)
	}
	var text, again, other bytes.Buffer
	_, _ = tr.WriteTo(&text)
	same, _ := DefaultLTE(1).Generate()
	_, _ = same.WriteTo(&again)
	if !bytes.Equal(text.Bytes(), again.Bytes()) {
		t.Error("the same seed gives another trace")
	}
	differ, _ := DefaultLTE(2).Generate()
	_, _ = differ.WriteTo(&other)
	if bytes.Equal(text.Bytes(), other.Bytes()) {
		t.Error("another seed gives the same trace")
	}
	back, err := ReadTrace(&text)
	if err != nil || back.Mean() != tr.Mean() || back.Period() != time.Minute {
		t.Errorf("read back: %v, %v", back, err)
	}
	if mean := tr.Mean(); mean < 24*Mbit || mean > 44*Mbit {
		t.Errorf("mean %s, want a little below 40Mbit/s", mean)
	}
	first, gap := perSecond(tr, 0), uint32(0)
	if later := perSecond(tr, 4); first > later*3/4 {
		t.Errorf("no ramp: %d opportunities in the first second, %d in the fifth", first, later)
	}
	for i := 1; i < len(tr.ms); i++ {
		gap = max(gap, tr.ms[i]-tr.ms[i-1])
	}
	if gap < 50 {
		t.Errorf("no outage: the longest gap is %d ms", gap)
	}
}

func perSecond(tr *Trace, second uint32) int {
	n := 0
	for _, at := range tr.ms {
		if at/1000 == second {
			n++
		}
	}
	return n
}

func TestShippedTracesAreTheGeneratedOnes(t *testing.T) {
	for _, tt := range []struct {
		file, scenario string
		seed           uint64
		mean           BitRate
	}{{"lte-20.gz", "drive", 1, 20 * Mbit}, {"lte-10.gz", "fringe", 2, 10 * Mbit}} {
		shipped, err := LoadTrace("../../testdata/traces/" + tt.file)
		if err != nil {
			t.Fatal(err)
		}
		c := DefaultLTE(tt.seed)
		c.Length, c.Mean = 30*time.Second, tt.mean
		want, err := c.Generate()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(shipped.ms, want.ms) {
			t.Errorf("%s: write it anew: the command is in testdata/scenarios/%s.toml", tt.file, tt.scenario)
		}
	}
}
