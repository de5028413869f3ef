package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestRelayLossy: a lane sends with BBR once its link loses packets. A lane whose link loses none keeps the system's congestion
// control.
func TestRelayLossy(t *testing.T) {
	known, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(strings.Fields(string(known)), "bbr") {
		t.Skip("this kernel has no BBR")
	}
	scenario := equal()
	scenario.Congestion = "cubic"
	scenario.Links[1].Down.Queue.Time = 2 * time.Second // never full, however busy this machine is
	r := newRig(t, scenario, netlab.NginxOptions{})
	r.relayed()
	if err := r.lab.Link("wifi").Update(func(down, _ *netlab.Shape) { down.Loss = 0.01 }); err != nil {
		t.Fatal(err)
	}
	cert, err := r.lab.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	// A link may get more lanes while it is busy, and those that carry next to nothing have no reason to change.
	control := func(link string) (of string) {
		out, err := r.lab.Server(r.ctx, "ss", "-tinHO", "sport", "=", fmt.Sprintf(":%d", relayPort)).Output()
		if err != nil {
			t.Fatal(err)
		}
		most := int64(-1)
		for line := range strings.Lines(string(out)) {
			if !strings.Contains(line, r.lab.Link(link).Addr().String()+":") {
				continue
			}
			words := strings.Fields(line)
			sent := int64(0)
			for _, w := range words {
				if n, ok := strings.CutPrefix(w, "bytes_acked:"); ok {
					sent, _ = strconv.ParseInt(n, 10, 64)
				}
			}
			for _, name := range []string{"bbr", "cubic"} {
				if sent > most && slices.Contains(words, name) {
					of, most = name, sent
				}
			}
		}
		if of == "" {
			t.Fatalf("no lane over %s: %s", link, out)
		}
		return of
	}
	for _, name := range r.lab.LinkNames() {
		if c := control(name); c != "cubic" {
			t.Fatalf("the lane over %s begins with %s", name, c)
		}
	}
	o := r.object(20_000_000)
	r.isObject(r.ok(r.client("curl", "-sS", "--fail", "-x", proxyURL, "--cacert", cert.CA, "--connect-to", "::"+relayedAddr+":", r.nginx.SecureURL(o))).body, o)
	if wifi, lte := control("wifi"), control("lte"); wifi != "bbr" || lte != "cubic" {
		t.Errorf("the busiest lane with losses sends with %s, the one without with %s", wifi, lte)
	}
}
