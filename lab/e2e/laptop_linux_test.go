package e2e

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSuspend stops the program in the middle of a download, as a suspend does: the links go down, the origin gives up
// the connections, time passes, the links come back, and the program continues as if nothing had happened.
func TestSuspend(t *testing.T) {
	t.Parallel()
	r := start(t, equal())
	o := r.object(15_000_000)
	done := downloading(r, o)
	if err := r.proxy.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	links := r.lab.Links()
	for _, l := range links {
		if err := l.Down(); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.nginx.ResetConnections(); err != nil {
		t.Logf("the origin keeps its connections: %v", err)
	}
	select { // the time asleep: longer than every timeout except the last
	case <-done:
		t.Fatal("the download ended before the program was stopped: the test shows nothing")
	case <-time.After(4 * time.Second):
	}
	var err error
	for _, l := range links {
		err = errors.Join(err, l.Up())
	}
	if err = errors.Join(err, r.proxy.Signal(unix.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	r.isObject(r.ok(<-done).body, o)
}

// TestRoaming gives a link another address in the middle of a download, as a change of the Wi-Fi network does: the link
// leaves and joins again, from the new address.
func TestRoaming(t *testing.T) {
	t.Parallel()
	r := start(t, equal())
	o := r.object(20_000_000)
	done := downloading(r, o)
	const move = "ip addr del 10.77.1.2/24 dev wifi && ip addr add 10.77.1.7/24 dev wifi && " +
		"ip route replace default via 10.77.1.1 dev wifi metric 100"
	if out, err := r.lab.Client(r.ctx, "sh", "-c", move).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", move, err, out)
	}
	before := r.metrics().Received("wifi")
	r.until("the link carries from its new address", func() bool { return r.metrics().Received("wifi") > before+1_000_000 })
	r.isObject(r.ok(<-done).body, o)
}
