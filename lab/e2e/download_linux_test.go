package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

func TestSchedulers(t *testing.T) {
	for _, tt := range []struct {
		scheduler string
		size      netlab.Bytes
		links     int // number of links that carry the object
	}{
		{"alg3", 20_000_000, 2},
		{"single", 5_000_000, 1},
	} {
		t.Run(tt.scheduler, func(t *testing.T) {
			r := newRig(t, shipped(t, "hs"), netlab.NginxOptions{})
			r.options.Scheduler = tt.scheduler
			r.serve()
			o := r.object(tt.size)
			r.download(o.URL, o)
			m := r.metrics()
			var links int
			for _, name := range r.lab.LinkNames() {
				got := m.Received(name)
				if _, size := r.carried(name); size < got {
					t.Errorf("%s brought %d bytes, but carried %d", name, got, size)
				} else if size > 100_000 {
					links++
				}
			}
			if links != tt.links {
				t.Errorf("%d links carried the object, want %d", links, tt.links)
			}
		})
	}
}

func TestMetricsAddUp(t *testing.T) {
	r := start(t, quick())
	var sum int64
	for _, size := range []netlab.Bytes{5_000_000, 3_000_000} {
		o := r.object(size)
		r.download(o.URL, o)
		sum += int64(size)
	}
	r.until("the transfers have ended", func() bool { return r.metrics()["tributary_transfers_running"] == 0 })
	m := r.metrics()
	var received, waste int64
	for _, name := range r.lab.LinkNames() {
		received, waste = received+m.Received(name), waste+m.Waste(name)
		if m.Received(name) == 0 {
			t.Errorf("%s brought nothing", name)
		}
	}
	if received != sum+waste {
		t.Errorf("received %d bytes, of which %d waste, for objects of %d", received, waste, sum)
	}
	if n := m[`tributary_transfers_total{result="ok"}`]; n != 2 {
		t.Errorf("%v transfers are counted as ok, want 2", n)
	}
	if status, text, err := r.proxy.Admin(r.ctx, "/healthz"); err != nil || status != http.StatusOK {
		t.Errorf("healthz: %d %q, %v", status, text, err)
	}
}

func TestForbiddenLinkCarriesNothing(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	r.options.Links = []string{"wifi"}
	counters := func() (rx, tx string, emulated int64) {
		statistics := "/sys/class/net/lte/statistics/"
		both := strings.Fields(string(r.ok(r.client("cat", statistics+"rx_packets", statistics+"tx_packets")).body))
		emulated, _ = r.carried("lte")
		return both[0], both[1], emulated
	}
	rx, tx, emulated := counters()
	r.serve()
	small, large := r.object(10_000), r.object(5_000_000)
	r.download(r.nginx.NamedURL(small), small)
	r.download(r.nginx.NamedURL(large), large)
	r.download(r.nginx.NamedURL(small), small, "--proxytunnel")
	if c := r.curl("--head", "http://no-such-name.lab/"); c.failed != nil {
		t.Error(c.said)
	}
	r.settle()
	rx2, tx2, emulated2 := counters()
	if emulated2 != emulated || rx2 != rx || tx2 != tx {
		t.Errorf("lte carried %d packets; its interface counted %s -> %s received, %s -> %s sent",
			emulated2-emulated, rx, rx2, tx, tx2)
	}
	for _, q := range r.dns.Queries() {
		if q.Link != "wifi" {
			t.Errorf("a query over %s: %+v", q.Link, q)
		}
	}
	if got := r.metrics().Received("wifi"); got < int64(large.Size) {
		t.Errorf("wifi brought %d bytes", got)
	}
}

func TestEachLinkAsksItsOwnDNS(t *testing.T) {
	r := start(t, quick())
	o := r.object(5_000_000)
	r.download(r.nginx.NamedURL(o), o)
	asked := map[string]bool{}
	for _, q := range r.dns.Queries() {
		if q.Name != netlab.OriginName {
			t.Errorf("asked for %+v", q)
		}
		asked[q.Link] = true
	}
	m := r.metrics()
	for _, name := range r.lab.LinkNames() {
		if !asked[name] || m.Received(name) == 0 {
			t.Errorf("%s: asked %v, brought %d bytes", name, asked[name], m.Received(name))
		}
	}
}

func TestIPv6(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	config := "[link.wifi]\ndns = [\"" + netlab.OriginAddr6.String() + "\"]\n" +
		"[link.lte]\ndns = [\"[" + netlab.OriginAddr6.String() + "]:53\"]\n"
	path := filepath.Join(r.lab.Dir, "config.toml")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	r.options.Args = []string{"--config", path}
	r.serve()
	o := r.object(5_000_000)
	both := func(t *testing.T, url string) {
		r := r.on(t)
		before := r.metrics()
		r.download(url, o)
		after := r.metrics()
		for _, name := range r.lab.LinkNames() {
			if after.Received(name) == before.Received(name) {
				t.Errorf("%s brought nothing", name)
			}
		}
	}
	literal := "http://[" + netlab.OriginAddr6.String() + "]/" + o.Size.String()
	t.Run("literal", func(t *testing.T) { both(t, literal) })
	t.Run("name, dual stack", func(t *testing.T) { both(t, r.nginx.NamedURL(o)) })
	for _, name := range r.lab.LinkNames() {
		r.ok(r.client("ip", "-4", "address", "flush", "dev", name))
	}
	t.Run("name, no IPv4", func(t *testing.T) { both(t, r.nginx.NamedURL(o)) })
	requests, err := r.nginx.Requests()
	if err != nil {
		t.Fatal(err)
	}
	if last := requests[len(requests)-1]; !strings.HasPrefix(last.Client, "fd77:") {
		t.Errorf("the last request came from %s", last.Client)
	}
}

// TestUnprivileged shows that sockets are bound to links without a capability (Linux 5.7, SO_BINDTODEVICE).
func TestUnprivileged(t *testing.T) {
	r := newRig(t, quick(), netlab.NginxOptions{})
	r.options.UID = 65534
	r.serve()
	status := string(r.read("/proc/" + pid(r) + "/status"))
	if !strings.Contains(status, "\nCapEff:\t0000000000000000\n") || !strings.Contains(status, "\nUid:\t65534\t65534") {
		t.Fatalf("the program has privileges:\n%s", status)
	}
	o := r.object(5_000_000)
	r.download(r.nginx.NamedURL(o), o)
	m := r.metrics()
	for _, name := range r.lab.LinkNames() {
		if m.Received(name) == 0 {
			t.Errorf("%s brought nothing", name)
		}
	}
}
