package e2e

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// player is a writer that takes a stream as it arrives, and notes how late the latest byte was.
type player struct {
	began   time.Time
	bitrate float64 // bytes per second
	startup time.Duration
	got     int64
	late    time.Duration
}

// Write implements io.Writer.
func (p *player) Write(b []byte) (int, error) {
	due := p.startup + time.Duration(float64(p.got)/p.bitrate*float64(time.Second)) // when the first byte of b is due
	p.late = max(p.late, time.Since(p.began)-due)
	p.got += int64(len(b))
	return len(b), nil
}

// TestStream: a stream of 4 Mbit/s misses no byte over LTE and Wi-Fi of 3 Mbit/s, and LTE carries at most 1.1 times what
// Wi-Fi cannot, in the median; over Wi-Fi of 6 Mbit/s LTE carries nothing. The player either requests the whole stream at
// once and starts after 2 s, or the stream is live: the player requests pieces of 2 s, one after the other, as soon as
// they exist, and plays each 4 s after that.
func TestStream(t *testing.T) {
	if !matrix() {
		t.Skip("a measurement of five minutes, for make matrix")
	}
	const bitrate, seconds, piece, behind = 4e6 / 8, 40, 2, 4 * time.Second
	for _, rate := range []netlab.BitRate{3 * netlab.Mbit, 6 * netlab.Mbit} {
		r := newRig(t, netlab.Scenario{Name: "stream", Links: []netlab.LinkSpec{
			netlab.Symmetric("wifi", rate, 20*time.Millisecond),
			netlab.Symmetric("lte", 20*netlab.Mbit, 50*time.Millisecond),
		}}, netlab.NginxOptions{})
		config := r.file() + ".toml"
		r.write(config, []byte("[link.lte]\nmetered = true\n"))
		r.options.Args = []string{"--config", config}
		r.serve()
		probe, all, part := r.object(3_000_000), r.object(bitrate*seconds), r.object(bitrate*piece)
		began := time.Now()
		r.ok(r.client("curl", "-sS", "-o", "/dev/null", "--interface", "wifi", probe.URL))
		wifi := float64(probe.Size) / time.Since(began).Seconds()
		missing := max(0, 1-wifi/bitrate)

		var lte []float64
		for range 3 {
			cmd := r.lab.Client(r.ctx, r.options.Binary, "get", "--config", config, "--link", "wifi", "--link", "lte", "--bitrate", "4Mbit/s", "-o", "-", r.nginx.NamedURL(all))
			cmd.Env = append(os.Environ(), "HOME="+r.lab.Dir)
			p := &player{began: time.Now(), bitrate: bitrate, startup: 2 * time.Second, late: -time.Hour}
			cmd.Stdout = p
			got := r.over(func() {
				if err := cmd.Run(); err != nil {
					t.Fatal(err)
				}
			})
			t.Logf("Wi-Fi of %v brings %.2f MB/s; a stream of %d s: %.2f s ahead at worst, LTE carried %.2f MB in packets, %.2f MB were missing", rate, wifi/1e6, seconds, -p.late.Seconds(), float64(got["lte"])/1e6, missing*float64(all.Size)/1e6)
			if p.got != int64(all.Size) || p.late > 0 {
				t.Errorf("%d bytes came, %v late", p.got, p.late)
			}
			lte = append(lte, float64(got["lte"]))
		}
		r.within(median(lte), missing*float64(all.Size))

		// Now the live stream.
		worst, live := time.Hour, time.Now()
		const pieces = seconds / piece
		got := r.over(func() {
			for i := range pieces {
				born := live.Add(time.Duration(i) * piece * time.Second)
				<-time.After(time.Until(born))
				due := time.Until(born.Add(behind))
				r.ok(r.curl("--fail", "-o", "/dev/null", "-H", fmt.Sprintf("Proxy-Tributary: within=%.3f", due.Seconds()), r.nginx.NamedURL(part)))
				worst = min(worst, time.Until(born.Add(behind)))
			}
		})
		t.Logf("live: %.2f s ahead at worst, LTE carried %.2f MB in packets, %.2f MB were missing", worst.Seconds(), float64(got["lte"])/1e6, missing*float64(all.Size)/1e6)
		if worst < 0 {
			t.Errorf("a piece was late by %v", -worst)
		}
		r.within(float64(got["lte"]), missing*float64(all.Size))
	}
}

// within fails the test if LTE carried more than 1.1 times the missing bytes. Headers and acknowledgments add 6 % to the
// content of its packets; if nothing was missing, LTE must not have carried any packet.
func (r *rig) within(lte, missing float64) {
	r.Helper()
	if lte > 1.1*1.06*missing {
		r.Errorf("LTE carried %.0f bytes, %.2f times what was missing", lte, lte/1.06/missing)
	}
}
