package literature_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	links "github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
	"github.com/tributary-http/tributary/internal/net/origin/origintest"
	"github.com/tributary-http/tributary/internal/net/transport"
	"github.com/tributary-http/tributary/lab/literature"
)

// TestEngine fetches an object over two links with each scheduler, in the real engine.
func TestEngine(t *testing.T) {
	for _, name := range ours() {
		t.Run(name, func(t *testing.T) {
			s := origintest.New(t, origintest.Object{Size: 6 << 20}, origintest.RateLimit(8<<20))
			dial := links.DialFunc(func(ctx context.Context, l links.Link, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, s.Addr(l.Metric))
			})
			scheduler, err := literature.Maker(name)
			if err != nil {
				t.Fatal(err)
			}
			c := config.Default()
			c.Threshold = 64 << 10
			tr, err := transport.New(transport.Config{
				Settings: c, Log: slog.New(slog.DiscardHandler),
				Source:    discover.NewStatic(dial.Over(links.Link{Name: "wifi"}, links.Link{Name: "lte", Metric: 1})...),
				Scheduler: scheduler,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			stop, err := tr.Start(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL(), nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, want := make([]byte, 64<<10), make([]byte, 64<<10)
			var at int64
			for {
				n, err := io.ReadFull(resp.Body, got)
				_, _ = s.Object().ReadAt(want[:n], at)
				if at += int64(n); string(got[:n]) != string(want[:n]) {
					t.Fatalf("wrong bytes before %d", at)
				}
				if err != nil {
					break
				}
			}
			if at != s.Object().Size {
				t.Errorf("%d bytes", at)
			}
		})
	}
}
