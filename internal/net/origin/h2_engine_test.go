package origin_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
)

// pipes is a listener whose connections are made in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error   { close(l.closed); return nil }
func (l *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// One GET of an https object over two links, each with its own HTTP/2 connection. Time is virtual, so that no link looks silent on
// a busy machine.
func TestR121_H2TransferOverTwoLinks(t *testing.T) {
	cert, roots := certificate(t)
	synctest.Test(t, func(t *testing.T) { transferOverTwoLinks(t, cert, roots, math.MaxInt64) })
}

// An origin that answers a number of requests and refuses later ones, over HTTP/2: the response in reserve, which has a connection
// of its own, completes the object.
func TestR250_H2RefusesLater(t *testing.T) {
	cert, roots := certificate(t)
	synctest.Test(t, func(t *testing.T) { transferOverTwoLinks(t, cert, roots, 8) })
}

// After the first range an answer waits until both links have been asked, so that both carry bytes however fast they are.
func transferOverTwoLinks(t *testing.T, cert tls.Certificate, roots *x509.CertPool, quota int64) {
	object := make([]byte, 12<<20)
	rand.NewChaCha8([32]byte{}).Read(object)
	var nodes [2]*pipes
	var asked [2]chan struct{}
	var run sync.WaitGroup
	var requests atomic.Int64
	t.Cleanup(run.Wait)
	for i := range nodes {
		l := &pipes{make(chan net.Conn), make(chan struct{})}
		nodes[i], asked[i] = l, make(chan struct{})
		once := sync.OnceFunc(func() { close(asked[i]) })
		server := &http.Server{
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
			Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				if rest := strings.HasSuffix(q.Header.Get("Range"), fmt.Sprint("-", len(object)-1)); q.ProtoMajor != 2 && !rest { // the reserve
					t.Errorf("asked over %s for %s", q.Proto, q.Header.Get("Range"))
				}
				if q.Header.Get("Range") != "bytes=0-262143" {
					once()
					<-asked[0]
					<-asked[1]
				}
				if requests.Add(1) > quota {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				w.Header().Set("ETag", h2Tag)
				http.ServeContent(w, q, "object.bin", time.Time{}, bytes.NewReader(object))
			}),
		}
		run.Go(func() { server.ServeTLS(l, "", "") })
		t.Cleanup(func() { server.Close() })
	}
	dial := func(ctx context.Context, l link.Link, _, _ string) (net.Conn, error) {
		near, far := net.Pipe()
		select {
		case nodes[l.Index-1].conns <- far:
			return near, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	pool := origin.New(roots)
	t.Cleanup(pool.Close)
	e := engine.New(engine.Config{
		Opener: pool, Log: slog.New(slog.DiscardHandler), Scheduler: func() schedule.Scheduler { return &schedule.Alg3{} },
		Budget: 64 << 20, Window: 16 << 20, Threshold: 256 << 10,
	})
	ctx, stop := context.WithCancel(t.Context())
	run.Go(func() { e.Run(ctx) })
	t.Cleanup(stop)
	e.SetLinks(link.DialFunc(dial).Over(links...))
	resp, err := e.Get(t.Context(), &engine.Request{Target: scriptTarget, Header: http.Header{}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Equal(b, object) {
		t.Errorf("%d bytes, right ones: %v; %v", len(b), bytes.Equal(b, object), err)
	}
	if quota < math.MaxInt64 && requests.Load() <= quota {
		t.Errorf("%d requests: none was refused", requests.Load())
	}
	if resp.Status != http.StatusOK || resp.ContentLength != int64(len(object)) {
		t.Errorf("%d, Content-Length %d", resp.Status, resp.ContentLength)
	}
	for _, l := range e.Status().Links {
		if l.Bytes == 0 {
			t.Errorf("link %s carried nothing", l.Name)
		}
		t.Logf("%s: %d bytes, %d wasted", l.Name, l.Bytes, l.Waste)
	}
}
