package origin_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/tributary-http/tributary/internal/net/engine"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/origin"
)

// TestPrepare: a request that arrives while its connection is being made waits for that connection; any other request makes its
// own.
func TestPrepare(t *testing.T) {
	target := engine.Target{Scheme: "http", Host: "o.test", Addr: "o.test:80", Path: "/"}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	type result struct {
		reused bool
		err    error
	}
	for _, tt := range []struct {
		name   string
		opens  int // while it is being made
		cancel bool
		fail   error
		dials  int
		reused int
	}{
		{name: "nobody wants it yet", dials: 1, reused: 1},
		{name: "one request", opens: 1, dials: 1, reused: 1},
		{name: "two requests", opens: 2, dials: 2, reused: 1},
		{name: "it fails", opens: 1, fail: net.ErrClosed, dials: 1},
		{name: "the request ends", opens: 1, cancel: true, dials: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dials, connect := 0, make(chan struct{})
				l := link.DialFunc(func(ctx context.Context, _ link.Link, network, _ string) (net.Conn, error) {
					dials++
					<-connect
					if tt.fail != nil {
						return nil, tt.fail
					}
					return (&net.Dialer{}).DialContext(ctx, network, ln.Addr().String())
				}).Over(link.Link{Name: "wifi"})[0]
				p := origin.New(nil)
				defer p.Close()
				prepared := make(chan struct{})
				for range 2 { // the second time it is already being made
					go func() {
						p.Prepare(t.Context(), l, target)
						prepared <- struct{}{}
					}()
					synctest.Wait()
				}
				if <-prepared; dials != 1 {
					t.Fatalf("%d connections", dials)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				results := make(chan result)
				open := func() {
					c, err := p.Open(ctx, l, target)
					r := result{err: err}
					if err == nil {
						r.reused = c.Info().Reused
						defer c.Close()
					}
					results <- r
				}
				for range tt.opens {
					go open()
					synctest.Wait()
				}
				if tt.cancel {
					cancel()
					if r := <-results; !errors.Is(r.err, context.Canceled) {
						t.Errorf("%+v", r)
					}
				}
				close(connect)
				<-prepared
				if tt.opens == 0 {
					p.Prepare(ctx, l, target) // one exists
					go open()
				}
				if !tt.cancel {
					reused := 0
					for range max(1, tt.opens) {
						r := <-results
						if !errors.Is(r.err, tt.fail) {
							t.Errorf("%v, want %v", r.err, tt.fail)
						}
						if r.reused {
							reused++
						}
					}
					if reused != tt.reused {
						t.Errorf("%d requests use the connection, want %d", reused, tt.reused)
					}
				}
				if dials != tt.dials {
					t.Errorf("%d connections, want %d", dials, tt.dials)
				}
			})
		})
	}
}
