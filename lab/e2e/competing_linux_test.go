package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// TestCompeting: beside another download that fills a link without losses, a transfer takes at most 60 % of the link,
// over at most two connections at the same time: an additional one that is tried now and then gains nothing.
func TestCompeting(t *testing.T) {
	if !matrix() {
		t.Skip("a measurement, for make matrix")
	}
	for _, congestion := range []string{"cubic", "bbr"} {
		t.Run(congestion, func(t *testing.T) {
			r := start(t, netlab.Scenario{Name: "competing", Congestion: congestion, Links: []netlab.LinkSpec{
				netlab.Symmetric("wifi", 20*netlab.Mbit, 30*time.Millisecond),
				netlab.Symmetric("lte", 20*netlab.Mbit, 50*time.Millisecond),
			}})
			other, o := r.object(200_000_000), r.object(40_000_000)
			ctx, cancel := context.WithCancel(r.ctx)
			cmd := r.lab.Client(ctx, "curl", "-sS", "-o", "/dev/null", "--interface", "wifi", other.URL)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { cancel(); _ = cmd.Wait() }()
			down := func() int64 {
				n, _, err := r.lab.Link("wifi").Counters()
				if err != nil {
					t.Fatal(err)
				}
				return n.Bytes
			}
			r.until("the other download fills the link", func() bool { return down() > 10_000_000 })
			before, all := r.metrics().Received("wifi"), down()
			r.download(o.URL, o)
			ours, sum := r.metrics().Received("wifi")-before, down()-all
			requests, err := r.nginx.Requests()
			if err != nil {
				t.Fatal(err)
			}
			type span struct{ first, last time.Time } // beginnings of requests
			conns := map[int64]span{}
			for _, q := range requests {
				if q.Range == "" || q.Client != r.lab.Link("wifi").Addr().String() {
					continue
				}
				c, ok := conns[q.Connection]
				if !ok || q.Began.Before(c.first) {
					c.first = q.Began
				}
				if q.Began.After(c.last) {
					c.last = q.Began
				}
				conns[q.Connection] = c
			}
			most := 0 // connections at the same time
			for _, c := range conns {
				n := 0
				for _, d := range conns {
					if !c.first.Before(d.first) && !c.first.After(d.last) {
						n++
					}
				}
				most = max(most, n)
			}
			const content = 1448.0 / 1500 // share of a packet
			share := float64(ours) / (float64(sum) * content)
			t.Logf("%.1f MB of %.1f MB over the link, %.0f %%, by %d connections, %d at a time", float64(ours)/1e6, float64(sum)*content/1e6, 100*share, len(conns), most)
			if share > 0.6 || most == 0 || most > 2 {
				t.Errorf("%.0f %% of the link by %d connections at a time", 100*share, most)
			}
		})
	}
}
