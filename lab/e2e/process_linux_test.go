package e2e

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tributary-http/tributary/lab/netlab"
)

func pid(r *rig) string { return strconv.Itoa(r.proxy.PID()) }

// downloading starts a curl that takes seconds, waits until bytes flow, and returns a channel that receives its result.
func downloading(r *rig, o netlab.Object) <-chan ran {
	r.Helper()
	done := make(chan ran, 1)
	go func() {
		out := r.lab.Client(r.ctx, "curl", "-sS", "--fail", "-x", proxyURL, o.URL)
		body, err := out.Output()
		done <- ran{body: body, failed: err}
	}()
	r.until("bytes flow", func() bool { m := r.metrics(); return m.Received("wifi")+m.Received("lte") > 1_000_000 })
	return done
}

func TestSIGTERMDrains(t *testing.T) {
	r := start(t, equal())
	o := r.object(10_000_000)
	done := downloading(r, o)
	if err := r.proxy.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.until("it drains", func() bool { return strings.Contains(r.proxy.Said(), "draining") })
	r.until("no new client gets in", func() bool { return r.curl("-o", "/dev/null", o.URL).code == 7 }) // cannot connect
	select {
	case <-done:
		t.Error("the download ended before the proxy was closed to others: the test shows nothing")
	default:
		r.isObject(r.ok(<-done).body, o)
	}
	if code, err := r.proxy.Wait(r.ctx); code != 0 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
}

func TestSecondSIGTERMEndsAtOnce(t *testing.T) {
	r := start(t, equal())
	r.stopped = true
	o := r.object(20_000_000)
	done := downloading(r, o)
	for _, said := range []string{"draining", "second signal"} {
		if err := r.proxy.Signal(unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
		r.until("it says "+said, func() bool { return strings.Contains(r.proxy.Said(), said) })
	}
	if code, err := r.proxy.Wait(r.ctx); code != 1 || err != nil {
		t.Errorf("exit code %d, %v, want 1", code, err)
	}
	if c := <-done; c.failed == nil || len(c.body) == int(o.Size) {
		t.Errorf("the client got %d of %d bytes and takes it for all: %v", len(c.body), o.Size, c.failed)
	}
}

func TestPortInUse(t *testing.T) {
	r := start(t, quick())
	for flag, argv := range map[string][]string{
		"--listen": {"--listen", netlab.ProxyAddr, "--admin", ""},
		"--admin":  {"--listen", "127.0.0.1:0", "--admin", netlab.AdminAddr},
	} {
		c := r.client(r.options.Binary, append([]string{"serve", "--link", "wifi"}, argv...)...)
		if c.code != 3 {
			t.Errorf("%s: exit code %d, want 3", flag, c.code)
		}
		for _, want := range []string{pid(r), "tributary", flag} {
			if !strings.Contains(c.said, want) {
				t.Errorf("%s: %q does not say %s", flag, c.said, want)
			}
		}
	}
}

// TestTunnelDiesWithItsLink shows that a CONNECT tunnel runs over one link and does not hang when that link goes down.
func TestTunnelDiesWithItsLink(t *testing.T) {
	const promised = 3 * time.Second
	r := start(t, equal())
	small, o := r.object(10_000), r.object(20_000_000)
	r.download(small.URL, small, "--proxytunnel")
	r.settle()
	before := map[string]int64{}
	for _, name := range r.lab.LinkNames() {
		_, before[name] = r.carried(name)
	}
	done := make(chan error, 1)
	cmd := r.lab.Client(r.ctx, "curl", "-sS", "--fail", "-o", "/dev/null", "-x", proxyURL, "--proxytunnel", o.URL)
	go func() { done <- cmd.Run() }()
	used := ""
	r.until("the tunnel carries bytes", func() bool {
		for _, name := range r.lab.LinkNames() {
			if _, size := r.carried(name); size-before[name] > 1_000_000 {
				used = name
			}
		}
		return used != ""
	})
	for _, name := range r.lab.LinkNames() {
		if _, size := r.carried(name); name != used && size != before[name] {
			t.Errorf("the tunnel runs over %s, but %s carried %d bytes", used, name, size-before[name])
		}
	}
	if err := r.lab.Link(used).Down(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	err := <-done
	if took := time.Since(began); took > promised {
		t.Errorf("the tunnel hung for %s", took)
	}
	if _, ok := err.(*exec.ExitError); !ok {
		t.Errorf("curl: %v, want a failure", err)
	}
	r.download(small.URL, small, "--proxytunnel") // over the other link
}
