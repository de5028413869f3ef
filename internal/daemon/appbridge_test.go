package daemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/control"
	"github.com/tributary-http/tributary/internal/link/appbridge"
	"github.com/tributary-http/tributary/internal/link/appbridge/appbridgetest"
)

// TestMobileDataIsWanted: an app is asked for mobile data when a transfer starts, and only then.
func TestMobileDataIsWanted(t *testing.T) {
	app := &appbridgetest.App{}
	app.Listen(t, filepath.Join(t.TempDir(), "s"))
	conn, err := appbridge.Dial(t.Context(), app.Path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	h := newAppBridge(conn)
	ctx, stop := context.WithCancel(t.Context())
	attended := make(chan struct{})
	go func() {
		defer close(attended)
		h.attend(ctx, func() control.Status { return control.Status{} })
	}()
	defer func() { stop(); <-attended }()
	heard := func(what string) map[string]any {
		t.Helper()
		for {
			select {
			case m := <-app.Heard:
				if m["type"] != "status" {
					return m
				}
				if what == "status" {
					return m
				}
			case <-time.After(limit):
				t.Fatalf("no word of %s", what)
			}
		}
	}
	if m := heard("status"); m["type"] != "status" {
		t.Fatalf("before any transfer: %v", m)
	}
	h.running(1)
	if m := heard("want"); m["cellular"] != true {
		t.Errorf("a transfer has started: %v", m)
	}
	h.running(0) // it lingers
	h.running(1)
	if m := heard("status"); m["type"] != "status" {
		t.Errorf("while it runs: %v", m)
	}
}
