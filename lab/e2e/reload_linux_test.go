package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

// configure writes the file that the program reads.
func (r *rig) configure(text string) {
	r.Helper()
	dir := filepath.Join(r.lab.Dir, "tributary")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o644); err != nil {
		r.Fatal(err)
	}
}

// reload sends SIGHUP and waits until the log contains says for the nth time.
func (r *rig) reload(says string, nth int) {
	r.Helper()
	if err := r.proxy.Signal(unix.SIGHUP); err != nil {
		r.Fatal(err)
	}
	r.until("it says "+says, func() bool { return strings.Count(r.proxy.Said(), says) >= nth })
}

// TestReload changes the configuration of the running program by SIGHUP.
func TestReload(t *testing.T) {
	const both = "[link.wifi]\nenabled = true\n[link.lte]\nenabled = true\n" // they are tunnels, which are not links unless enabled
	const closing = 20_000                                                   // bytes that closing connections may still carry
	r := newRig(t, quick(), netlab.NginxOptions{})
	r.options.Links = []string{}
	r.preferBridge()
	r.configure(both)
	r.serve()
	o := r.object(10_000_000)
	r.isObject(r.ok(r.curl(o.URL)).body, o)
	lte := r.metrics().Received("lte")
	if lte == 0 {
		t.Fatal("the second link carried nothing")
	}

	r.configure("[link.wifi]\nenabled = true\n[link.lte]\nenabled = false\n")
	r.reload("msg=reloaded", 1)
	_, before := r.carried("lte")
	r.isObject(r.ok(r.curl(o.URL)).body, o)
	if _, after := r.carried("lte"); after > before+closing {
		t.Errorf("the disabled link carried %d bytes", after-before)
	}

	r.configure(both + "budget = 1\n")
	r.reload("not reloaded", 1)
	r.configure(both + "[admin]\n")
	r.reload("not reloaded", 2)
	r.isObject(r.ok(r.curl(o.URL)).body, o)
	if _, after := r.carried("lte"); after > before+closing {
		t.Errorf("a configuration with a fault was taken on: the disabled link carried %d bytes", after-before)
	}

	r.configure(`log_level = "debug"` + "\n" + both)
	r.reload("msg=reloaded", 2)
	r.isObject(r.ok(r.curl(o.URL)).body, o)
	if after := r.metrics().Received("lte"); after <= lte {
		t.Error("the link that is enabled again carries nothing")
	}
}

// TestMaxRate limits one link and removes the limit by a reload.
func TestMaxRate(t *testing.T) {
	const (
		rate  = 500_000 // bytes per second: 4Mbit/s
		slack = 600_000 // unread bytes in the kernel, headers, handshakes
		both  = "[link.wifi]\nenabled = true\n[link.lte]\nenabled = true\n"
	)
	r := newRig(t, equal(), netlab.NginxOptions{})
	r.options.Links = []string{}
	r.preferBridge()
	r.configure(both + `max_rate = "4Mbit/s"` + "\n")
	r.serve()
	o := r.object(10_000_000)

	began := time.Now()
	r.isObject(r.ok(r.curl(o.URL)).body, o)
	took := time.Since(began).Seconds()
	_, n := r.carried("lte")
	if most := int64(rate*took) + slack; n > most {
		t.Errorf("%d bytes in %.2f s over a link that may carry %d", n, took, most)
	}
	if least := int64(rate * took / 3); n < least {
		t.Errorf("the slow link carried %d bytes in %.2f s, it may have: %d", n, took, int64(rate*took))
	}

	r.configure(both)
	r.reload("msg=reloaded", 1)
	_, before := r.carried("lte")
	r.isObject(r.ok(r.curl(o.URL)).body, o)
	if _, after := r.carried("lte"); after-before < 2*n {
		t.Errorf("%d bytes over the link without a limit, %d before", after-before, n)
	}
}

// TestStatus asks the running program over its control socket.
func TestStatus(t *testing.T) {
	r := start(t, equal())
	o := r.object(10_000_000)
	done := downloading(r, o)
	cmd := r.lab.Client(r.ctx, r.options.Binary, "status", "--json")
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+r.lab.Dir, "XDG_CONFIG_HOME="+r.lab.Dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		PID       int
		Transfers []struct {
			Size  int64
			Links []struct{ Link string }
		}
		Links []struct{ Name, State string }
	}
	if err := json.Unmarshal(out, &s); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if s.PID != r.proxy.PID() || len(s.Transfers) != 1 || s.Transfers[0].Size != 10_000_000 || len(s.Links) != 2 || s.Links[0].State != "up" {
		t.Errorf("%s", out)
	}
	r.isObject(r.ok(<-done).body, o)
}
