package transport

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/tributary-http/tributary/internal/config"
	"github.com/tributary-http/tributary/internal/core/schedule"
	"github.com/tributary-http/tributary/internal/net/link"
	"github.com/tributary-http/tributary/internal/net/link/discover"
)

// TestExpected: while an origin is dialed, the other links connect to it too, except those that are spared.
func TestExpected(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	var mu sync.Mutex
	dials := map[string]int{}
	dialed := func(name string) int {
		mu.Lock()
		defer mu.Unlock()
		return dials[name]
	}
	static := named("eth", "frugal", "metered", "wifi")
	static[2].Terms.Metered = true
	links := link.DialFunc(func(ctx context.Context, l link.Link, network, _ string) (net.Conn, error) {
		mu.Lock()
		dials[l.Name]++
		mu.Unlock()
		return (&net.Dialer{}).DialContext(ctx, network, ln.Addr().String())
	}).Over(static...)
	cfg := config.Default()
	cfg.Link = map[string]config.Link{"frugal": {Goal: schedule.FrugalGoal}}
	tr, err := New(Config{Settings: cfg, Log: slog.New(slog.DiscardHandler), Source: discover.NewStatic(links...)})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := tr.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d, err := tr.DialOrigin(t.Context(), "o.test:443")
	if err != nil || d.Link != "eth" {
		t.Fatalf("over %q, %v", d.Link, err)
	}
	d.Conn.Close()
	eventually(t, "the other link connects", func() bool { return dialed("wifi") == 1 })
	tr.Close()
	stop()
	for _, name := range []string{"frugal", "metered"} {
		if n := dialed(name); n != 0 {
			t.Errorf("%d connections over the %s link", n, name)
		}
	}
}
