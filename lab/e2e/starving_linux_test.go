package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// starvingAddr is the address of an origin that is independent of the lab's own.
const starvingAddr = "10.79.0.1:81"

// zeros is an object of zeros.
type zeros struct{}

func (zeros) ReadAt(p []byte, _ int64) (int, error) { clear(p); return len(p), nil }

// starved is an answer that stops after some bytes and never ends.
type starved struct {
	http.ResponseWriter
	ctx  context.Context // the request's
	left int
}

func (s *starved) Write(p []byte) (int, error) {
	if s.left == 0 {
		<-s.ctx.Done()
		return 0, s.ctx.Err()
	}
	n, err := s.ResponseWriter.Write(p[:min(len(p), s.left)])
	if s.left -= n; s.left == 0 {
		err = errors.Join(err, http.NewResponseController(s.ResponseWriter).Flush())
	}
	if err == nil && n < len(p) {
		m, err := s.Write(p[n:])
		return n + m, err
	}
	return n, err
}

// startStarving starts an origin in the server namespace that starves connections over one link.
func (r *rig) startStarving(over *netlab.Link) (url string) {
	r.Helper()
	host, _, _ := net.SplitHostPort(starvingAddr)
	if out, err := r.lab.Server(r.ctx, "ip", "address", "add", host+"/32", "dev", "lo").CombinedOutput(); err != nil {
		r.Fatalf("ip: %v: %s", err, out)
	}
	var listener net.Listener
	if err := r.lab.InServer(func() (err error) {
		listener, err = net.Listen("tcp", starvingAddr)
		return err
	}); err != nil {
		r.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Content-Type", "application/octet-stream")
		if from, _, _ := net.SplitHostPort(req.RemoteAddr); from == over.Addr().String() {
			w = &starved{w, req.Context(), 10_000}
		}
		http.ServeContent(w, req, "", time.Time{}, io.NewSectionReader(zeros{}, 0, 500_000_000))
	})}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }()
	r.Cleanup(func() { server.Close(); <-ended })
	return "http://" + starvingAddr + "/"
}

// TestStarvingOrigin lets an origin starve its connections over one link, as a dead link would. That affects only its own
// downloads: tunnels and downloads from other origins still use the link.
func TestStarvingOrigin(t *testing.T) {
	t.Parallel()
	r := start(t, equal())
	url, o := r.startStarving(r.lab.Link("wifi")), r.object(3_000_000)
	ctx, cancel := context.WithCancel(r.ctx)
	victim := r.lab.Client(ctx, "curl", "-sS", "-o", "/dev/null", "-x", proxyURL, url)
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = victim.Wait() }()
	r.until("the link is banned for the hostile origin", func() bool {
		return strings.Contains(r.proxy.Said(), "link=wifi state=banned")
	})
	_, before := r.carried("wifi")
	r.download(o.URL, o, "--proxytunnel")
	if _, after := r.carried("wifi"); after-before < int64(o.Size) {
		t.Errorf("the tunnel went around wifi, which carried %d bytes", after-before)
	}
	received := r.metrics().Received("wifi")
	r.download(o.URL, o)
	if n := r.metrics().Received("wifi") - received; n < int64(o.Size)/part {
		t.Errorf("of a download from another origin, wifi carried %d bytes", n)
	}
	m := r.metrics()
	for _, state := range []string{"suspect", "banned"} {
		if n := m[`tributary_link_transitions_total{link="wifi",state="`+state+`"}`]; n > 0 {
			t.Errorf("wifi became %s %v times for everybody", state, n)
		}
	}
}

// TestDarkLink lets a link die silently while one origin's download runs, and then come back. No other traffic uses the
// link, so its DNS servers decide whether it works.
func TestDarkLink(t *testing.T) {
	t.Parallel()
	r := start(t, equal())
	o, small := r.object(40_000_000), r.object(10_000)
	ctx, cancel := context.WithCancel(r.ctx)
	download := r.lab.Client(ctx, "curl", "-sS", "-o", "/dev/null", "-x", proxyURL, o.URL)
	if err := download.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = download.Wait() }()
	r.until("both links carry", func() bool { m := r.metrics(); return m.Received("wifi") > 0 && m.Received("lte") > 0 })
	for _, tt := range []struct {
		dark  bool
		state string
	}{{true, "banned"}, {false, "up"}} {
		if err := r.lab.Link("wifi").Blackhole(tt.dark); err != nil {
			t.Fatal(err)
		}
		r.until("wifi is "+tt.state+" for everybody", func() bool {
			return r.metrics()[`tributary_link_state{link="wifi",state="`+tt.state+`"}`] == 1
		})
		r.download(small.URL, small, "--proxytunnel")
	}
}
