package e2e

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/lab/netlab"
)

// quotaAddr is the address of an origin that is independent of the lab's own.
const quotaAddr = "10.79.0.2:82"

// TestRefusedLater downloads from an origin that answers some requests for an object and refuses later ones.
func TestRefusedLater(t *testing.T) {
	r := start(t, quick())
	o := r.object(24_000_000)
	all, err := io.ReadAll(netlab.Content(o.Size))
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ := net.SplitHostPort(quotaAddr)
	if out, err := r.lab.Server(r.ctx, "ip", "address", "add", host+"/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("ip: %v: %s", err, out)
	}
	var listener net.Listener
	if err := r.lab.InServer(func() (err error) {
		listener, err = net.Listen("tcp", quotaAddr)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if asked.Add(1) > 12 {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(w, req, "", time.Time{}, bytes.NewReader(all))
	})}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close(); <-ended })
	t.Run("R250 curl through the proxy", func(t *testing.T) {
		r.on(t).download("http://"+quotaAddr+"/quota", o)
		if asked.Load() <= 12 {
			t.Errorf("%d requests: none was refused", asked.Load())
		}
	})
}
