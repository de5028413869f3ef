package e2e

import (
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestDeadline: tributary get with a bitrate or a time uses the metered link for the bytes that Wi-Fi cannot deliver in
// time, and not at all if Wi-Fi can deliver everything. The simulator tests the exact amount, since rates on a busy
// machine vary.
func TestDeadline(t *testing.T) {
	t.Parallel()
	r := newRig(t, netlab.Scenario{Name: "deadline", Links: []netlab.LinkSpec{
		netlab.Symmetric("wifi", 12*netlab.Mbit, 20*time.Millisecond),
		netlab.Symmetric("lte", 40*netlab.Mbit, 50*time.Millisecond),
	}}, netlab.NginxOptions{})
	config := r.file() + ".toml"
	r.write(config, []byte("[link.lte]\nmetered = true\n"))
	o := r.object(9_000_000) // 6 s over Wi-Fi
	lte := func(flag, value string) (bytes int64, spared string) {
		f := r.getting("--config", config, "--json", flag, value, "-o", r.file(), r.nginx.NamedURL(o))
		f.ended(0)
		for _, l := range f.report().Links {
			if l.Name == "lte" {
				return l.Bytes, l.Spared
			}
		}
		return 0, ""
	}
	for _, c := range []struct {
		flag, value string
		needed      bool
	}{
		{"--within", "60s", false},
		{"--bitrate", "3Mbit/s", false},
		{"--bitrate", "16Mbit/s", true}, // Wi-Fi delivers three quarters
		{"--within", "5s", true},
	} {
		n, spared := lte(c.flag, c.value)
		if (n > int64(o.Size)/part) != c.needed || !c.needed && spared == "" {
			t.Errorf("%s %s: LTE carried %d bytes of %d, %q", c.flag, c.value, n, o.Size, spared)
		}
		t.Logf("%s %s: LTE carried %.2f MB", c.flag, c.value, float64(n)/1e6)
	}
}
