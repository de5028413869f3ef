package e2e

import (
	"testing"

	"github.com/tributary-http/tributary/lab/netlab"
)

// logged returns the requests that an origin has logged, and how many connections it saw over each link, by its name.
func (r *rig) logged(log func() ([]netlab.Request, error)) ([]netlab.Request, map[string]int) {
	r.Helper()
	requests, err := log()
	if err != nil {
		r.Fatal(err)
	}
	return requests, netlab.Connections(requests, r.lab.LinksByClient())
}

// TestOriginLimitsEach: an origin that gives each connection 1 MiB/s gets several over each link.
func TestOriginLimitsEach(t *testing.T) {
	t.Parallel()
	r := start(t, shipped(t, "wide"))
	for _, c := range []struct {
		name string
		pace netlab.Pace
	}{
		{"it sends pieces", netlab.Pace{Rate: 1 << 20, Port: 8100}},
		{"the kernel spaces packets", netlab.Pace{Rate: 1 << 20, Port: 8110, Smooth: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := r.on(t)
			origin, err := r.lab.StartPacedNginx(r.ctx, netlab.NginxOptions{Port: c.pace.Port + 5}, c.pace)
			if err != nil {
				t.Fatal(err)
			}
			o, err := origin.Object(24_000_000)
			if err != nil {
				t.Fatal(err)
			}
			r.download(o.URL, o)
			r.until("both links had several connections", func() bool {
				_, n := r.logged(origin.Requests)
				if n["wifi"] > 12 || n["lte"] > 12 {
					t.Fatalf("%v connections, want 8, a reserve, and some that were replaced at the end", n)
				}
				return n["wifi"] >= 4 && n["lte"] >= 4
			})
		})
	}
}

// TestOriginAllowsOne: an origin that serves one request of an address at a time is asked one at a time, also over HTTP/2.
func TestOriginAllowsOne(t *testing.T) {
	t.Parallel()
	r := start(t, quick())
	origin, err := r.lab.StartNginx(r.ctx, netlab.NginxOptions{
		Port: 8090, TLSPort: 8450, Directives: "limit_conn address 1;",
		HTTP: "limit_conn_zone $binary_remote_addr zone=address:1m;",
	})
	if err != nil {
		t.Fatal(err)
	}
	o, err := origin.Object(8_000_000)
	if err != nil {
		t.Fatal(err)
	}
	r.download(o.URL, o)
	file := r.file()
	r.getting("-o", file, origin.SecureURL(o)).ended(0)
	r.isObject(r.read(file), o)
	r.until("the requests are logged", func() bool {
		requests, n := r.logged(origin.Requests)
		got := int64(0)
		for _, q := range requests {
			got += q.BytesSent
		}
		if n["wifi"] > 8 || n["lte"] > 8 {
			t.Fatalf("%v connections", n)
		}
		return got >= 2*int64(o.Size)
	})
}
