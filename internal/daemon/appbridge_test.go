package daemon

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tributary-http/tributary/internal/front/control"
	"github.com/tributary-http/tributary/internal/net/link/appbridge"
	"github.com/tributary-http/tributary/internal/net/link/appbridge/appbridgetest"
)

// limit bounds every wait of these tests; a passing test does not come near it.
const limit = time.Minute

// TestMobileDataIsWanted: mobile data is requested from an app when a transfer starts, and only then.
func TestMobileDataIsWanted(t *testing.T) {
	app := &appbridgetest.App{}
	app.Listen(t, filepath.Join(t.TempDir(), "s"))
	conn, err := appbridge.Dial(t.Context(), app.Path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	h := newAppBridge(conn, func() bool { return true })
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
	h.running(1, 1)
	if m := heard("want"); m["cellular"] != true {
		t.Errorf("a transfer has started: %v", m)
	}
	h.running(0, 0) // mobile data lingers
	h.running(1, 1)
	if m := heard("status"); m["type"] != "status" {
		t.Errorf("while it runs: %v", m)
	}
}

// TestTunnelsAreDownloads: tunnels that move data are reported to the app; mobile data is requested only if it could help.
func TestTunnelsAreDownloads(t *testing.T) {
	app := &appbridgetest.App{}
	app.Listen(t, filepath.Join(t.TempDir(), "s"))
	conn, err := appbridge.Dial(t.Context(), app.Path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	h := newAppBridge(conn, func() bool { return true })
	ctx, stop := context.WithCancel(t.Context())
	attended := make(chan struct{})
	go func() {
		defer close(attended)
		h.attend(ctx, func() control.Status { return control.Status{} })
	}()
	defer func() { stop(); <-attended }()
	next := func() map[string]any {
		t.Helper()
		select {
		case m := <-app.Heard:
			return m
		case <-time.After(limit):
			t.Fatal("no word")
			return nil
		}
	}
	if m := next(); m["type"] != "status" {
		t.Fatalf("at the start: %v", m)
	}
	h.undivided(2, 0) // of a browser
	if m := next(); m["type"] != "status" {
		t.Errorf("tunnels of a browser run: %v", m)
	}
	h.undivided(3, 1)
	if m := next(); m["type"] != "want" || m["cellular"] != true {
		t.Errorf("a tunnel that could use mobile data runs: %v", m)
	}
}

// TestSpentMobileDataIsNotWanted: mobile data is not requested from an app if its limit is used up, and the app is told when it
// runs out.
func TestSpentMobileDataIsNotWanted(t *testing.T) {
	app := &appbridgetest.App{}
	app.Listen(t, filepath.Join(t.TempDir(), "s"))
	conn, err := appbridge.Dial(t.Context(), app.Path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var left atomic.Bool
	h := newAppBridge(conn, left.Load)
	ctx, stop := context.WithCancel(t.Context())
	attended := make(chan struct{})
	go func() {
		defer close(attended)
		h.attend(ctx, func() control.Status { return control.Status{} })
	}()
	defer func() { stop(); <-attended }()
	statuses := 0
	wanted := func() any {
		t.Helper()
		for {
			select {
			case m := <-app.Heard:
				if m["type"] == "want" {
					return m["cellular"]
				}
				if statuses++; statuses == 3 { // the first, and two while the transfer runs
					left.Store(true)
				}
			case <-time.After(limit):
				t.Fatalf("no word after %d statuses", statuses)
			}
		}
	}
	h.running(1, 1)
	if w := wanted(); w != true || statuses < 3 {
		t.Errorf("with nothing left: %v after %d statuses", w, statuses)
	}
	left.Store(false)
	if w := wanted(); w != false {
		t.Errorf("spent, and wanted: %v", w)
	}
}
