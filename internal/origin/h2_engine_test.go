package origin_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/tributary-http/tributary/internal/engine"
	"github.com/tributary-http/tributary/internal/link"
	"github.com/tributary-http/tributary/internal/origin"
)

// One GET of an https object over two links, each with an HTTP/2 connection of its own. After the first range an answer
// waits until both links have been asked, so that both carry bytes however fast loopback is.
func TestR121_H2TransferOverTwoLinks(t *testing.T) {
	const size = 12 << 20
	var nodes [2]*h2rig
	var asked [2]chan struct{}
	roots := x509.NewCertPool()
	for i := range nodes {
		asked[i] = make(chan struct{})
		once := sync.OnceFunc(func() { close(asked[i]) })
		nodes[i] = newH2(t, size, func(w http.ResponseWriter, q *http.Request, serve http.HandlerFunc) {
			if q.Header.Get("Range") != "bytes=0-262143" {
				once()
				<-asked[0]
				<-asked[1]
			}
			serve(w, q)
		})
		roots.AddCert(nodes[i].server.Certificate())
	}
	dial := func(ctx context.Context, l link.Link, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, nodes[l.Index-1].server.Listener.Addr().String())
	}
	pool := origin.New(dial, roots)
	t.Cleanup(pool.Close)
	e, err := engine.New(engine.Config{
		Opener: pool, Dial: dial, Log: slog.New(slog.DiscardHandler), Scheduler: "alg3",
		Budget: 64 << 20, Window: 16 << 20, Threshold: 256 << 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var run sync.WaitGroup
	run.Go(func() { e.Run(ctx) })
	t.Cleanup(func() { stop(); run.Wait() })
	e.SetLinks(links)
	resp, err := e.Get(t.Context(), &engine.Request{Target: nodes[0].target(), Header: http.Header{}, StartRanged: true})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Equal(b, nodes[0].object) {
		t.Errorf("%d bytes, right ones: %v; %v", len(b), bytes.Equal(b, nodes[0].object), err)
	}
	if resp.Status != http.StatusOK || resp.ContentLength != size {
		t.Errorf("%d, Content-Length %d", resp.Status, resp.ContentLength)
	}
	for _, l := range e.Status().Links {
		if l.Bytes == 0 {
			t.Errorf("link %s carried nothing", l.Name)
		}
		t.Logf("%s: %d bytes, %d wasted", l.Name, l.Bytes, l.Waste)
	}
}
