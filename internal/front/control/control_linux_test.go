package control

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tributary-http/tributary/internal/net/engine"
)

func TestPath(t *testing.T) {
	for _, c := range []struct {
		runtime, xdg string
		uid          int
		want         string
	}{
		{"/run/tributary", "/run/user/0", 0, "/run/tributary/control.sock"},
		{"", "/run/user/1000", 1000, "/run/user/1000/tributary/control.sock"},
		{"", "relative", 1000, "/tmp/tributary-1000/control.sock"},
		{"", "", 0, System},
		{"", "", 1000, "/tmp/tributary-1000/control.sock"},
	} {
		env := map[string]string{"RUNTIME_DIRECTORY": c.runtime, "XDG_RUNTIME_DIR": c.xdg}
		if got := Path(func(k string) string { return env[k] }, c.uid, "/tmp"); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// serve listens at path and answers with a status until the test ends.
func serve(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := Listen(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != StatusPath {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(Status{Version: "v9", Links: []engine.LinkStatus{{Name: "wlan0"}}})
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
	return l
}

func TestListenAndAsk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tributary", "control.sock")
	c := NewClient(path)
	defer c.Close()
	if _, err := c.Status(context.Background()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("nobody listens: %v", err)
	}
	serve(t, path)
	s, err := c.Status(context.Background())
	if err != nil || s.Version != "v9" || len(s.Links) != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
	if _, err := Listen(path, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "in use by process") {
		t.Errorf("a second one: %v", err)
	}
}

func TestListenTakesSome(t *testing.T) {
	t.Run("R190 connections of a user", testListenTakesSome)
}

func testListenTakesSome(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.sock")
	l, err := Listen(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	accepted := make(chan net.Conn, maxConns+1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	for range maxConns {
		dial()
	}
	if n, err := dial().Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("R190 one too many reads %d bytes, %v", n, err)
	}
	c := <-accepted
	c.Close()
	c.Close() // frees one place, not two
	for range maxConns - 1 {
		<-accepted
	}
	dial()
	<-accepted
	if n, err := dial().Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("R190 one too many reads %d bytes, %v", n, err)
	}
}

func TestListenReplacesWhatADeadProcessLeft(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	c := NewClient(path)
	defer c.Close()
	if _, err := c.Status(context.Background()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a dead socket: %v", err)
	}
	serve(t, path)
	if _, err := c.Status(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestListenRefuses(t *testing.T) {
	for name, prepare := range map[string]func(dir string) (path, want string){
		"a file in the way": func(dir string) (string, string) {
			path := filepath.Join(dir, "control.sock")
			_ = os.WriteFile(path, nil, 0o600)
			return path, "is not a socket"
		},
		"a link instead of a folder": func(dir string) (string, string) {
			_ = os.Symlink(t.TempDir(), filepath.Join(dir, "link"))
			return filepath.Join(dir, "link", "control.sock"), "is not a folder"
		},
		"a folder that others write to": func(dir string) (string, string) {
			_ = os.Mkdir(filepath.Join(dir, "open"), 0o700)
			_ = os.Chmod(filepath.Join(dir, "open"), 0o777)
			return filepath.Join(dir, "open", "control.sock"), "others may write"
		},
		"a folder in no folder": func(dir string) (string, string) {
			return filepath.Join(dir, "a", "b", "control.sock"), "no such file"
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, want := prepare(t.TempDir())
			l, err := Listen(path, slog.New(slog.DiscardHandler))
			if err == nil {
				l.Close()
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
		})
	}
}
