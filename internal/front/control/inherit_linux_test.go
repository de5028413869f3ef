package control

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestInherited: a proxy serves the socket that root opened for it, which others can reach.
func TestInherited(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	if l, err := Inherited(log); l != nil || err != nil {
		t.Fatal("there is none", l, err)
	}
	path := filepath.Join(t.TempDir(), "tributary", "control.sock")
	t.Setenv(inheritEnv, "") // restores it
	f, err := Bequeath(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	own, err := unix.Dup(int(f.Fd())) // Inherited closes the descriptor that it finds
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(inheritEnv, strconv.Itoa(own))
	for name, want := range map[string]os.FileMode{path: 0o666, filepath.Dir(path): 0o711} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	l, err := Inherited(log)
	if err != nil || l == nil {
		t.Fatal(l, err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(Status{Version: "v9"})
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
	c := NewClient(path)
	defer c.Close()
	if got, err := c.Status(t.Context()); err != nil || got.Version != "v9" {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := Bequeath(path); err == nil {
		t.Error("a socket in use is replaced")
	}
	if again, err := Inherited(log); again != nil || err != nil {
		t.Error("it is inherited twice", again, err)
	}
}
