package e2e

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// counted counts the bytes written to it.
type counted struct{ n atomic.Int64 }

func (t *counted) Write(p []byte) (int, error) {
	t.n.Add(int64(len(p)))
	return len(p), nil
}

// TestRelayBeside: next to a direct download that fills a link, the lane gets about as much of the link as that.
func TestRelayBeside(t *testing.T) {
	if !matrix() {
		t.Skip("a measurement, for make matrix")
	}
	for _, congestion := range []string{"cubic", "bbr"} {
		t.Run(congestion, func(t *testing.T) {
			r := newRig(t, netlab.Scenario{Name: "beside", Congestion: congestion, Links: []netlab.LinkSpec{
				netlab.Symmetric("wifi", 20*netlab.Mbit, 30*time.Millisecond),
				netlab.Symmetric("lte", 20*netlab.Mbit, 50*time.Millisecond),
			}}, netlab.NginxOptions{})
			r.relayed()
			cert, err := r.lab.Certificate()
			if err != nil {
				t.Fatal(err)
			}
			// Both take nearly a minute: CUBIC shares slowly with a connection that begins later.
			other, o, half := r.object(1_500_000_000), r.object(180_000_000), r.object(60_000_000)
			ctx, cancel := context.WithCancel(r.ctx)
			cmd := r.lab.Client(ctx, "curl", "-sS", "--interface", "wifi", other.URL)
			var theirs counted
			cmd.Stdout = &theirs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { cancel(); _ = cmd.Wait() }()
			r.until("the other download fills the link", func() bool { return theirs.n.Load() > 10_000_000 })
			down := func() int64 {
				n, _, err := r.lab.Link("wifi").Counters()
				if err != nil {
					t.Fatal(err)
				}
				return n.Bytes
			}
			const content = 1448.0 / 1500 // share of a packet
			share := func(how string, o netlab.Object, args ...string) float64 {
				all, before := down(), theirs.n.Load()
				r.isObject(r.ok(r.client("curl", append([]string{"-sS", "--fail", "--cacert", cert.CA}, args...)...)).body, o)
				sum, beside := float64(down()-all)*content, float64(theirs.n.Load()-before)
				s := 1 - beside/sum
				t.Logf("%s took %.0f %% of %.1f MB over the link", how, 100*s, sum/1e6)
				return s
			}
			lane := share("the lane", o, "-x", proxyURL, "--connect-to", "::"+relayedAddr+":", r.nginx.SecureURL(o))
			least := min(0.4, 0.9*share("a plain connection", half, "--interface", "wifi", r.nginx.SecureURL(half)))
			if lane < least || lane > 0.6 {
				t.Errorf("the lane took %.0f %% of the link, want %.0f to 60 %%", 100*lane, 100*least)
			}
		})
	}
}
