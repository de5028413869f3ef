package e2e

import (
	"strconv"
	"strings"
	"testing"
)

// TestBackground: a download of the class background leaves a link to another program that wants it. The log shows how
// long that program took, relative to its time alone; beside a download of the usual class, which takes its share, that
// would be two to four times as long.
func TestBackground(t *testing.T) {
	t.Parallel()
	sc := equal()
	sc.Congestion = "cubic"
	r := start(t, sc)
	large, o := r.object(100_000_000), r.object(5_000_000)
	direct := func() float64 {
		said := r.ok(r.client("curl", "-sS", "--interface", "wifi", "-o", "/dev/null", "-w", "%{time_total}", o.URL)).body
		seconds, err := strconv.ParseFloat(strings.TrimSpace(string(said)), 64)
		if err != nil {
			t.Fatal(err)
		}
		return seconds
	}
	carried := func() int64 {
		_, n := r.carried("wifi")
		return n
	}
	before := carried()
	alone := direct()
	own := carried() - before
	before = carried()
	f := r.getting("--background", "-o", r.file(), large.URL)
	r.until("the background download is under way", func() bool { return carried() > before+8e6 })
	before = carried()
	beside := direct()
	share := float64(carried()-before-own) / float64(own)
	t.Logf("%.2f of the time alone; the background download took %.0f %% of what the other one did", beside/alone, 100*share)
	if share > 0.5 {
		t.Errorf("the background download took %.0f %% of what the other one did", 100*share)
	}
	if err := f.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = f.cmd.Wait() // it is killed
}
